"""The service in a process of its own that is killed while clients are being served.

The process is forked from one that has imported everything, so that it starts in an instant.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import json
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import aiohttp
import uvicorn
from fastapi import FastAPI
from sqlalchemy import select

from app import main
from app.ledger.database import open_engine
from app.ledger.journal.journal import Journal
from app.ledger.models import turns
from app.server import configure
from app.settings import Settings
from tests.support import fatal
from tests.support.provider import AUTH, MODEL
from tests.support.rollups import counted_in

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.support.killing"])
SEGMENT_BYTES = 24_000
"""So small that a segment of the journal is full every few turns."""


def _mother(settings: Settings, wishes: Connection) -> None:
    """Makes the application once; serves it in a child of its own as often as it is told."""
    main.Journal = functools.partial(Journal, segment_bytes=SEGMENT_BYTES)
    app = main.create_app(settings)
    leash, held = os.pipe()
    with contextlib.suppress(EOFError):  # when nobody is left to wish
        while True:
            death = wishes.recv()
            child = os.fork()
            if child == 0:
                os.close(held)
                _live(app, settings, leash, death)
            wishes.send(child)
            os.waitpid(child, 0)
            wishes.send(None)


def _live(app: FastAPI, settings: Settings, leash: int, death: fatal.Death | None) -> NoReturn:
    threading.Thread(target=_end_with_mother, args=(leash,), daemon=True).start()
    try:
        if death is not None:
            fatal.install(death)
        uvicorn.Server(configure(app, settings)).run()
    finally:
        os._exit(0)


def _end_with_mother(leash: int) -> None:
    os.read(leash, 1)
    os._exit(0)


@dataclass
class Killable:
    """A service that listens where its settings say, and can be killed and started again."""

    settings: Settings
    up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while it serves."""
    pid: int | None = None
    _mother: Connection | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings.port}"

    async def start(self) -> None:
        await self.begin()
        assert await self.serves(), "the service did not start"

    async def begin(self, death: fatal.Death | None = None) -> None:
        """Start it and do not wait. It may be given its death along."""
        if self._mother is None:
            self._mother, theirs = _processes.Pipe()
            _processes.Process(
                target=_mother, args=(self.settings, theirs), daemon=True, name="mother"
            ).start()
            theirs.close()
        self._mother.send(death)
        self.pid = await asyncio.to_thread(self._mother.recv)

    async def serves(self) -> bool:
        """Wait until it serves; False where it died before."""
        async with aiohttp.ClientSession() as http, asyncio.timeout(60):
            while not await self.has_ended(within=0.01):  # nobody tells when it listens
                if await self._is_up(http):
                    self.up.set()
                    return True
        return False

    async def readiness(self, http: aiohttp.ClientSession) -> tuple[int, dict[str, Any]]:
        async with http.get(self.url + "/readyz") as answer:
            return answer.status, await answer.json()

    async def _is_up(self, http: aiohttp.ClientSession) -> bool:
        """Ready or not: it serves turns as soon as its ledger is open."""
        try:
            _, told = await self.readiness(http)
        except aiohttp.ClientError:
            return False
        return told["ledger"] is not None

    async def kill(self) -> None:
        await self.end(signal.SIGKILL)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.signal(number)
        assert await self.has_ended(within=30)

    def signal(self, number: signal.Signals) -> None:
        assert self.pid is not None
        self.up.clear()
        os.kill(self.pid, number)

    async def has_ended(self, within: float) -> bool:
        """Whether it ends by itself within so many seconds, or has ended."""
        if self.pid is None:
            return True
        assert self._mother is not None
        if not await asyncio.to_thread(self._mother.poll, within):
            return False
        self._mother.recv()
        self.pid = None
        self.up.clear()
        return True


