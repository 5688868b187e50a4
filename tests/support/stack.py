"""A provider, the whole service before it, and a tap on what clients and service say.

With clients in other processes, so everything here runs in threads::

    def test_something(tmp_path):
        with stack(tmp_path) as it:
            ...                               # a client of it.url
            row = it.rows()[-1]               # oldest first
            assert it.checked() == 1          # transcripts that agree

``it.up`` is the provider (``tests.support.provider.Running``), ``it.tap.exchanges`` what clients
asked and were answered.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
import zstandard

from app.demo.provider.oracle import first_difference, same_transcript
from app.ledger import queries
from app.ledger.filters import Filter
from app.ledger.rows import TurnRow
from app.main import Service, create_app
from app.web.answers import Asgi, Receive, Scope, Send
from tests.support import provider
from tests.support.databases import migrated
from tests.support.service import settings
from tests.support.serving import Server

Json = dict[str, Any]
START_SECONDS = 30.0
ALWAYS = Filter(0, 1 << 52)
TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})


@dataclass(eq=False)
class Exchange:
    """A request of a client, and the events or the JSON answer that it got."""

    transport: str
    socket: int | None
    body: Json
    headers: dict[str, str]
    status: int | None = None
    events: list[Json] = field(default_factory=list)
    answer: Json | None = None
    turn_id: str | None = None
    """Over HTTP, from the answer's headers."""

    @property
    def response(self) -> Json | None:
        """Of the terminal event or the JSON answer, if the turn was answered."""
        if self.answer is not None:
            return self.answer if self.answer.get("object") == "response" else None
        last = self.events[-1] if self.events else {}
        answered = last.get("type") in ("response.completed", "response.incomplete")
        return last["response"] if answered else None

    @property
    def output(self) -> list[Json]:
        """The items that the client was given."""
        done = [e for e in self.events if e["type"] == "response.output_item.done"]
        if done:
            return [e["item"] for e in sorted(done, key=lambda e: e["output_index"])]
        return list((self.response or {}).get("output") or ())


