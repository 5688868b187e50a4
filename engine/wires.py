"""The events of one answer, whatever wire they come over: a socket, an HTTP stream, or here."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from typing import Protocol

import msgspec

from engine.errors import ConnectionLost, UpstreamError
from engine.sse import Block, Splitter
from engine.transports.base import Connection, Headers, HttpAnswer
from engine.turn import Event

_TRAILER_SECONDS = 2.0
"""How long an HTTP stream may go on after its terminal event, for ``[DONE]`` and its end."""


class Wire(Protocol):
    async def next(self) -> Event:
        """The next event. Raises ``ConnectionLost`` where the stream ends before its terminal."""

    def take(self) -> Event | None:
        """The next event where it is there already; None where it has to be waited for."""

    def rest(self) -> AsyncGenerator[Event, None] | None:
        """What still follows the terminal event. None where that is nothing."""

    async def close(self) -> None: ...


class SocketWire:
    """A turn on an upstream WebSocket: the connection outlives it."""

    def __init__(self, connection: Connection) -> None:
        self._receive, self._take = connection.receive, connection.take

    async def next(self) -> Event:
        return Event(await self._receive())

    def take(self) -> Event | None:
        data = self._take()
        return None if data is None else Event(data)

    def rest(self) -> None:
        """Nothing: what comes then is not of this turn."""

    async def close(self) -> None:
        """Nothing to do: whether the connection is kept is the chain's affair."""


class HttpWire:
    """An HTTP answer: a stream of events, or one body."""

    def __init__(self, answer: HttpAnswer) -> None:
        self._answer = answer
        self._chunks = answer.chunks()
        self._splitter = Splitter()
        self._blocks: deque[Block] = deque()

    async def next(self) -> Event:
        while not self._blocks:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                self._blocks.extend(filter(_is_whole, self._splitter.close()))
                if not self._blocks:
                    raise ConnectionLost(None, sent=True)
            else:
                self._blocks.extend(self._splitter.feed(chunk))
        return _event(self._blocks.popleft())

    def take(self) -> Event | None:
        return _event(self._blocks.popleft()) if self._blocks else None

    async def rest(self) -> AsyncGenerator[Event, None]:
        with suppress(UpstreamError, TimeoutError):
            async with asyncio.timeout(_TRAILER_SECONDS):
                while True:
                    yield await self.next()

    async def whole(self) -> bytes:
        body = bytearray()
        async for chunk in self._chunks:
            body += chunk
        return bytes(body)

    async def close(self) -> None:
        await self._answer.close()


def _is_whole(block: Block) -> bool:
    """A stream may end without its last blank line, but not in the middle of an event."""
    if block.data is None:
        return False
    try:
        msgspec.json.decode(block.data)
    except (msgspec.MsgspecError, RecursionError):
        return block.data == b"[DONE]"
    return True


def _event(block: Block) -> Event:
    data = block.data
    return Event(b"" if data is None or data == b"[DONE]" else data, block.raw)


class LocalWire:
    """Events that are made here."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._events = deque(events)

    async def next(self) -> Event:
        return self._events.popleft()

    def take(self) -> Event | None:
        return self._events.popleft() if self._events else None

    async def rest(self) -> AsyncGenerator[Event, None]:
        while self._events:
            yield self._events.popleft()

    async def close(self) -> None:
        """Nothing is open."""


def local_warmup(response_id: str, model: str | None) -> LocalWire:
    """A warm-up answered without the upstream, which has only HTTP and would generate."""
    response: dict[str, object] = {
        "id": response_id,
        "object": "response",
        "model": model,
        "output": [],
    }
    created = {**response, "status": "in_progress"}
    completed = {**response, "status": "completed"}
    return LocalWire(
        Event(json.dumps({"type": type_, "sequence_number": n, "response": state}).encode())
        for n, (type_, state) in enumerate(
            (("response.created", created), ("response.completed", completed))
        )
    )


def is_stream(headers: Headers) -> bool:
    """Whether an answer to a streaming request is one: only a JSON body is not (CASES 69)."""
    content_type = next((value for name, value in headers if name == "content-type"), "")
    return "json" not in content_type


_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "date",
        "server",
    }
)


def end_to_end(headers: Headers) -> list[tuple[str, str]]:
    """The headers of an answer that are the client's: not those of the hop."""
    return [(name, value) for name, value in headers if name not in _HOP_BY_HOP]
