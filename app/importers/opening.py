"""Files as they lie there: plain, or compressed with gzip or zstd, told by their first bytes."""

from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol, cast

import zstandard

from app.importers.importer import NotReadable

_WINDOW = 1 << 27
"""The largest window that ``zstd`` itself reads without being asked to."""


Watch = Callable[[int], None]
"""Told how many bytes of what is in a file were read; what it raises ends the reading."""


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
def opened(path: Path, watch: Watch | None = None) -> Iterator[Opened]:
    """A file to read from its beginning. Raises ``NotReadable``; reading may raise ``Damaged``."""
    try:
        raw = path.open("rb")
        size = path.stat().st_size
    except OSError as error:
        raise NotReadable(f"It cannot be read ({error.strerror}).") from None
    with raw:
        head = raw.peek(4)
        file = raw
        for begins, form in _FORMATS.items():
            if head.startswith(begins):
                file = io.BufferedReader(_Inflating(raw, form), 65_536)
        if watch is not None:
            file = io.BufferedReader(_Watched(file, watch), 65_536)
        yield Opened(cast("BinaryIO", file), size, raw.tell)


class _Decompressor(Protocol):
    """One compressed stream of several that may follow each other: zlib's, or zstandard's."""

    def decompress(self, data: bytes, /) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...


class _Format(NamedTuple):
    begin: Callable[[], _Decompressor]
    piece: int
    """Compressed bytes to pass at once: few enough that what they become fits into memory, even
    if somebody has made them to be as much as they can."""


_FORMATS = {
    b"\x1f\x8b": _Format(lambda: zlib.decompressobj(wbits=31), 16_384),
    b"\x28\xb5\x2f\xfd": _Format(
        lambda: zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj(), 1_024
    ),
}
"""By the first bytes of a file."""


class _Watched(io.RawIOBase):
    def __init__(self, file: io.BufferedReader, watch: Watch) -> None:
        self._file = file
        self._watch = watch

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto1(buffer)
        self._watch(count)
        return count


class _Inflating(io.RawIOBase):
    def __init__(self, raw: BinaryIO, form: _Format) -> None:
        self._raw = raw
        self._form = form
        self._stream: _Decompressor | None = None
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
            data = self._left or self._raw.read(self._form.piece)
            if not data.strip(b"\x00"):  # some tools pad what they have written
                return False
            self._stream = self._form.begin()
        else:
            data = self._raw.read(self._form.piece)
            if not data:
                raise Damaged("its compressed data end early")
        try:
            self._ready = memoryview(self._stream.decompress(data))
        except (zlib.error, zstandard.ZstdError):
            raise Damaged("its compressed data are damaged") from None
        if self._stream.eof:
            self._left, self._stream = self._stream.unused_data, None
        return True
