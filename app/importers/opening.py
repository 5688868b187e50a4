"""Files as they lie there: plain, or compressed with gzip or zstd, told by their first bytes."""

from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

import zstandard

from app.importers.importer import NotReadable

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_WINDOW = 1 << 27
"""The largest window that ``zstd`` itself reads without being asked to."""


class Damaged(OSError):
    """Compressed data that end early or are none; what came before was good."""


@dataclass(frozen=True, slots=True)
class Opened:
    file: BinaryIO
    """What is in the file, decompressed."""
    size: int
    """Bytes of the file as it lies there."""
    position: Callable[[], int]
    """How many of these are read."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """A file to read from its beginning. Raises ``NotReadable``; reading may raise ``Damaged``."""
    try:
        raw = path.open("rb")
        size = path.stat().st_size
    except OSError as error:
        raise NotReadable(f"It cannot be read ({error.strerror}).") from None
    with raw:
        head = raw.peek(4)
        file: BinaryIO = raw
        if head.startswith(_GZIP):
            file = _inflating(raw, _Gzip)
        elif head.startswith(_ZSTD):
            file = _inflating(raw, _Zstd)
        yield Opened(file, size, raw.tell)


class _Stream(Protocol):
    """One compressed stream of several that may follow each other."""

    piece: int
    """Compressed bytes to pass at once: few enough that what they become fits into memory, even
    if somebody has made them to be as much as they can."""

    def decompress(self, data: bytes) -> bytes: ...
    @property
    def ended(self) -> bool: ...
    @property
    def unused(self) -> bytes: ...


class _Gzip:
    piece = 16_384

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes) -> bytes:
        return self._stream.decompress(data)

    @property
    def ended(self) -> bool:
        return self._stream.eof

    @property
    def unused(self) -> bytes:
        return self._stream.unused_data


class _Zstd:
    piece = 1_024

    def __init__(self) -> None:
        self._stream = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()

    def decompress(self, data: bytes) -> bytes:
        return self._stream.decompress(data)

    @property
    def ended(self) -> bool:
        return self._stream.eof

    @property
    def unused(self) -> bytes:
        return self._stream.unused_data


def _inflating(raw: BinaryIO, stream: Callable[[], _Stream]) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(_Inflating(raw, stream), 65_536))


class _Inflating(io.RawIOBase):
    def __init__(self, raw: BinaryIO, stream: Callable[[], _Stream]) -> None:
        self._raw = raw
        self._new = stream
        self._stream: _Stream | None = None
        self._ready = memoryview(b"")
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if not self._advance():
                return 0
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _advance(self) -> bool:
        """Decompress a little more; False at the end."""
        if self._stream is None:
            data = self._left or self._raw.read(self._new().piece)
            if not data.strip(b"\x00"):  # some tools pad what they have written
                return False
            self._stream = self._new()
        else:
            data = self._raw.read(self._stream.piece)
            if not data:
                raise Damaged("its compressed data end early")
        try:
            self._ready = memoryview(self._stream.decompress(data))
        except (zlib.error, zstandard.ZstdError):
            raise Damaged("its compressed data are damaged") from None
        if self._stream.ended:
            self._left, self._stream = self._stream.unused, None
        return True