class Tap:
    """An ASGI application around another one that notes turns and their answers."""

    def __init__(self, app: Asgi) -> None:
        self._app = app
        self.exchanges: list[Exchange] = []
        self.sockets = 0
        self.socket_ended = threading.Semaphore(0)
        """Released whenever the service is done with a client's socket."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and scope["path"].endswith("/responses"):
            await self._socket(scope, receive, send)
        elif scope["type"] == "http" and "/responses" in scope["path"]:
            await self._post(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent, got = bytearray(), bytearray()
        exchange = Exchange("http", None, {}, _headers(scope))

        async def take() -> Any:
            message = await receive()
            if message["type"] == "http.request":
                sent.extend(message.get("body", b""))
                if not message.get("more_body"):
                    exchange.body = _decoded(bytes(sent), exchange.headers)
                    self.exchanges.append(exchange)
            return message

        async def give(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = {k.decode().lower(): v.decode() for k, v in message["headers"]}
                exchange.status = message["status"]
                exchange.turn_id = headers.get("x-warmline-turn")
                if headers.get("content-type", "").startswith("text/event-stream"):
                    exchange.transport = "sse"
            elif message["type"] == "http.response.body":
                got.extend(message.get("body", b""))
                if exchange.transport == "sse":
                    exchange.events = _events(bytes(got))
                elif not message.get("more_body"):
                    exchange.answer = json.loads(got)
            await send(message)

        await self._app(scope, take, give)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        number = self.sockets
        self.sockets += 1
        waiting: list[Exchange] = []

        async def take() -> Any:
            message = await receive()
            if message["type"] == "websocket.receive":
                text = message.get("text") or message["bytes"].decode()
                exchange = Exchange("ws", number, json.loads(text), _headers(scope))
                waiting.append(exchange)
                self.exchanges.append(exchange)
            return message

        async def give(message: Any) -> None:
            if message["type"] == "websocket.send" and waiting:
                event = json.loads(message.get("text") or message["bytes"])
                waiting[0].events.append(event)
                if event["type"] in TERMINAL:
                    waiting.pop(0)
            await send(message)

        try:
            await self._app(scope, take, give)
        finally:
            self.socket_ended.release()


def _headers(scope: Scope) -> dict[str, str]:
    return {k.decode().lower(): v.decode() for k, v in scope["headers"]}


def _decoded(body: bytes, headers: dict[str, str]) -> Json:
    if headers.get("content-encoding") == "zstd":
        with zstandard.ZstdDecompressor().stream_reader(body) as reader:
            body = reader.read()
    return json.loads(body)  # type: ignore[no-any-return]


def _events(stream: bytes) -> list[Json]:
    lines = stream.decode(errors="replace").splitlines()
    texts = [line[5:].strip() for line in lines if line.startswith("data:")]
    out = []
    for text in texts:
        try:
            out.append(json.loads(text))
        except ValueError:  # "[DONE]", or a line of which half has come so far
            continue
    return out


@dataclass
class Stack:
    url: str
    """The service's base URL for clients; ends in ``/v1``."""
    up: provider.Running
    service: Service
    tap: Tap

    def rows(self, *, model: str | None = None) -> list[TurnRow]:
        """Every turn that was recorded, oldest first."""
        assert self.service.writer is not None
        assert self.service.web.engine is not None
        assert self.service.writer.flush()
        found = queries.page(self.service.web.engine, ALWAYS, limit=500).rows
        return [row for row in reversed(found) if model in (None, row.model)]

    def checked(self) -> int:
        """Compare what the provider holds with what the client means; how many turns were.

        The client means what it sent, on top of the turn that it names, and what it was answered.
        """
        logical: dict[str, list[Json]] = {}
        for number, exchange in enumerate(self.tap.exchanges):
            response = exchange.response
            if response is None:
                continue
            named = exchange.body.get("previous_response_id")
            before = [] if named is None else logical[named]
            given = exchange.body.get("input") or []
            if isinstance(given, str):
                given = [provider.user(given)]
            meant = [*before, *given, *exchange.output]
            held = self._held(exchange, response["id"])
            assert same_transcript(held, meant), (
                f"exchange {number} ({response['id']}): the provider holds {len(held)} items, "
                f"the client means {len(meant)}; they part at {first_difference(held, meant)}"
            )
            logical[response["id"]] = meant
        return len(logical)

    def _held(self, exchange: Exchange, response_id: str) -> list[Any]:
        try:
            return list(self.up.core.held(response_id).items)
        except KeyError:
            # Answered by the service itself: a warm-up where the upstream has only HTTP.
            assert exchange.body.get("generate") is False, f"{response_id} is not the provider's"
            return list(exchange.body["input"])


def _listener() -> socket.socket:
    # With the protocol named: asyncio spares only such sockets the wait for acknowledgements.
    return socket.socket(proto=socket.IPPROTO_TCP)


@contextmanager
def stack(
    folder: Path,
    kind: str = "openai",
    *,
    prepare: Callable[[provider.Running], None] = lambda up: None,
    flags: dict[str, str] | None = None,
    **options: Any,
) -> Iterator[Stack]:
    """Both on free ports of the loopback, a ledger in ``folder``; stopped when the block ends.

    ``prepare`` sets faults before anything is asked; ``options`` go to the provider.
    """
    with provider.provider_thread(kind, **options) as up, _listener() as listener:
        prepare(up)
        chosen = settings(folder, up.url, **(flags or {}))
        migrated(chosen.database)
        app = create_app(chosen)
        tap = Tap(app)
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        config = uvicorn.Config(tap, log_level="warning", timeout_graceful_shutdown=2)
        server = Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        assert server.up.wait(START_SECONDS), "the service did not start"
        try:
            yield Stack(f"http://127.0.0.1:{port}/v1", up, app.state.service, tap)
        finally:
            server.should_exit = True
            thread.join(START_SECONDS)
