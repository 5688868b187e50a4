"""A client's HTTP connection: uvicorn's, with less to do for each turn.

The head of an answer leaves with the first piece of its body: a packet wakes the other side, which
costs more than the bytes in it. An application that has read a request may be told of the client's
departure, instead of having a task wait for it. And a large body may be had as a whole: handed out
by pieces, each of them stops the connection, wakes a task, goes on with it, and is copied three
times. Where its length was declared, the system writes it where it stays.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from websockets.http11 import MAX_LINE_LENGTH, MAX_NUM_HEADERS

from app.errors import AppError
from app.memory import unwritten

NOTICE = "warmline.departure"
"""The name of an extension in the scope of a request: a function that takes who is to be told when
the client has gone, or None. It may be called once the request's body was read."""
BODY = "warmline.body"
"""The name of another: a coroutine function that takes the request's ``receive`` and a limit in
bytes, and gives the whole body, or None where the client left before its end. Raises
``OverflowError`` beyond the limit."""
MEMORY = "warmline.memory"
"""The name of a third: a dictionary for what was worked out of a request's head. It is the
connection's own, since one client sends much the same time and again."""

STALL_SECONDS = 60
"""So long, and up to twice as long, a client may say nothing more of a body that it has begun, or
take for the head of a request, its first one included."""
_SMALL = memoryview(bytearray(64 * 1024))
"""Where the system writes what the parser reads next, of whatever connection: a small piece, since
the parser copies what it hands out of a body, as others do after it. Event loops would read four
times as much."""
_PIECE = 4 * 1024 * 1024
"""Bytes that are taken from the system in one go: it takes one to two milliseconds."""


class HttpConnection(HttpToolsProtocol):
    """One connection; requests that come before the last one was answered are uvicorn's alone."""

    _answers: HeadWithBody
    _gathered: _Gathered | None = None
    _listener: Callable[[], None] | None = None
    _is_lost = False
    _requests = 0
    _awaited: tuple[int, ...] | None = None
    heard = 0
    """Pieces that came of the client."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._parsed = _Parsed(self)
        transport.set_protocol(self._parsed)
        self._answers = HeadWithBody(transport)
        self._memory: dict[Any, Any] = {}
        self._look_later()

    def data_received(self, data: bytes) -> None:
        self.heard += 1
        super().data_received(data)

    def _look_later(self) -> None:
        """One look at times, since a timer for each piece would cost more than the piece."""
        self._next_look = self.loop.call_later(STALL_SECONDS, self._look)

    def _look(self) -> None:
        before, self._awaited = self._awaited, self._await()
        if self._awaited is None or self._awaited != before:
            self._look_later()
        elif self.cycle is None or self.cycle.response_started:
            self.transport.close()
        else:
            self._refuse(
                AppError("request_timeout", "The rest of this request did not come.", status=408)
            )

    def _await(self) -> tuple[int, ...] | None:
        """What changes as long as the client goes on; None where nothing is awaited of it."""
        if self.cycle is None or self.cycle.response_complete:
            return None if self.timeout_keep_alive_task is not None else (self._requests,)
        if not self.cycle.more_body or self.flow.read_paused:
            return None
        return self._requests, self.heard

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  (uvicorn's signature)
        self._refuse(
            AppError(
                "bad_request",
                "This is no HTTP request that can be served.",
                "One that offers an upgrade has no body.",
            )
        )

    def handle_websocket_upgrade(self) -> None:
        if _is_beyond_websockets(self.url, self.headers):
            # At this status clients go on over HTTP, which takes longer heads.
            self._refuse(
                AppError(
                    "head_too_large",
                    "The head of this upgrade is too large for a WebSocket.",
                    "Send the request as a POST to the same path.",
                    status=426,
                )
            )
        else:
            self._next_look.cancel()
            super().handle_websocket_upgrade()
            self._let_go()

    def _should_upgrade(self) -> bool:
        is_get = self.parser.get_method() == b"GET"  # else it is a request like any other
        return is_get and not self._has_body() and super()._should_upgrade()

    def _refuse(self, error: AppError) -> None:
        """Answer beside the application, as the last thing on this connection."""
        body = json.dumps(error.as_dict()).encode()
        head = (
            *self.server_state.default_headers,
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        )
        lines = b"".join(b"%b: %b\r\n" % of for of in head)
        self.transport.write(STATUS_LINE[error.status] + lines + b"\r\n" + body)
        self.transport.close()

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade() and not self._should_upgrade() and self._has_body():
            # The parser takes the head for the whole request, and its body for the next one.
            raise ValueError("a body behind an upgrade that is not made")
        self.headers = self.headers.copy()  # what stands behind a body is no part of the head
        super().on_headers_complete()
        self._requests += 1
        cycle, scope = self.cycle, cast("dict[str, Any]", self.scope)
        if cycle is None or cycle.scope is not self.scope or self.pipeline:
            return
        scope["extensions"] = {NOTICE: self.listen, BODY: self.body, MEMORY: self._memory}
        if scope["method"] != "HEAD":  # there is no body for that head
            self._answers.begin()
            cycle.transport = cast("asyncio.Transport", self._answers)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._next_look.cancel()
        self._is_lost = True
        if self._gathered is not None:
            self._gathered.end(None)
        if self._listener is not None:
            self._listener()
        self._let_go()

    def _let_go(self) -> None:
        """Each of these holds this connection, which is not to wait for the cyclic collector."""
        self.cycle = self.scope = self.parser = None  # type: ignore[assignment]
        self._parsed = self._listener = None  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        if self._gathered is None:
            super().on_body(body)
        elif not self._gathered.take(body):
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        if self._gathered is not None:
            self._gathered.complete()
            self._gathered = None  # what comes in the same packet is of another request
        super().on_message_complete()

    async def body(self, receive: Callable[[], Awaitable[Any]], limit: int) -> bytes | None:
        """As ``BODY`` says."""
        message = await receive()
        if message["type"] != "http.request":
            return None
        first: bytes = message["body"]
        if len(first) > limit:
            raise OverflowError
        if not message["more_body"]:
            return first
        if len(first) < (declared := self._declared()):
            if declared > limit:
                raise OverflowError
            return await self._filled(first, declared)
        gathered = self._gathered = _Gathered(first, limit, self.loop)
        try:
            self.flow.resume_reading()
            return await gathered.ended
        finally:
            self._gathered = None

    def _has_body(self) -> bool:
        chunked = any(name == b"transfer-encoding" for name, _ in self.headers)
        return chunked or self._declared() > 0

    def _declared(self) -> int:
        """0 for a body that comes in chunks, whose length nobody knows."""
        length = next((value for name, value in self.headers if name == b"content-length"), b"0")
        return int(length)

    async def _filled(self, first: bytes, declared: int) -> bytes | None:
        """The body that begins so: what is left of it does not go through the parser."""
        filled = _Filled(self, first, declared)
        self.transport.set_protocol(filled)
        self.flow.resume_reading()
        try:
            is_complete = await filled.ended
        except asyncio.CancelledError:
            self.transport.close()  # the parser cannot tell where the next request begins
            raise
        return filled.body() if is_complete else None

    def after_body(self) -> None:
        """All of a body was received beside the parser; what comes now is another request."""
        self.transport.set_protocol(self._parsed)
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self.on_message_complete()

    def listen(self, listener: Callable[[], None] | None) -> None:
        """As ``NOTICE`` says."""
        self._listener = listener
        if listener is not None:
            self.flow.resume_reading()  # else nothing would be heard of the client
            if self._is_lost:
                listener()


def _is_beyond_websockets(url: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether the library for WebSockets would give up a head, without an answer."""
    lines = [len(name) + len(value) + len(b": \r\n") for name, value in headers]
    lines.append(len(b"GET  HTTP/1.1\r\n") + len(url))
    return len(headers) > MAX_NUM_HEADERS or max(lines) > MAX_LINE_LENGTH


