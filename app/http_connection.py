"""A client's HTTP connection: uvicorn's, with less to do for each turn.

The head of an answer leaves with the first piece of its body: a packet wakes the other side, which
costs more than the bytes in it. And an application that has read a request may be told of the
client's departure, instead of having a task wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

NOTICE = "warmline.departure"
"""The name of an extension in the scope of a request: a function that takes who is to be told when
the client has gone, or None. It may be called once the request's body was read."""


class HttpConnection(HttpToolsProtocol):
    """One connection; requests that come before the last one was answered are uvicorn's alone."""

    _answers: HeadWithBody
    _listener: Callable[[], None] | None = None
    _is_lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._answers = HeadWithBody(transport)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        cycle, scope = self.cycle, cast("dict[str, Any]", self.scope)
        if cycle is None or cycle.scope is not self.scope or self.pipeline:
            return
        scope["extensions"] = {NOTICE: self.listen}
        if scope["method"] != "HEAD":  # there is no body for that head
            self._answers.begin()
            cycle.transport = cast("asyncio.Transport", self._answers)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._is_lost = True
        if self._listener is not None:
            self._listener()

    def listen(self, listener: Callable[[], None] | None) -> None:
        """As ``NOTICE`` says."""
        self._listener = listener
        if listener is not None:
            self.flow.resume_reading()  # else nothing would be heard of the client
            if self._is_lost:
                listener()


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
