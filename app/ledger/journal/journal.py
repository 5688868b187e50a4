"""What a process knows of its turns, on disk before their clients see the last event.

``begin`` and ``end`` are called on the event loop and write one line each; ``settled`` is called in
the writer's thread once rows are in the database. What a process leaves behind when it is killed is
taken over by the next one that starts on the same directory: ends that the database does not have,
and a row with ``error_code = process_ended`` for each turn that was under way (DESIGN 6).

Ends are settled in the order in which they came. Nothing here raises: a journal that cannot be
written costs safety, never a turn, and ``state`` says so.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from app.ledger.journal import records, segments
from app.ledger.journal.records import Begun, Ended, NewerVersionError, Settled, UnderWay
from app.ledger.journal.segments import Appender, Directory, Segment
from app.ledger.rows import TurnRow

logger = logging.getLogger(__name__)

MIB = 1024 * 1024


class Place(NamedTuple):
    """Where a record stands on disk."""

    segment: Segment
    offset: int
    length: int


class Waiting(NamedTuple):
    """A row that is not in the database yet: in memory, on disk, or both."""

    row: TurnRow | None
    place: Place | None


@dataclass(frozen=True, slots=True)
class JournalState:
    """A reading of the counters; counts since the start of the process."""

    bytes: int
    """On disk now, of this process and of dead ones that it has taken over."""
    recovered: int
    """Rows that ended processes had left, which may or may not have been in the database."""
    process_ended: int
    """Turns that were under way when their process ended."""
    missed: int
    """Records that could not be written: the disk is full, or the bound is reached."""
    torn: int
    """Lines that could not be read again."""
    last_error: str | None
    """Why the last record could not be written; None if it could."""


class Journal:
    """The journal of one process. May be used from several threads."""

    def __init__(self, root: Path, *, limit: int = 256 * MIB, segment_bytes: int = 4 * MIB) -> None:
        self._root, self._limit, self._segment_bytes = root, limit, segment_bytes
        self._lock = threading.Lock()
        self._appender: Appender | None = None
        self._under_way: dict[str, Segment] = {}
        self._settled = 0
        self._taken_over: list[Directory] = []
        self._recovered = self._process_ended = self._missed = self._torn = 0
        self._error: str | None = None
        self._closed = False
        try:
            self._open()
        except OSError as error:
            self._failed(error)

    # --- this process ---------------------------------------------------------------------------

    def begin(self, start: Begun) -> None:
        """A turn has begun: if this process is killed before its end, it leaves a row."""
        with self._lock:
            place = self._append(records.begun(start))
            if place is not None:
                self._under_way[start.turn_id] = place.segment
                place.segment.waiting += 1

    def end(self, row: TurnRow) -> Place | None:
        """A turn has ended. None where its row is not on disk."""
        with self._lock:
            place = self._append(records.ended(row), is_end=True)
            if place is not None:
                place.segment.waiting += 1
                self._ended(row.turn_id)
            # Else the turn stays under way on disk: after a kill an error is better than no row.
            return place

    def settled(self, rows: Iterable[Waiting]) -> None:
        """The oldest rows, which are these, need the journal no more."""
        with self._lock:
            if self._closed:
                return
            own = None if self._appender is None else self._appender.directory
            before = self._settled
            for row, place in rows:
                if row is not None:
                    self._ended(row.turn_id)
                if place is not None:
                    self._settled += place.segment.directory is own
                    self._done_with(place.segment)
            if self._settled > before:
                self._append(records.settled(self._settled), always=True)

    def read(self, places: Iterable[Place]) -> list[TurnRow]:
        """The rows at these places. Those that cannot be read any more are counted as torn."""
        rows = []
        for place in places:
            record = place.segment.record(place.offset, place.length)
            if isinstance(record, Ended):
                rows.append(record.row)
            else:
                with self._lock:
                    self._torn += 1
        return rows

    def state(self) -> JournalState:
        with self._lock:
            return JournalState(
                bytes=self._size(),
                recovered=self._recovered,
                process_ended=self._process_ended,
                missed=self._missed,
                torn=self._torn,
                last_error=self._error,
            )

    def close(self) -> None:
        """Leave on disk what still waits, for the next process, and nothing else."""
        with self._lock:
            self._closed = True
            directories = self._taken_over
            if self._appender is not None:
                self._appender.close()
                directories = [self._appender.directory, *directories]
            for directory in directories:
                if directory.waiting:
                    directory.close()
                else:
                    directory.remove()
            self._appender, self._taken_over = None, []

    # --- what dead processes have left ----------------------------------------------------------

    def take_over(self) -> list[Waiting]:
        """What processes that are no more have left, in the order in which it is to be written.

        Call it once, before the first turn. The files go when all of it is settled.
        """
        found: list[Waiting] = []
        with self._lock:
            try:
                for directory in segments.leftovers(self._root):
                    found += self._taken(directory)
            except OSError as error:
                logger.error("what ended processes have left cannot be read: %s", _why(error))
            under_way = sum(waiting.row is not None for waiting in found)
            self._process_ended += under_way
            self._recovered += len(found) - under_way
        if found:
            logger.warning(
                "ended processes left %d rows and %d turns under way",
                len(found) - under_way,
                under_way,
            )
        return found

    def _taken(self, directory: Directory) -> list[Waiting]:
        try:
            found = self._left_in(directory)
        except (OSError, NewerVersionError) as error:
            directory.close()  # a later start, or that version, may be able to
            logger.error("%s is left as it is: %s", directory.path, _why(error))
            return []
        self._taken_over.append(directory)
        if not directory.waiting:
            self._remove(directory)
        return found

    def _left_in(self, directory: Directory) -> list[Waiting]:
        ends: deque[tuple[int, Place]] = deque()
        under_way: dict[str, tuple[Begun, Place]] = {}
        latest = 0
        for segment in directory.segments:
            for record, offset, length in segment.lines():
                place = Place(segment, offset, length)
                if isinstance(record, Begun):
                    under_way[record.turn_id] = record, place
                    latest = max(latest, record.started_at)
                elif isinstance(record, Ended):
                    under_way.pop(record.row.turn_id, None)
                    ends.append((record.number, place))
                    latest = max(latest, record.row.ended_at)
                elif isinstance(record, Settled):
                    while ends and ends[0][0] < record.before:
                        ends.popleft()
                elif isinstance(record, UnderWay):
                    # Ends of the others may have gone with a segment that was settled.
                    for ended in under_way.keys() - record.turn_ids:
                        del under_way[ended]
            self._torn += segment.reader.torn
        lost = list(under_way.values())
        for place in (*(place for _, place in ends), *(place for _, place in lost)):
            place.segment.waiting += 1
        return [
            *(Waiting(None, place) for _, place in ends),
            *(Waiting(start.row(latest), place) for start, place in lost),
        ]

    # --- under the lock -------------------------------------------------------------------------

    def _open(self) -> Appender:
        directory = segments.create(self._root)
        try:
            self._appender = Appender(directory, self._segment_bytes, self._still_under_way)
        except OSError:
            directory.remove()
            raise
        return self._appender

    def _still_under_way(self) -> bytes:
        return records.under_way(self._under_way) if self._under_way else b""

    def _append(self, line: bytes, *, is_end: bool = False, always: bool = False) -> Place | None:
        """``always``: whatever the bound, and without it being missed where it cannot be."""
        if self._closed:
            self._missed += not always
            return None
        if not always and self._size() + len(line) > self._limit:
            self._missed += 1
            self._error = "the bound is reached"
            return None
        try:
            appender = self._appender or self._open()
            segment, offset = appender.append(line, is_end=is_end)
        except OSError as error:
            self._missed += not always
            self._failed(error)
            return None
        self._error = None
        return Place(segment, offset, len(line))

    def _failed(self, error: OSError) -> None:
        if self._error is None:
            logger.error("the journal cannot be written: %s", _why(error))
        self._error = _why(error)

    def _ended(self, turn_id: str) -> None:
        began = self._under_way.pop(turn_id, None)
        if began is not None:
            self._done_with(began)

    def _done_with(self, segment: Segment) -> None:
        segment.waiting -= 1
        directory = segment.directory
        if segment.waiting:
            return
        if directory in self._taken_over:
            if not directory.waiting:
                self._remove(directory)
        elif self._appender is not None and segment is not self._appender.current:
            directory.forget(segment)

    def _remove(self, directory: Directory) -> None:
        directory.remove()
        self._taken_over.remove(directory)

    def _size(self) -> int:
        own = 0 if self._appender is None else self._appender.directory.size
        return own + sum(directory.size for directory in self._taken_over)


def _why(error: OSError | NewerVersionError) -> str:
    if isinstance(error, NewerVersionError):
        return "a newer version has written it; start that one once"
    return error.strerror or type(error).__name__
