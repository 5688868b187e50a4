"""A driver on a script, and ASGI clients that speak to the gateway without a socket.

``FakeDriver`` answers each call with the next step of its script: an ``Answer``, an exception, or
a function of the call that returns one of these (also awaitable). Every call is kept in ``calls``.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Any, Self

from app.gateway.access import HostPolicy
from app.gateway.asgi import Gateway
from app.gateway.upstreams import Upstreams
from app.keys import Keys
from engine.driver import Answer, Call, Event, Upstream
from engine.errors import ConnectFailed, ConnectionLost, UnreadableRequest
from engine.model import Mode, Policy, Reason, TurnFacts
from engine.request import split
from engine.sessions import Bounds, Sessions
from tests.support.clock import ManualClock

KEYS = Keys(b"k" * 32)
ENGINE_KEY = b"engine key"
AUTH = ("authorization", "Bearer sk-test")


class FakeDriver:
    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.calls: list[Call] = []
        self.left: list[str] = []
        self.closed_sockets: list[str] = []
        self.called = asyncio.Event()
        self.has_left = asyncio.Event()
        self.sessions = Sessions(Bounds(), b"k")

    async def read(self, body: bytes, *, tenant: str, upstream: str, session: str | None) -> Any:
        with suppress(UnreadableRequest):
            return split(body)

    async def run(self, call: Call) -> Answer:
        self.calls.append(call)
        self.called.set()
        step = self.script.pop(0)
        if callable(step) and not isinstance(step, Answer):
            step = step(call)
        if inspect.isawaitable(step):
            step = await step
        if isinstance(step, BaseException):
            raise step
        step.turn_id = call.turn_id
        return step

    def client_left(self, turn_id: str) -> None:
        self.left.append(turn_id)
        self.has_left.set()

    def socket_closed(self, socket: str) -> None:
        self.closed_sockets.append(socket)


def stream(
    *events: Any,
    mode: Mode = Mode.WS_INCREMENTAL,
    reason: Reason = Reason.OK,
    headers: Iterable[tuple[str, str]] = (),
) -> Answer:
    """A streamed answer. Events are dicts, ``Event``s, or functions awaited between them."""
    return Answer("", mode, reason, 200, list(headers), events=_events(events))


async def _events(events: Iterable[Any]) -> AsyncIterator[Event]:
    for event in events:
        if isinstance(event, Event):
            yield event
        elif isinstance(event, dict):
            yield Event(json.dumps(event).encode())
        else:
            await event()


def plain(
    status: int,
    body: Any,
    *,
    headers: Iterable[tuple[str, str]] = (("content-type", "application/json"),),
    frame: bytes | None = None,
    mode: Mode | None = Mode.HTTP_FULL,
    reason: Reason | None = Reason.NO_BASELINE,
) -> Answer:
    """A complete answer or an error body."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer("", mode, reason, status, list(headers), body=raw, frame=frame)


class FakeConnection:
    """An upstream connection of a tunnel: frames that are put in, and those that were sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.was_sent = asyncio.Event()
        self.closed = False
        self._incoming: asyncio.Queue[bytes | int] = asyncio.Queue()

    def say(self, *events: dict[str, Any]) -> None:
        for event in events:
            self._incoming.put_nowait(json.dumps(event).encode())

    def end(self, code: int = 1000) -> None:
        self._incoming.put_nowait(code)

    async def send(self, frame: bytes) -> None:
        if self.closed:
            raise ConnectionLost(None, sent=False)
        self.sent.append(frame)
        self.was_sent.set()

    async def receive(self) -> bytes:
        item = await self._incoming.get()
        if isinstance(item, int):
            self.closed = True
            raise ConnectionLost(item, sent=True)
        return item

    def take(self) -> bytes | None:
        return None

    async def ping(self, timeout: float) -> bool:
        return not self.closed

    async def close(self) -> None:
        self.closed = True


class FakeSockets:
    """Opens the connections that it was given, or raises what it was given."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.opened: list[tuple[str, dict[str, str]]] = []

    async def connect(self, url: str, headers: Any, timeout: float) -> Any:
        self.opened.append((url, dict(headers)))
        step = self.steps.pop(0) if self.steps else ConnectFailed("refused")
        if isinstance(step, BaseException):
            raise step
        return step


