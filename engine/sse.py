"""Cuts a stream of server-sent events into blocks, keeping every byte.

The bytes of a block are relayed as they came; its data is only looked at. All line ends of the
specification (LF, CRLF, CR), comments, several data lines and a missing last newline are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Block(NamedTuple):
    """One block of the stream: its exact bytes, and its data (None: comments only)."""

    raw: bytes
    data: bytes | None


class Splitter:
    """Feed it chunks cut anywhere; it gives whole blocks. ``close`` gives what is left."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._scanned = 0

    def feed(self, chunk: bytes) -> Iterator[Block]:
        self._buffer += chunk
        while (end := self._end_of_block()) is not None:
            raw = bytes(self._buffer[:end])
            del self._buffer[:end]
            self._scanned = 0
            yield _block(raw)

    def close(self) -> Iterator[Block]:
        """The stream ended: an event without its blank line is an event all the same."""
        if self._buffer:
            raw = bytes(self._buffer)
            self._buffer.clear()
            yield _block(raw)

    @property
    def held(self) -> int:
        """Bytes that wait for the rest of their block."""
        return len(self._buffer)

    def _end_of_block(self) -> int | None:
        """Where the first block ends, its blank line included; None while it is not whole."""
        at = self._scanned
        buffer = self._buffer
        while True:
            line_end = _line_end(buffer, at)
            if line_end is None:
                self._scanned = at
                # A lone CR ends a blank line at once; its LF, if one follows, opens the next block.
                return at + 1 if 0 < at < len(buffer) and buffer[at] == 0x0D else None
            if buffer[at] in b"\r\n" and at > 0:
                return line_end
            at = line_end


def _line_end(buffer: bytearray, at: int) -> int | None:
    """Index after the line that begins at ``at``; None if its end, or a CR's LF, is still out."""
    newline, carriage = buffer.find(b"\n", at), buffer.find(b"\r", at)
    if carriage != -1 and (newline == -1 or carriage < newline):
        if carriage + 1 == len(buffer):
            return None
        return carriage + (2 if buffer[carriage + 1] == 0x0A else 1)
    return None if newline == -1 else newline + 1


def _block(raw: bytes) -> Block:
    raw_text = raw.removeprefix(b"\xef\xbb\xbf")
    lines = raw_text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    data = [
        line[6:] if line.startswith(b"data: ") else line[5:]
        for line in lines
        if line.startswith(b"data:")
    ]
    return Block(raw, b"\n".join(data) if data else None)
