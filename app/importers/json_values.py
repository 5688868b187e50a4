"""JSON objects that do not lie one a line: in an array, or printed over many lines.

APIs answer with an array on a single line, however long, and tools print objects with indents. What
is found of either is given as ``lines.split`` gives lines, each object as one, in memory that does
not grow with the file. Files that have one object a line are read as such: there a torn line costs
no more than itself.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import BinaryIO, cast

from app.importers import lines
from app.importers.lines import BOM, LIMIT, Line

_CHUNK = 1 << 20
_HEAD = 10
"""Objects at the beginning of a file that tell its format."""
_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
"""A string up to its end, or to the end of what there is of it."""


def split(file: BinaryIO, limit: int = LIMIT) -> Iterator[Line]:
    """The objects of a file, by the numbers of the lines where they begin."""
    if one_a_line(cast("io.BufferedReader", file).peek(1)):
        yield from lines.split(file, limit)
        return
    objects = _Objects(limit)
    while chunk := file.read(_CHUNK):
        yield from objects.feed(chunk)
    yield from objects.rest()


def first_objects(head: bytes) -> list[bytes]:
    """The first objects of a file that begins so; the last of them may be a part only."""
    if one_a_line(head):
        return head.removeprefix(BOM).split(b"\n", _HEAD)[:_HEAD]
    objects = _Objects(LIMIT)
    return [line.data for line in [*objects.feed(head), *objects.rest()][:_HEAD]]


def one_a_line(head: bytes) -> bool:
    """Whether a file that begins so is to be read by lines: it is no array, and its first line is
    more than an opening brace."""
    text = head.removeprefix(BOM).lstrip()
    return text[:1] != b"[" and text.split(b"\n", 1)[0].strip() != b"{"


class _Objects:
    """Objects as their bytes come: those at the top, and those of an array at the top."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = b""
        self._at = 0
        """Bytes of it that are looked at."""
        self._line = 1
        self._line_at = 0
        """The line of the byte here; what comes after it is not counted yet."""
        self._depth = 0
        """How many brackets are open."""
        self._in_array = False
        """The first of these is an array's."""
        self._in_string = False
        self._start: int | None = None
        """Where in the buffer the present object begins."""
        self._start_line = 1
        self._too_long = False

    def feed(self, chunk: bytes) -> Iterator[Line]:
        self._buffer += chunk
        while (place := self._next()) is not None:
            if (line := self._bracket(place)) is not None:
                yield line
        self._shorten()

    def rest(self) -> Iterator[Line]:
        """An object that has no end."""
        if self._start is not None:
            data = b"" if self._too_long else self._buffer[self._start :]
            yield Line(self._start_line, data, whole=False, too_long=self._too_long)

    def _next(self) -> int | None:
        """The next bracket that is not in a string; None if there is none yet."""
        while True:
            if self._in_string:
                found = _INSIDE.match(self._buffer, self._at)
                assert found is not None
                self._at = found.end()
                if self._buffer[self._at : self._at + 1] != b'"':
                    return None
                self._in_string, self._at = False, self._at + 1
            found = _OUTSIDE.search(self._buffer, self._at)
            if found is None:
                self._at = len(self._buffer)
                return None
            self._at = found.end()
            if found[0] != b'"':
                return found.start()
            self._in_string = True

    def _bracket(self, place: int) -> Line | None:
        bracket = self._buffer[place]
        if bracket in b"{[":
            if bracket == ord("{") and self._start is None and self._is_outer():
                self._start = place
                self._count(place)
                self._start_line = self._line
            if not self._depth:
                self._in_array = bracket == ord("[")
            self._depth += 1
            return None
        self._depth = max(0, self._depth - 1)
        if self._start is None or not self._is_outer():
            return None
        too_long = self._too_long or place - self._start >= self._limit
        data = b"" if too_long else self._buffer[self._start : place + 1]
        line = Line(self._start_line, data, too_long=too_long)
        self._start, self._too_long = None, False
        return line

    def _is_outer(self) -> bool:
        """Whether an object here is one of those that are looked for."""
        return self._depth == 0 or (self._depth == 1 and self._in_array)

    def _shorten(self) -> None:
        """Forget what is not needed any more: what lies before the present object, and all of it
        where it is too long."""
        keep = self._at if self._start is None else self._start
        if self._start is not None and len(self._buffer) - self._start > self._limit:
            self._too_long, keep = True, self._at
        elif self._too_long:
            keep = self._at
        self._count(keep)
        self._buffer = self._buffer[keep:]
        self._at -= keep
        self._line_at -= keep
        if self._start is not None:
            self._start = 0

    def _count(self, place: int) -> None:
        """Go on with the lines to a place, if it lies ahead."""
        if place > self._line_at:
            self._line += self._buffer.count(b"\n", self._line_at, place)
            self._line_at = place
