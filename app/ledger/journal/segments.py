"""The files of a journal: one directory per process, its lines in numbered segments.

A process holds the lock of its directory for as long as it lives, so that another one can tell what
a dead process has left. Lines are written with one call each and no ``fsync``: they outlive the
process, whatever kills it, but not a power failure of the machine.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from app.ledger.journal import records
from app.ledger.journal.records import Line, Reader, Record

_LOCK = "lock"
_SUFFIX = ".journal"
_TRIES = 5


@dataclass(slots=True, eq=False)
class Segment:
    """One file."""

    path: Path
    directory: Directory
    size: int = 0
    waiting: int = 0
    """Turns that began in it and have not ended, and ends in it that are not settled."""
    reader: Reader = field(default_factory=Reader)
    """Knows the columns that its header names."""

    def lines(self) -> Iterator[Line]:
        """All its records, in order. Raises ``OSError`` and ``NewerVersionError``."""
        return self.reader.lines(self.path.read_bytes())

    def record(self, offset: int, length: int) -> Record | None:
        """The record that stands there; None where it cannot be read."""
        try:
            with self.path.open("rb") as file:
                file.seek(offset)
                return self.reader.record(file.read(length))
        except OSError:
            return None


@dataclass(slots=True, eq=False)
class Directory:
    """The segments of one process, which is the caller or a dead one. The lock is held."""

    path: Path
    lock: int
    segments: list[Segment] = field(default_factory=list)
    size: int = 0
    """Of all segments; kept, since it is asked for at each line."""

    @property
    def waiting(self) -> int:
        return sum(segment.waiting for segment in self.segments)

    def add(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.size += segment.size

    def forget(self, segment: Segment) -> None:
        """Delete a segment in which nothing waits."""
        segment.path.unlink(missing_ok=True)
        self.segments.remove(segment)
        self.size -= segment.size

    def remove(self) -> None:
        """Delete it with all that is in it, then let go of its lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.segments.clear()
        self.size = 0
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.lock)


def create(root: Path) -> Directory:
    """A directory for this process. Raises ``OSError``."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for _ in range(_TRIES):
        path = root / secrets.token_hex(8)
        path.mkdir(mode=0o700)
        lock = _lock(path)
        if lock is not None:
            return Directory(path, lock)
        # Another process took it for one that a dead process had left, and removes it; or there
        # can be no file in it.
        with contextlib.suppress(OSError):
            path.rmdir()
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def leftovers(root: Path) -> Iterator[Directory]:
    """The directories of processes that are no more, each locked for the caller."""
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        lock = _lock(path) if path.is_dir() else None
        if lock is not None:
            left = Directory(path, lock)
            for file in sorted(path.glob(f"*{_SUFFIX}")):
                left.add(Segment(file, left, file.stat().st_size))
            yield left


def _lock(path: Path) -> int | None:
    """The lock of a directory; None where another process holds it, or it is gone."""
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if (path / _LOCK).stat().st_ino == os.fstat(lock).st_ino:
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


class Appender:
    """Appends lines to the newest segment of a directory, and begins a new one when it is full."""

    def __init__(
        self, directory: Directory, segment_bytes: int, opening: Callable[[], bytes] = bytes
    ) -> None:
        """``opening``: lines with which a segment begins, after its header. Raises ``OSError``."""
        self.directory = directory
        self.ends = 0
        """How many ends were written: the number of the next one."""
        self._segment_bytes = segment_bytes
        self._opening = opening
        self._numbers = 0
        self._file = -1
        self.current = self._next()

    def append(self, line: bytes, *, is_end: bool = False) -> tuple[Segment, int]:
        """The segment of the line, and where it stands. Raises ``OSError``: nothing is written."""
        if self.current.size >= self._segment_bytes:
            former, self.current = self.current, self._next()
            if not former.waiting:
                self.directory.forget(former)
        segment = self.current
        offset = segment.size
        _write(self._file, line, offset)
        segment.size += len(line)
        self.directory.size += len(line)
        self.ends += is_end
        return segment, offset

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _next(self) -> Segment:
        path = self.directory.path / f"{self._numbers + 1:06}{_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        file = os.open(path, flags, 0o600)
        header = records.header(self.ends)
        lines = header + self._opening()
        try:
            _write(file, lines, 0)
        except OSError:
            os.close(file)
            path.unlink(missing_ok=True)
            raise
        self.close()
        self._file = file
        self._numbers += 1
        segment = Segment(path, self.directory, len(lines))
        segment.reader.record(header)
        self.directory.add(segment)
        return segment


def _write(file: int, data: bytes, offset: int) -> None:
    """All of it or, as far as the disk allows, nothing. Raises ``OSError``."""
    written = os.write(file, data)
    if written != len(data):
        # A full disk. What was written is cut off again, so that the next line can be read.
        os.ftruncate(file, offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