@dataclass
class Clients:
    """Clients that send turn after turn, whatever becomes of them."""

    service: Killable
    begun: set[str] = field(default_factory=set)
    """Turns whose answer had begun."""
    answered: set[str] = field(default_factory=set)
    """Turns whose last event was received."""
    responses: set[str] = field(default_factory=set)
    """Responses whose last event was received on a WebSocket, which names no turn."""
    sent: int = 0
    """Requests, whether or not they reached the service."""
    broken: int = 0
    """Turns that did not end well, and requests that found nobody."""
    times: list[float] = field(default_factory=list)
    """How long turns took that were answered, in seconds."""
    _progress: asyncio.Event = field(default_factory=asyncio.Event)
    _going_on: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def count(self) -> int:
        """Turns that were answered to the end."""
        return len(self.answered) + len(self.responses)

    async def have_answers(self, count: int) -> None:
        """Wait until the ends of so many turns were received."""
        while self.count < count:
            self._progress.clear()
            await self._progress.wait()

    def pause(self) -> None:
        """Send nothing new until ``go_on``."""
        self._going_on.clear()

    def go_on(self) -> None:
        self._going_on.set()

    @asynccontextmanager
    async def running(self, count: int, sockets: int = 0) -> AsyncIterator[None]:
        """While the block lasts, so many send over HTTP and over WebSockets."""
        self.go_on()
        async with aiohttp.ClientSession() as http:
            tasks = [asyncio.create_task(self._over_http(http, n)) for n in range(count)]
            tasks += [asyncio.create_task(self._over_socket(http, n)) for n in range(sockets)]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [] == [end for end in ends if isinstance(end, Exception)]

    async def _over_http(self, http: aiohttp.ClientSession, number: int) -> None:
        named = {"session-id": f"agent-{number}", **AUTH}
        for body in _requests():
            await self._allowed()
            self.sent += 1
            began = time.monotonic()
            try:
                async with http.post(
                    self.service.url + "/v1/responses", json=body | {"stream": True}, headers=named
                ) as answer:
                    turn_id = answer.headers["x-warmline-turn"]
                    self.begun.add(turn_id)
                    async for line in answer.content:
                        if line.startswith(b"event: response.completed"):
                            self.answered.add(turn_id)
                self._ended(began, well=turn_id in self.answered)
            except (aiohttp.ClientError, KeyError):
                self._ended(began, well=False)  # it was killed

    async def _over_socket(self, http: aiohttp.ClientSession, number: int) -> None:
        """Two requests at a time, so that one always waits behind the other."""
        named = {"session-id": f"socket-{number}", **AUTH}
        requests = _requests()
        while True:
            await self._allowed()
            began = time.monotonic()
            try:
                async with http.ws_connect(
                    self.service.url.replace("http", "ws") + "/v1/responses", headers=named
                ) as live:
                    while True:
                        began = time.monotonic()
                        self.sent += 2
                        for body in itertools.islice(requests, 2):
                            await live.send_json(body | {"type": "response.create"})
                        for _ in range(2):
                            self._ended(began, well=await self._answer(live))
                        await self._allowed()
            except (aiohttp.ClientError, ConnectionError, EOFError):
                self._ended(began, well=False)

    async def _answer(self, live: aiohttp.ClientWebSocketResponse) -> bool:
        """One answer to its end. Raises ``EOFError`` when the socket ends before."""
        while True:
            message = await live.receive()
            if message.type is not aiohttp.WSMsgType.TEXT:
                raise EOFError
            event = json.loads(message.data)
            if event["type"] == "response.completed":
                self.responses.add(event["response"]["id"])
                return True
            if event["type"] in ("error", "response.failed"):
                return False

    async def _allowed(self) -> None:
        await self._going_on.wait()
        await self.service.up.wait()

    def _ended(self, began: float, *, well: bool) -> None:
        if well:
            self.times.append(time.monotonic() - began)
        else:
            self.broken += 1
        self._progress.set()


def _requests() -> Any:
    history: list[dict[str, str]] = []
    for number in itertools.count():
        said = "hello" if not history else "go on" if number % 5 else "again"
        history = [*history, {"role": "user", "content": said}][-6:]
        yield {"model": MODEL, "input": history, "store": False}


@dataclass(frozen=True)
class Verdict:
    """What the ledger has of the turns that clients have seen."""

    rows: int
    in_flight: int
    """Rows of turns whose process ended before them."""
    missing: frozenset[str]
    """Turns that were answered and have no row that says so."""
    unknown: frozenset[str]
    """Turns that had begun and have no row at all."""
    double: frozenset[str]
    """Turns or responses with more than one row."""
    odd: frozenset[str]
    """Rows of ended processes that are no plain error."""
    counted: int
    """Turns that the rollups count."""

    @property
    def is_sound(self) -> bool:
        wrong = self.missing or self.unknown or self.double or self.odd
        return not wrong and self.counted == self.rows


def verdict(database: str, clients: Clients) -> Verdict:
    engine = open_engine(database)
    columns = (turns.c.turn_id, turns.c.response_id, turns.c.status, turns.c.error_code)
    with engine.connect() as connection:
        found = connection.execute(select(*columns)).all()
    counted = counted_in(engine)
    engine.dispose()
    ids = Counter(row.turn_id for row in found)
    answers = Counter(row.response_id for row in found if row.response_id)
    ended = [row for row in found if row.error_code == "process_ended"]
    well = [row for row in found if row.status == "completed"]
    missing = clients.answered - {row.turn_id for row in well}
    missing |= clients.responses - {row.response_id for row in well}
    return Verdict(
        rows=len(found),
        in_flight=len(ended),
        missing=frozenset(missing),
        unknown=frozenset(clients.begun - set(ids)),
        double=frozenset(one for one, times in (ids + answers).items() if times > 1),
        odd=frozenset(row.turn_id for row in ended if row.status != "error" or row.response_id),
        counted=counted,
    )
