"""A connection of the ``websockets`` library that takes plain text frames past its parser.

The library reads frames with a generator of Python code and hands each of them on in several steps,
which costs more than everything else that is done with an event. Almost all frames of a provider
are whole, unfragmented text frames; these are cut out here. Every other frame (pings, closes,
fragments, whatever breaks the protocol) is the library's, whole and in its place in the order, so
that it alone knows what the protocol asks for. Tests compare the two on any stream, cut anywhere.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.protocol import State

_FINAL_TEXT = 0x81
_SIZE_IN_TWO_BYTES = 126
_HIGH, _LOW = 256 * 1024, 64 * 1024
"""Bytes of messages that wait: above the first nothing more is read, until below the second."""
_SHORT = 32 * 1024
"""Bytes of a frame that is sent without looking whether the other side takes it."""


class QuickConnection(ClientConnection):
    """Pass it to ``connect`` as ``create_connection``; read it by ``receive`` and ``take`` only."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._is_quick = False
        """The library is between two frames. Without it all that comes is the library's."""
        self._held = bytearray()
        """The beginning of a frame whose end is still out."""
        self._awaited = 0
        """Bytes that have to be held before the frame can be whole."""
        self._fragments: list[bytes] = []
        self._messages: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._is_paused = False
        self._reader: asyncio.Future[None] | None = None

    # For the reader

    def take(self) -> bytes | None:
        """A message that is there already."""
        if not self._messages:
            return None
        message = self._messages.popleft()
        self._waiting_bytes -= len(message)
        if self._is_paused and self._waiting_bytes < _LOW:
            self._is_paused = False
            self.transport.resume_reading()
        return message

    async def receive(self) -> bytes:
        """The next message. Raises the library's ``ConnectionClosed``; may be cancelled safely."""
        while True:
            message = self.take()
            if message is not None:
                return message
            if not self._is_quick:
                return await self.recv(decode=False)
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # For the sender

    def send_at_once(self, frame: bytes) -> bool:
        """Send a short text frame where nothing is to be waited for.

        False where something is, or the connection is no longer open: then the library has to.
        """
        protocol = self.protocol
        if (
            protocol.state is not State.OPEN
            or self.paused
            or self.send_in_progress is not None
            or len(frame) > _SHORT
        ):
            return False
        protocol.send_text(frame)
        self.send_data()
        return True

    # For the network

    def data_received(self, data: bytes) -> None:
        if not self._is_quick:
            shakes_hands = self.response is None
            super().data_received(data)
            if shakes_hands:
                self._is_quick = self.response is not None and _is_head_only(data)
            return
        if self._held:
            self._held += data
            if len(self._held) < self._awaited:
                return
            data = bytes(self._held)
            self._held.clear()
        at = self._read(data)
        if at < len(data):
            if self._is_quick:
                self._held += memoryview(data)[at:]
            else:
                super().data_received(data[at:])
        if self._waiting_bytes > _HIGH and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()
        if self._messages or not self._is_quick:
            self._wake()

    def _read(self, data: bytes) -> int:
        """Deal with the whole frames that ``data`` begins with; where the rest begins."""
        protocol, messages = self.protocol, self._messages
        most = protocol.max_message_size or sys.maxsize
        at, size = 0, len(data)
        self._awaited = 0
        while protocol.state is State.OPEN:
            # Text of 126 to 65,535 bytes, one after the other: nearly all that comes.
            while at + 4 <= size and data[at] == _FINAL_TEXT and data[at + 1] == _SIZE_IN_TWO_BYTES:
                length = data[at + 2] << 8 | data[at + 3]
                end = at + 4 + length
                if end > size or length > most or self._fragments:
                    break
                messages.append(data[at + 4 : end])
                self._waiting_bytes += length
                at = end
            start = at + 2
            if size < start:
                return at
            length = data[at + 1]
            if length >= 126:
                start += 2 if length == 126 else 8
                if size < start:
                    return at
                if length > 127:
                    break  # a mask
                length = int.from_bytes(data[at + 2 : start], "big")
            end = start + length
            if length > most:
                break
            if end > size:
                self._awaited = end - at
                return at
            if data[at] == _FINAL_TEXT and not self._fragments:
                messages.append(data[start:end])
                self._waiting_bytes += length
            else:
                self._leave(data[at:end])
            at = end
        self._is_quick = False
        return at

    def _leave(self, frame: bytes) -> None:
        """A frame for the library; what it makes a message of is a message in its place."""
        super().data_received(frame)
        parts = self.recv_messages.frames.queue
        while parts:
            part = parts.popleft()
            self._fragments.append(bytes(part.data))
            if part.fin:
                message = b"".join(self._fragments)
                self._fragments.clear()
                self._messages.append(message)
                self._waiting_bytes += len(message)

    def eof_received(self) -> None:
        self._give_up()
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._give_up()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        """The frame that is held will never be whole: what that means, the library knows."""
        if self._is_quick:
            self._is_quick = False
            held = bytes(self._held)
            self._held.clear()
            if held:
                super().data_received(held)
            self._wake()


def _is_head_only(data: bytes) -> bool:
    """The answer to the upgrade came in one piece, and no frame with it."""
    return data.startswith(b"HTTP/") and data.find(b"\r\n\r\n") == len(data) - 4
