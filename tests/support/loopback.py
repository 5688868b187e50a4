"""The engine on one side, the built-in provider's core on the other, no socket between them."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from app.demo.provider.actions import Abort, Close, Gate, Hang, Send, Text, Wait
from app.demo.provider.connection import Connection as Lane
from app.demo.provider.connection import UpgradeRefused
from app.demo.provider.core import Provider
from engine.driver import Answer, Call, Driver, Upstream
from engine.errors import ConnectFailed, ConnectionLost, UpgradeRejected
from engine.model import Policy, TurnFacts
from engine.sessions import Bounds
from tests.support.clock import ManualClock

CREDENTIAL = "Bearer sk-test"


class LoopbackConnection:
    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self._steps: Any = None
        self._next: Any = None
        self._lost: int | None = None
        self.hanging = asyncio.Event()

    @property
    def closed(self) -> bool:
        return not self.lane.open

    def drop(self, code: int | None = None) -> None:
        """The provider ends the connection."""
        self._lost = code
        self.lane.close()

    async def send(self, frame: bytes) -> None:
        if self.closed:
            raise ConnectionLost(self._lost, sent=False)
        if self._next is not None and isinstance(self._next[1], Close | Abort):
            # A slow close: it crosses the frame, which is written and never read.
            self.drop(self._next[1].code if isinstance(self._next[1], Close) else None)
            return
        self._steps = self.lane.handle_frame(frame.decode())
        self._next = next(self._steps, None)

    is_eager = False
    """Whether events are there before anyone waits for them."""

    async def receive(self) -> bytes:
        while True:
            if self._steps is None or self.closed:
                raise ConnectionLost(self._lost, sent=True)
            if self._next is None:
                await asyncio.Event().wait()
            # One step ahead: the provider is done with a response when it has sent its last event.
            (_, action), self._next = self._next, next(self._steps, None)
            match action:
                case Send(event):
                    return _encoded(event)
                case Text(text):
                    return text.encode()
                case Close(code):
                    self.drop(code)
                case Abort():
                    self.drop()
                case Hang():
                    self.hanging.set()
                    await asyncio.Event().wait()
                case Wait(gate):
                    self.hanging.set()
                    await _opened(gate)

    def take(self) -> bytes | None:
        if not self.is_eager or self._next is None or not isinstance(self._next[1], Send):
            return None
        (_, action), self._next = self._next, next(self._steps, None)
        return _encoded(action.event)

    async def ping(self, within: float) -> bool:
        return not self.closed

    async def close(self) -> None:
        if self._steps is not None:
            self._steps.close()
        self.lane.close()


def _encoded(event: Any) -> bytes:
    try:
        return msgspec.json.encode(event)
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(event).encode()


async def _opened(gate: Gate) -> None:
    opened = asyncio.Event()
    gate.on_open(opened.set)
    await opened.wait()


class LoopbackSockets:
    def __init__(self, core: Provider) -> None:
        self.core = core
        self.opened: list[LoopbackConnection] = []
        self.are_eager = False

    async def connect(
        self, url: str, headers: list[tuple[str, str]], within: float
    ) -> LoopbackConnection:
        try:
            lane = self.core.open_connection(headers)
        except UpgradeRefused as refused:
            if refused.action == "hang":
                await asyncio.sleep(within)
                raise ConnectFailed("timeout") from refused
            if refused.reply is None:
                raise ConnectFailed("refused") from refused
            reply = refused.reply
            raise UpgradeRejected(reply.status, _pairs(reply.headers), reply.body) from refused
        connection = LoopbackConnection(lane)
        connection.is_eager = self.are_eager
        self.opened.append(connection)
        return connection


def _pairs(headers: Any) -> list[tuple[str, str]]:
    given = headers.items() if isinstance(headers, Mapping) else headers
    return [(name.lower(), value) for name, value in given]


class LoopbackAnswer:
    def __init__(self, reply: Any) -> None:
        self.reply = reply
        self.status = reply.status
        self.headers = _pairs(reply.headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        if self.reply.steps is None:
            yield self.reply.body
            return
        for _, action in self.reply.steps:
            match action:
                case Send(event):
                    head = f"event: {event['type']}\ndata: ".encode()
                    yield head + _encoded(event) + b"\n\n"
                case Text(text):
                    yield f"data: {text}\n\n".encode()
                case Close():
                    return
                case Abort():
                    raise ConnectionLost(None, sent=True)
                case Wait(gate):
                    await _opened(gate)
                case Hang():
                    await asyncio.Event().wait()

    async def close(self) -> None:
        """The core has no connection to give back."""


class LoopbackHttp:
    def __init__(self, core: Provider) -> None:
        self.core = core

    async def post(
        self, url: str, headers: list[tuple[str, str]], body: bytes, within: float
    ) -> LoopbackAnswer:
        reply = self.core.request("POST", "/v1/responses", headers, body)
        if reply.streamed or reply.finish is None:
            return LoopbackAnswer(reply)
        for _, action in reply.steps or ():
            match action:
                case Close() | Abort():
                    raise ConnectionLost(None, sent=True)
                case Wait(gate):
                    await _opened(gate)
                case Hang():
                    await asyncio.Event().wait()
        return LoopbackAnswer(reply.finish())


class Stack:
    """A driver, the provider behind it, and all facts that came out."""

    def __init__(
        self, core: Provider, policy: Policy | None = None, *, bounds: Bounds | None = None
    ) -> None:
        self.core = core
        self.clock = ManualClock()
        self.sockets = LoopbackSockets(core)
        self.http = LoopbackHttp(core)
        self.facts: list[TurnFacts] = []
        self.upstream = Upstream("default", "http://provider/v1", policy or Policy())
        self._ids = itertools.count()
        self._turns = itertools.count(1)
        self.driver = Driver(
            websocket=self.sockets,
            http=self.http,
            clock=self.clock,
            new_id=lambda prefix: f"{prefix}{next(self._ids)}",
            key=b"test key",
            on_turn=self.facts.append,
            bounds=bounds,
        )

    def call(self, body: Mapping[str, Any] | bytes, **more: Any) -> Call:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        more.setdefault("headers", (("authorization", CREDENTIAL),))
        more.setdefault("tenant", "tenant")
        more.setdefault("session", "s")
        more.setdefault("upstream", self.upstream)
        return Call(
            turn_id=f"turn_{next(self._turns)}",
            received_at=self.clock.now(),
            received_mono=self.clock.monotonic(),
            body=raw,
            **more,
        )

    async def answer(self, body: Mapping[str, Any] | bytes, **more: Any) -> Answer:
        return await self.driver.run(self.call(body, **more))

    async def turn(self, body: Mapping[str, Any] | bytes, **more: Any) -> list[dict[str, Any]]:
        """Run a turn to its end; returns its events, or the one JSON answer or error."""
        self.clock.advance(0.001)
        answer = await self.answer(body, **more)
        if not answer.streamed:
            return [json.loads(answer.body)] if answer.body else []
        return [json.loads(event.data) async for event in answer if event.data]

    @property
    def last(self) -> TurnFacts:
        return self.facts[-1]
