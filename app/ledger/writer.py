"""The one writer of this process: a thread that puts rows into the database in batches.

``record`` is called on the event loop, before a turn's last event goes to its client. It appends
the row to the journal and to a queue: a database that is slow, locked, full or gone never delays or
fails a turn. The thread waits a moment for company, writes what is there in one transaction and,
where that fails for a reason that may pass, tries again with growing pauses until it succeeds. Rows
are told apart by ``turn_id``, so writing one twice (after a commit whose answer was lost, or once
more from the journal of a process that was killed) leaves one.

Of more rows than ``capacity`` only the places in the journal are kept in memory. What is lost is
counted, never silent: rows that find queue and journal full or the writer closed (``dropped``) and
rows that the database refuses for what is in them (``rejected``). A row that fails for another
reason, and alone, is set aside (``kept``): it goes behind the others and is tried again with them.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from sqlalchemy import Connection, Engine

from app.clock import Clock
from app.ledger.database import WRITES
from app.ledger.journal.journal import Journal, JournalState, Waiting
from app.ledger.journal.records import Begun
from app.ledger.refusals import Sifted, may_pass, sift
from app.ledger.rows import TurnRow, to_ms
from app.ledger.store import Price, insert_rows

logger = logging.getLogger(__name__)

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0
_LONGER_IN_COMPANY = 5
"""So many times longer rows wait for company after a batch of several: every transaction takes the
interpreter away from the turns that are under way, more than once."""


@dataclass(frozen=True, slots=True)
class WriterState:
    """A reading of the counters; all counts since the start of the process."""

    queued: int
    """Rows that wait now, the batch being written included."""
    written: int
    """Rows that are new in the database."""
    duplicates: int
    """Rows whose ``turn_id`` was there already."""
    dropped: int
    """Lost: the queue was full, or the writer closed."""
    rejected: int
    """Lost: the database refused what was in them."""
    kept: int
    """Of ``queued``, rows that cannot be counted at present, and are tried again."""
    failures: int
    """Attempts at a batch that failed and were, or are being, repeated."""
    retrying: bool
    """The last attempt failed; the next one is due."""
    last_error: str | None
    """The kind of the last failure, e.g. ``OperationalError``."""
    on_disk: int
    """Of ``queued``, rows that wait in the journal only."""
    journal: JournalState | None
    """None where there is no journal."""
    waiting_since: int | None
    """Since when rows wait and none of them is written, in epoch ms; None where none waits."""


class LedgerWriter:
    """``on_written`` is called in the writer's thread with each batch, after its commit; ``within``
    before it, in the same transaction, with the rows that are new. With ``price`` rows come with
    their prices: what it cannot tell waits, as all rows do without it."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        *,
        on_written: Callable[[list[TurnRow]], None] | None = None,
        within: Callable[[Connection, list[TurnRow]], None] | None = None,
        price: Callable[[TurnRow], Price] | None = None,
        journal: Journal | None = None,
        batch_size: int = 500,
        linger: float = 0.05,
        capacity: int = 20_000,
    ) -> None:
        self.on_written = on_written
        self._within = within
        self._price = price
        self._engine = engine.execution_options(**WRITES)
        self._clock = clock
        self._batch_size = batch_size
        self._linger = linger
        self._capacity = capacity
        self._journal = journal
        self._queue: deque[Waiting] = deque()
        self._in_memory = 0
        self._changed = threading.Condition()
        self._accepted = 0
        self._settled = 0
        self._written = 0
        self._duplicates = 0
        self._dropped = 0
        self._rejected = 0
        self._kept: frozenset[str] = frozenset()
        """Rows of the queue that were set aside, by ``turn_id``."""
        self._failures = 0
        self._last_error: str | None = None
        self._retrying = False
        self._waiting_since: int | None = None
        self._hurry = 0
        self._in_company = False
        """The last batch had several rows."""
        self._closed = False
        self._abandoned = False
        if journal is not None:
            self._queue.extend(journal.take_over())
            self._accepted = len(self._queue)
            self._in_memory = sum(waiting.row is not None for waiting in self._queue)
            self._mark_waiting()
        self._thread = threading.Thread(target=self._run, name="ledger-writer", daemon=True)
        self._thread.start()

    # Called from any thread

    def begin(self, start: Begun) -> None:
        """A turn has begun: should this process be killed, it leaves a row all the same."""
        if self._journal is not None:
            self._journal.begin(start)

    def record(self, row: TurnRow) -> None:
        """Take a row to be written. Never blocks on the database, never raises."""
        with self._changed:
            # In one step with the queue: the journal is settled in the order of its ends.
            place = None if self._journal is None or self._closed else self._journal.end(row)
            full = self._in_memory >= self._capacity
            if self._closed or (full and place is None):
                self._dropped += 1
                first = self._dropped == 1 or self._dropped % 1_000 == 0
                total = self._dropped
            else:
                self._queue.append(Waiting(None if full else row, place))
                self._in_memory += not full
                self._accepted += 1
                if self._waiting_since is None:
                    self._mark_waiting()
                if len(self._queue) - len(self._kept) in (1, self._batch_size):
                    self._changed.notify_all()
                return
        if first:
            logger.error("the ledger's queue is full: %d rows lost so far", total)

    def state(self) -> WriterState:
        with self._changed:
            return WriterState(
                queued=self._accepted - self._settled,
                written=self._written,
                duplicates=self._duplicates,
                dropped=self._dropped,
                rejected=self._rejected,
                kept=len(self._kept),
                failures=self._failures,
                retrying=self._retrying,
                last_error=self._last_error,
                on_disk=len(self._queue) - self._in_memory,
                journal=None if self._journal is None else self._journal.state(),
                waiting_since=self._waiting_since,
            )

    def _mark_waiting(self) -> None:
        waits = len(self._queue) > len(self._kept)
        self._waiting_since = to_ms(self._clock.now()) if waits else None

    @property
    def written(self) -> int:
        return self.state().written

    @property
    def dropped(self) -> int:
        return self.state().dropped

    @property
    def retrying(self) -> bool:
        return self.state().retrying

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until every row recorded so far is settled; False when that took too long."""
        with self._changed:
            target = self._accepted
            self._hurry += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: self._settled >= target, timeout)
            finally:
                self._hurry -= 1

    def close(self, timeout: float = 10.0) -> bool:
        """Take no more rows, write what waits, end the thread. False when rows were lost.

        What the database still refuses after ``timeout`` seconds stays in the journal for the next
        process; without one it is given up and counted as dropped. Calling it again does nothing.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout)
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()
        self._thread.join(timeout)
        with self._changed:
            left = self._accepted - self._settled
            lost = sum(waiting.place is None for waiting in self._queue)
            self._dropped += lost
            self._settled = self._accepted
            self._queue.clear()
            self._in_memory = 0
            self._waiting_since = None
        if self._journal is not None:
            self._journal.close()
        if left:
            logger.error(
                "the ledger was closed with %d rows unwritten; %d of them are in the journal",
                left,
                left - lost,
            )
        return left == 0

    # The thread

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while batch := self._next_batch():
            try:
                written, kept = self._write(self._read(batch))
            except Exception as error:
                if not self._wait_before_retry(error, pause):
                    return
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            pause = _FIRST_PAUSE
            self._settle(batch, kept)
            self._tell(written)
            if len(kept) == len(batch) and not self._wait_for_others():
                return

    def _read(self, batch: Sequence[Waiting]) -> list[TurnRow]:
        """The rows of a batch; those that wait on disk are read from there."""
        rows: list[TurnRow] = []
        for row, place in batch:
            if row is not None:
                rows.append(row)
            elif self._journal is not None and place is not None:
                rows += self._journal.read([place])
        return rows

    def _next_batch(self) -> list[Waiting]:
        """The oldest rows, which stay queued until they are settled; empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            if not self._retrying:
                self._changed.wait_for(
                    lambda: len(self._queue) >= self._batch_size or self._closed or self._hurry,
                    self._linger * (_LONGER_IN_COMPANY if self._in_company else 1),
                )
            batch = list(islice(self._queue, self._batch_size))
            self._in_company = len(batch) > 1
            return batch

    def _wait_before_retry(self, error: Exception, pause: float) -> bool:
        with self._changed:
            self._failures += 1
            self._last_error = type(error).__name__
            began = not self._retrying
            self._retrying = True
            queued = len(self._queue)
        if began:
            logger.warning(
                "the ledger cannot be written (%s); %d rows wait, trying again",
                type(error).__name__,
                queued,
            )
        with self._changed:
            self._changed.wait_for(lambda: self._abandoned, pause)
            return not self._abandoned

    def _wait_for_others(self) -> bool:
        """While all that waits was set aside; False where nothing else will come."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or len(self._queue) > len(self._kept), _LONGEST_PAUSE
            )
            return not self._closed

    def _settle(self, batch: Sequence[Waiting], kept: Sequence[TurnRow]) -> None:
        with self._changed:
            if self._abandoned and kept:
                return
            for row in kept:  # behind the others: the journal is settled in the order of its ends
                place = None if self._journal is None else self._journal.end(row)
                self._queue.append(Waiting(row, place))
            self._in_memory += len(kept)
        if self._journal is not None:
            self._journal.settled(batch)
        with self._changed:
            if self._abandoned:  # a last write came through after its rows were given up
                return
            for _ in batch:
                self._in_memory -= self._queue.popleft().row is not None
            self._settled += len(batch) - len(kept)
            self._mark_waiting()
            recovered = self._retrying
            self._retrying = False
            self._changed.notify_all()
        if recovered:
            logger.info("the ledger can be written again")

    def _tell(self, rows: list[TurnRow]) -> None:
        if self.on_written is None or not rows:
            return
        try:
            self.on_written(rows)
        except Exception as error:
            logger.error("the listener to new rows failed: %s", type(error).__name__)

    def _write(self, batch: Sequence[TurnRow]) -> tuple[list[TurnRow], list[TurnRow]]:
        """Write a batch; returns what is written, and what is to be kept. Raises what may pass by
        itself, and where nothing can be written though it is not about the rows."""
        self._put_prices(batch)
        aside = [row for row in batch if row.turn_id in self._kept]
        others = [row for row in batch if row.turn_id not in self._kept]
        written: list[TurnRow] = []
        try:
            written = self._insert_all(others) if others else []
        except Exception as error:
            if may_pass(error):
                raise
            aside = [*others, *aside]
        # Something in one of the rows is refused: find it, and let the others through.
        found = sift(self._engine, aside, self._insert_all)
        if found.error is not None and others and not (written or found.written or found.refused):
            raise found.error
        self._note(batch, found)
        return [*written, *found.written], found.kept

    def _note(self, batch: Sequence[TurnRow], found: Sifted) -> None:
        ids = {row.turn_id for row in found.kept}
        for turn_id in sorted(ids - self._kept):
            kind = type(found.error).__name__
            logger.error("turn %s cannot be counted (%s); it is tried again", turn_id, kind)
        with self._changed:
            self._rejected += len(found.refused)
            self._kept = (self._kept - {row.turn_id for row in batch}) | ids
            if found.error is not None:
                self._last_error = type(found.error).__name__

    def _put_prices(self, batch: Sequence[TurnRow]) -> None:
        if self._price is None:
            return
        for row in batch:
            if row.price_note is None and row.cost_usd is None:
                try:
                    row.cost_usd, row.price_note = self._price(row)
                except Exception as error:
                    logger.error("turns are not priced at once: %s", type(error).__name__)
                    self._price = None
                    return

    def _insert_all(self, batch: Sequence[TurnRow]) -> list[TurnRow]:
        with self._engine.begin() as connection:
            # Only now: a wait for SQLite's lock may be longer than alerts wait for rows.
            recorded_at = to_ms(self._clock.now())
            for row in batch:  # nobody else has it yet; a copy takes as long as inserting it
                row.recorded_at = recorded_at
            new = insert_rows(connection, batch)
            if self._within is not None:
                self._within(connection, new)
        with self._changed:
            self._written += len(new)
            self._duplicates += len(batch) - len(new)
        return list(batch)


def write_rows(engine: Engine, rows: Iterable[TurnRow], *, batch_size: int = 1_000) -> int:
    """Write rows at once, as they are, ``recorded_at`` included; returns how many were new.

    For whoever has many rows and may wait: imports, sample history, tests.
    """
    writing = engine.execution_options(**WRITES)
    source = iter(rows)
    new = 0
    while batch := list(islice(source, batch_size)):
        with writing.begin() as connection:
            new += len(insert_rows(connection, batch))
    return new