class _InPlace(asyncio.BufferedProtocol):
    """What receives in the place of a connection."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)


class _Parsed(_InPlace):
    """All but large bodies."""

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  (asyncio's signature)
        return _SMALL

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.data_received(bytes(_SMALL[:nbytes]))


class _Filled(_InPlace):
    """A body, in memory that becomes the body."""

    def __init__(self, connection: HttpConnection, first: bytes, size: int) -> None:
        super().__init__(connection)
        self._memory = io.BytesIO(unwritten(size))  # is taken over, not copied
        self._left = self._memory.getbuffer()
        self._left[: len(first)] = first
        self._left = self._left[len(first) :]
        self.ended: asyncio.Future[bool] = connection.loop.create_future()
        """Whether all of it came."""

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  (asyncio's signature)
        return self._left[:_PIECE]

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.heard += 1
        self._left = self._left[nbytes:]
        if not self._left:
            self._left = memoryview(b"")  # memory that can be written to would be copied
            self._connection.after_body()
            self._end(complete=True)

    def body(self) -> bytes:
        """Once ``ended`` was told: while asyncio is in ``buffer_updated`` it would be copied."""
        return self._memory.getvalue()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end(complete=False)

    def _end(self, *, complete: bool) -> None:
        if not self.ended.done():
            self.ended.set_result(complete)


class _Gathered:
    """A body on its way, of a length that nobody knows before its end."""

    def __init__(self, first: bytes, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        self.ended: asyncio.Future[bytes | None] = loop.create_future()
        self._limit, self._size = limit, len(first)
        self._buffer = io.BytesIO()  # its bytes are taken over at the end, not copied
        self._buffer.write(first)

    def take(self, piece: bytes) -> bool:
        """False where nothing more is to come."""
        self._size += len(piece)
        if self._size > self._limit:
            if not self.ended.done():
                self.ended.set_exception(OverflowError())
            return False
        self._buffer.write(piece)
        return True

    def complete(self) -> None:
        self.end(self._buffer.getvalue())

    def end(self, body: bytes | None) -> None:
        if not self.ended.done():
            self.ended.set_result(body)


class HeadWithBody:
    """A transport, as far as the server's answers use it, that sends the head with what follows.

    A write follows each head, be it an empty one, or the connection is closed.
    """

    __slots__ = ("_head", "_is_next", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._is_next = False
        self._head = b""

    def begin(self) -> None:
        """The next write is the head of an answer."""
        self._is_next = True

    def write(self, data: bytes) -> None:
        if self._is_next and not data.startswith(b"HTTP/1.1 100 "):
            self._is_next, self._head = False, data
        elif self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        else:
            self._transport.write(data)

    def close(self) -> None:
        if self._head:
            self.write(b"")
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()