class Edge:
    """A gateway before a fake driver, with what came out of it."""

    def __init__(
        self,
        *script: Any,
        upstream: str = "http://upstream.test/v1",
        policy: Policy | None = None,
        named: dict[str, str] | None = None,
        sockets: FakeSockets | None = None,
        **options: Any,
    ) -> None:
        self.driver = FakeDriver(*script)
        self.clock = ManualClock()
        self.facts: list[TurnFacts] = []
        self.passed: list[tuple[str, int]] = []
        self.sockets = sockets or FakeSockets()
        policy = policy or Policy()
        ids = itertools.count(1)
        self.gateway = Gateway(
            driver=self.driver,  # type: ignore[arg-type]
            engine_key=ENGINE_KEY,
            upstreams=Upstreams(
                Upstream("default", upstream, policy),
                {name: Upstream(name, url, policy) for name, url in (named or {}).items()},
            ),
            keys=KEYS,
            clock=self.clock,
            new_id=lambda prefix: f"{prefix}_{next(ids)}",
            on_turn=self.facts.append,
            hosts=HostPolicy.for_bind("127.0.0.1"),
            websocket=self.sockets,
            on_pass=lambda name, status: self.passed.append((name, status)),
            **options,
        )

    @property
    def call(self) -> Call:
        return self.driver.calls[-1]

    async def post(self, path: str = "/v1/responses", body: Any = b"{}", **more: Any) -> Exchange:
        return await Exchange(self.gateway, "POST", path, body, **more).run()

    def start(self, path: str = "/v1/responses", body: Any = b"{}", **more: Any) -> Exchange:
        """The same, for a test that acts while the answer is coming."""
        return Exchange(self.gateway, "POST", path, body, **more)

    def socket(self, path: str = "/v1/responses", **more: Any) -> Socket:
        return Socket(self.gateway, path, **more)


def _headers(given: Iterable[tuple[str, str]], host: str | None) -> list[tuple[bytes, bytes]]:
    pairs = [*([("host", host)] if host is not None else []), *given]
    return [(name.encode(), value.encode()) for name, value in pairs]


class Exchange:
    """One HTTP request and its answer."""

    def __init__(
        self,
        app: Any,
        method: str,
        path: str,
        body: Any = b"",
        *,
        headers: Iterable[tuple[str, str]] = (AUTH,),
        host: str | None = "localhost:8787",
        chunks: Iterable[bytes] | None = None,
        query: bytes = b"",
    ) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        pieces = list(chunks) if chunks is not None else [raw]
        self._app = app
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for index, piece in enumerate(pieces):
            more = index + 1 < len(pieces)
            self._messages.put_nowait({"type": "http.request", "body": piece, "more_body": more})
        self._scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "headers": _headers(headers, host),
        }
        self.sent: list[dict[str, Any]] = []
        self.arrived = asyncio.Event()
        self.before_send: Callable[[], Any] | None = None

    async def run(self) -> Exchange:
        async with asyncio.timeout(10):
            await self._app(self._scope, self._messages.get, self._send)
        return self

    def leave(self) -> None:
        self._messages.put_nowait({"type": "http.disconnect"})

    async def _send(self, message: dict[str, Any]) -> None:
        if self.before_send is not None:
            await self.before_send()
        self.sent.append(message)
        self.arrived.set()

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def pieces(self) -> list[bytes]:
        return [message["body"] for message in self.sent[1:] if message["body"]]

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def error(self) -> dict[str, Any]:
        return json.loads(self.body)["error"]

    @property
    def complete(self) -> bool:
        return bool(self.sent) and self.sent[-1].get("more_body") is False


class Socket:
    """One client WebSocket; use it as an asynchronous context."""

    def __init__(
        self,
        app: Any,
        path: str,
        *,
        headers: Iterable[tuple[str, str]] = (AUTH,),
        host: str | None = "localhost:8787",
        denial: bool = True,
    ) -> None:
        self._app = app
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._messages.put_nowait({"type": "websocket.connect"})
        self._received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._scope = {
            "type": "websocket",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": _headers(headers, host),
            "extensions": {"websocket.http.response": {}} if denial else {},
        }
        self.task: asyncio.Task[None] | None = None
        self.sent: list[dict[str, Any]] = []
        self.gone = False

    async def __aenter__(self) -> Self:
        self.task = asyncio.ensure_future(self._app(self._scope, self._messages.get, self._send))
        return self

    async def __aexit__(self, *_error: object) -> None:
        assert self.task is not None
        self.leave()
        async with asyncio.timeout(10):
            await self.task

    async def _send(self, message: dict[str, Any]) -> None:
        if self.gone:
            raise BrokenPipeError
        self.sent.append(message)
        self._received.put_nowait(message)

    def leave(self) -> None:
        self._messages.put_nowait({"type": "websocket.disconnect", "code": 1006})

    def say(self, frame: Any) -> None:
        """Send a frame: a dict, a text, or bytes as a binary frame."""
        kind = "bytes" if isinstance(frame, bytes) else "text"
        value = json.dumps(frame) if isinstance(frame, dict) else frame
        self._messages.put_nowait({"type": "websocket.receive", kind: value})

    async def taken(self) -> None:
        """Wait until the gateway has taken all that was said."""
        while self._messages.qsize():
            await asyncio.sleep(0)

    async def next(self) -> dict[str, Any]:
        """The next ASGI message that the gateway sent."""
        async with asyncio.timeout(10):
            return await self._received.get()

    async def accepted(self) -> Socket:
        assert (await self.next())["type"] == "websocket.accept"
        return self

    async def event(self) -> dict[str, Any]:
        """The next frame, decoded."""
        message = await self.next()
        assert message["type"] == "websocket.send", message
        return json.loads(message["text"])
