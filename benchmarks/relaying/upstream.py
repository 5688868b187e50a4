"""The scripted provider: answers every request with the same events, over HTTP or a WebSocket.

It reads no more of a request than where it ends, so that it is not what is measured. Each of its
ports answers at a pace of its own.

    python -m benchmarks.relaying.upstream PORT=SECONDS_BETWEEN_EVENTS …
"""

from __future__ import annotations

import asyncio
import base64
import gc
import hashlib
import itertools
import re
import sys
import time
from collections.abc import Iterator

from benchmarks.relaying.script import Answer

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_KEY = re.compile(rb"sec-websocket-key: *(\S+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"transfer-encoding: *chunked", re.IGNORECASE)
_END = b"0\r\n\r\n"
_SOCKET, _STREAM = Answer.of(websocket=True), Answer.of(websocket=False)
_numbers = itertools.count(1)


class Provider(asyncio.BufferedProtocol):
    """One connection."""

    _room = bytearray(1 << 20)  # shared: what was read is looked at before the next read

    def __init__(self, gap: float) -> None:
        self._gap = gap
        self._is_socket = False
        self._head = bytearray()
        self._skip = 0
        self._until_end = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, _sizehint: int) -> bytearray:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        at = 0
        if self._skip and self._skip >= nbytes:
            self._skip -= nbytes
            if not self._skip:
                self._answer()
            return
        if self._skip:
            at, self._skip = self._skip, 0
            self._answer()
        self._head += memoryview(self._room)[at:nbytes]
        while self._head and (self._frame() if self._is_socket else self._request()):
            pass

    def _request(self) -> bool:
        """Take the head of a request; False while it is not there as a whole."""
        if self._until_end:
            if not self._head.endswith(_END):
                del self._head[:-8]
                return False
            self._head.clear()
            self._until_end = False
            self._answer()
            return False
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._head[: end + 4])
        del self._head[: end + 4]
        key = _KEY.search(head)
        if key is not None:
            self._upgrade(key[1])
            return True
        if _CHUNKED.search(head):
            self._until_end = True
            return True
        length = _LENGTH.search(head)
        self._take(int(length[1]) if length else 0)
        return True

    def _upgrade(self, key: bytes) -> None:
        accept = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())
        assert self._transport is not None
        self._transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-accept: " + accept + b"\r\n\r\n"
        )
        self._is_socket = True

    def _frame(self) -> bool:
        """Take the head of a frame, which its payload follows; pings and closes are small."""
        data = self._head
        if len(data) < 2:
            return False
        code, size, at = data[0] & 15, data[1] & 127, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(data) < 2 + width:
                return False
            size, at = int.from_bytes(data[2 : 2 + width], "big"), 2 + width
        at += 4
        if code in (8, 9):
            if len(data) < at + size:
                return False
            mask = data[at - 4 : at]
            text = bytes(b ^ mask[i % 4] for i, b in enumerate(data[at : at + size]))
            del data[: at + size]
            assert self._transport is not None
            self._transport.write(bytes((0x8A if code == 9 else 0x88, len(text))) + text)
            if code == 8:
                self._transport.close()
            return True
        if len(data) < at:
            return False
        del data[:at]
        self._take(size)
        return True

    def _take(self, size: int) -> None:
        """Let ``size`` bytes pass; then answer."""
        here = min(size, len(self._head))
        del self._head[:here]
        self._skip = size - here
        if not self._skip:
            self._answer()

    def _answer(self) -> None:
        assert self._transport is not None
        number = next(_numbers)
        answer = _SOCKET if self._is_socket else _STREAM
        if not self._is_socket:
            self._transport.write(_HEAD)
        loop = asyncio.get_running_loop()
        if self._gap:
            self._pace(answer, 0, number, loop.time(), loop)
        else:
            self._hurry(iter(answer.burst(number)), loop)

    def _hurry(self, pieces: Iterator[bytes], loop: asyncio.AbstractEventLoop) -> None:
        """One event for each connection in turn, so that each event is a packet of its own."""
        assert self._transport is not None
        piece = next(pieces, None)
        if piece is not None:
            self._transport.write(piece)
            loop.call_soon(self._hurry, pieces, loop)
        elif not self._is_socket:
            self._transport.write(_END)

    def _pace(
        self, answer: Answer, at: int, number: int, due: float, loop: asyncio.AbstractEventLoop
    ) -> None:
        """One event, and the next one when it is due."""
        transport = self._transport
        assert transport is not None
        if transport.is_closing():
            return
        piece = answer.piece(at, number, time.monotonic_ns())
        if at + 1 < len(answer.pieces):
            transport.write(piece)
            due += self._gap
            loop.call_at(due, self._pace, answer, at + 1, number, due, loop)
        else:
            transport.write(piece if self._is_socket else piece + _END)


async def serve(ports: dict[int, float]) -> None:
    loop = asyncio.get_running_loop()
    for port, gap in ports.items():
        await loop.create_server(lambda gap=gap: Provider(gap), "127.0.0.1", port, backlog=2048)
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    gc.disable()
    gaps = (argument.split("=") for argument in sys.argv[1:])
    asyncio.run(serve({int(port): float(gap) for port, gap in gaps}))
