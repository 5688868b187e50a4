"""The lines of a file, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import dropwhile
from typing import BinaryIO, NamedTuple

BOM = b"\xef\xbb\xbf"
"""What some tools write before the first line."""
LIMIT = 16 * 1024 * 1024
"""Bytes of a line that is still read."""


class Line(NamedTuple):
    number: int
    """From 1."""
    data: bytes
    """Without its LF; nothing of a line that is too long."""
    whole: bool = True
    """Its end is there. Of a file that is being written the last line may be a part only."""
    too_long: bool = False


def split(file: BinaryIO, limit: int = LIMIT) -> Iterator[Line]:
    """Lines end with LF. A CR before it is left: in a cell of CSV it may be meant."""
    number = 0
    while data := file.readline(limit + 1):
        number += 1
        if len(data) > limit and not data.endswith(b"\n"):
            while data and not data.endswith(b"\n"):
                data = file.readline(limit)
            yield Line(number, b"", whole=bool(data), too_long=True)
        elif data.endswith(b"\n"):
            yield Line(number, data[:-1])
        else:
            yield Line(number, data, whole=False)


def from_first(lines: Iterable[Line]) -> Iterator[Line]:
    """Lines without the blank ones before all others."""
    return dropwhile(lambda line: not (line.too_long or line.data.strip()), lines)
