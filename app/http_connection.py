"""A client's HTTP connection: uvicorn's, with less to do for each turn.

The head of an answer leaves with the first piece of its body: a packet wakes the other side, which
costs more than the bytes in it. An application that has read a request may be told of the client's
departure, instead of having a task wait for it. And a large body may be had as a whole: handed out
by pieces, each of them stops the connection, wakes a task, goes on with it, and is copied twice.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

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


class HttpConnection(HttpToolsProtocol):
    """One connection; requests that come before the last one was answered are uvicorn's alone."""

    _answers: HeadWithBody
    _gathered: _Gathered | None = None
    _listener: Callable[[], None] | None = None
    _is_lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._answers = HeadWithBody(transport)
        self._memory: dict[Any, Any] = {}

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        cycle, scope = self.cycle, cast("dict[str, Any]", self.scope)
        if cycle is None or cycle.scope is not self.scope or self.pipeline:
            return
        scope["extensions"] = {NOTICE: self.listen, BODY: self.body, MEMORY: self._memory}
        if scope["method"] != "HEAD":  # there is no body for that head
            self._answers.begin()
            cycle.transport = cast("asyncio.Transport", self._answers)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._is_lost = True
        if self._gathered is not None:
            self._gathered.end(None)
        if self._listener is not None:
            self._listener()

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
        gathered = self._gathered = _Gathered(first, self._declared(), limit, self.loop)
        try:
            self.flow.resume_reading()
            return await gathered.ended
        finally:
            self._gathered = None

    def _declared(self) -> int:
        length = next((value for name, value in self.headers if name == b"content-length"), b"0")
        return int(length)

    def listen(self, listener: Callable[[], None] | None) -> None:
        """As ``NOTICE`` says."""
        self._listener = listener
        if listener is not None:
            self.flow.resume_reading()  # else nothing would be heard of the client
            if self._is_lost:
                listener()


class _Gathered:
    """A body on its way, in memory of the size that was declared."""

    def __init__(
        self, first: bytes, declared: int, limit: int, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.ended: asyncio.Future[bytes | None] = loop.create_future()
        self._limit, self._size = limit, len(first)
        # Its bytes are taken over at the end, not copied; bytes to begin with would be, at once.
        self._buffer = io.BytesIO()
        if expected := min(declared, limit):
            self._buffer.seek(expected - 1)
            self._buffer.write(b"\0")
            self._buffer.seek(0)
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
        self._buffer.truncate(self._size)
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
