"""The writer while a real SQLite file is full, or has been pruned meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, func, select

from app.ledger.database import open_engine
from app.ledger.journal.journal import Journal
from app.ledger.models import turns
from app.ledger.retention import prune
from app.ledger.rollups.contribution import DAY
from app.ledger.writer import LedgerWriter
from tests.support.clock import ManualClock
from tests.support.heard import Heard
from tests.support.rollups import counted_in
from tests.support.rows import START_MS, make_row


@pytest.fixture(scope="module")
def backend() -> str:
    return "sqlite"


class Bounded:
    """A ledger that may not grow until ``pages`` says otherwise."""

    def __init__(self, engine: Engine) -> None:
        self.engine = open_engine(engine.url)
        with self.engine.connect() as connection:
            self.pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        event.listen(self.engine, "checkout", self._limit)

    def _limit(self, connection, *_) -> None:
        connection.execute(f"PRAGMA max_page_count = {self.pages}")

    def count(self) -> int:
        with self.engine.connect() as connection:
            return connection.execute(select(func.count()).select_from(turns)).scalar_one()


@pytest.fixture
def bounded(engine: Engine) -> Iterator[Bounded]:
    one = Bounded(engine)
    yield one
    one.engine.dispose()


def test_rows_wait_while_the_file_is_full_and_are_written_once_there_is_room(
    bounded: Bounded, heard: Heard
):
    writer = LedgerWriter(bounded.engine, ManualClock(), batch_size=100)
    for _ in range(300):
        writer.record(make_row())
    heard.until_retrying(writer)
    assert ("OperationalError", 0) == (writer.state().last_error, writer.state().rejected)
    bounded.pages = 1_000_000
    assert writer.flush(timeout=30)
    assert (300, 0) == (bounded.count(), writer.dropped)
    assert writer.close()


def test_beyond_memory_and_journal_rows_are_dropped_and_counted_and_all_others_written(
    bounded: Bounded, heard: Heard, tmp_path: Path
):
    journal = Journal(tmp_path / "turns", limit=60_000, segment_bytes=10_000)
    writer = LedgerWriter(bounded.engine, ManualClock(), journal=journal, capacity=50)
    for _ in range(300):
        writer.record(make_row())
    heard.until_retrying(writer)
    state = writer.state()
    assert 0 < state.on_disk < 250
    assert 300 == state.queued + state.dropped
    assert journal.state().bytes <= 60_000
    bounded.pages = 1_000_000
    assert writer.flush(timeout=30)
    assert state.queued == bounded.count()
    assert writer.close()
    assert [] == list((tmp_path / "turns").iterdir())


def test_more_rows_than_memory_may_hold_are_recovered_in_their_order(
    bounded: Bounded, heard: Heard, tmp_path: Path
):
    """The next process finds the database as full as the one before it left it."""
    rows = [make_row() for _ in range(300)]
    for capacity in (1_000, 10):
        journal = Journal(tmp_path / "turns", segment_bytes=10_000)
        writer = LedgerWriter(bounded.engine, ManualClock(), journal=journal, capacity=capacity)
        if capacity == 1_000:
            for row in rows:
                writer.record(row)
            heard.until_retrying(writer)
            assert not writer.close(timeout=0.1)
    assert (300, 300) == (writer.state().queued, writer.state().on_disk)
    bounded.pages = 1_000_000
    assert writer.flush(timeout=30)
    with bounded.engine.connect() as connection:
        found = list(connection.execute(select(turns.c.turn_id).order_by(turns.c.id)).scalars())
    assert [row.turn_id for row in rows] == found
    assert writer.close()
    assert [] == list((tmp_path / "turns").iterdir())


def test_rows_of_a_time_that_retention_has_deleted_meanwhile_are_counted_and_go_with_the_next(
    engine: Engine, tmp_path: Path
):
    """Nobody knows whether they were ever written: the figures of a turn are not thrown away."""
    first = Journal(tmp_path / "turns")
    first.end(make_row(started_at=START_MS - 5 * DAY))
    first.close()
    keep = {"row_days": 2, "rollup_days": 30}
    prune(engine, START_MS, **keep)
    writer = LedgerWriter(engine, ManualClock(), journal=Journal(tmp_path / "turns"))
    assert writer.flush()
    assert (1, 1) == (writer.written, writer.state().journal.recovered)
    assert 1 == prune(engine, START_MS, **keep).rows
    assert writer.close()
    assert 1 == counted_in(engine)
