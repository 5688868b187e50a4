import queue
import sqlite3
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import Engine, create_engine, event, select, text
from sqlalchemy.pool import QueuePool

from app.ledger import writer as writing
from app.ledger.csv_export import write_csv
from app.ledger.database import open_engine
from app.ledger.journal.journal import Journal
from app.ledger.models import turns
from app.ledger.queries import stream
from app.ledger.rows import COLUMNS, TurnRow, to_ms
from app.ledger.store import Price, insert_rows
from app.ledger.summary import summarize
from app.ledger.writer import LedgerWriter, write_rows
from tests.support.clock import START, ManualClock
from tests.support.ledger import everything
from tests.support.rows import START_MS, make_begun, make_row, unknown_usage

faults_of_sqlite = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
"""What its driver raises; test_writer_postgresql takes a real server away."""


@pytest.fixture
def make_writer(engine: Engine):
    """Writers that are closed at the end of the test, whatever happened."""
    made: list[LedgerWriter] = []

    def make(engine: Engine = engine, clock=None, **options) -> LedgerWriter:
        writer = LedgerWriter(engine, clock or ManualClock(), **options)
        made.append(writer)
        return writer

    yield make
    for writer in made:
        writer.close(timeout=5)


def stored(engine: Engine) -> list[TurnRow]:
    columns = [turns.c[name] for name in COLUMNS]
    with engine.connect() as connection:
        return [
            TurnRow(**row._mapping)
            for row in connection.execute(select(*columns).order_by(turns.c.id))
        ]


@contextmanager
def refusing(engine: Engine, error: Callable[[], Exception]):
    """While it lasts, every insert of the engine fails in the driver."""
    failed = threading.Event()

    def refuse(cursor, statement, *_):
        if statement.startswith("INSERT"):
            failed.set()
            raise error()

    with intercepting(engine, refuse):
        yield failed


@contextmanager
def intercepting(engine: Engine, function):
    """Calls ``function`` in place of the driver; one row and many go different ways."""
    names = ("do_execute", "do_executemany")
    for name in names:
        event.listen(engine, name, function)
    yield
    for name in names:
        event.remove(engine, name, function)


def locked() -> Exception:
    return sqlite3.OperationalError("database is locked")


def test_a_row_comes_back_as_it_was_recorded(engine: Engine, make_writer):
    full = make_row(
        store=False, eligible=False, cost_usd=Decimal("0.094"), evidence="{}", ttft_ms=1.5
    )
    writer = make_writer()
    writer.record(full)
    writer.record(unknown_usage())
    assert writer.flush()
    first, second = stored(engine)
    assert replace(full, recorded_at=first.recorded_at) == first
    assert second.input_tokens is None


def test_the_time_of_writing_is_the_writers(engine: Engine, make_writer):
    writer = make_writer(clock=ManualClock(now=START + 60))
    writer.record(make_row(recorded_at=1))
    assert writer.flush()
    assert [START_MS + 60_000] == [row.recorded_at for row in stored(engine)]


def test_the_wait_for_the_lock_is_over_when_a_row_is_recorded(engine: Engine, make_writer):
    """Alerts look at windows by that time, some seconds later: rows are to be there by then."""
    clock = ManualClock()
    writer = make_writer(clock=clock)
    event.listen(engine, "begin", lambda _connection: clock.advance(9))
    writer.record(make_row())
    assert writer.flush()
    assert [START_MS + 9_000] == [row.recorded_at for row in stored(engine)]


def test_one_turn_is_one_row_however_often_it_is_recorded(engine: Engine, make_writer):
    row = make_row()
    writer = make_writer()
    for _ in range(3):
        writer.record(row)
        assert writer.flush()
    assert [row.turn_id] == [r.turn_id for r in stored(engine)]
    assert (1, 2) == (writer.state().written, writer.state().duplicates)


def test_two_turns_without_a_response_id_are_two_rows(engine: Engine, make_writer):
    writer = make_writer()
    for response_id in (None, None, "", ""):
        writer.record(make_row(response_id=response_id))
    assert writer.flush()
    assert 4 == len(stored(engine))


def test_rows_are_written_in_batches_in_the_order_they_came(engine: Engine, make_writer):
    batches: list[list[str]] = []
    writer = make_writer(
        batch_size=10, linger=60, on_written=lambda rows: batches.append([r.turn_id for r in rows])
    )
    rows = [make_row() for _ in range(25)]
    for row in rows:
        writer.record(row)
    assert writer.flush()
    assert [10, 10, 5] == [len(batch) for batch in batches]
    assert [row.turn_id for row in rows] == [name for batch in batches for name in batch]
    assert [row.turn_id for row in rows] == [row.turn_id for row in stored(engine)]


def test_listeners_see_rows_that_are_in_the_database_already(engine: Engine, make_writer):
    seen = []
    writer = make_writer(on_written=lambda rows: seen.append((rows, stored(engine))))
    writer.record(make_row())
    assert writer.flush()
    writer.close()
    (told, in_database) = seen[0]
    assert told == in_database


def test_a_listener_that_fails_stops_nothing(engine: Engine, make_writer, caplog):
    def fail(rows):
        raise ValueError("secret words")

    writer = make_writer(on_written=fail)
    for _ in range(2):
        writer.record(make_row())
        assert writer.flush()
    assert writer.close()
    assert 2 == len(stored(engine))
    assert "ValueError" in caplog.text
    assert "secret words" not in caplog.text


@faults_of_sqlite
@pytest.mark.parametrize(
    "error",
    [
        locked,
        lambda: sqlite3.OperationalError("database or disk is full"),
        lambda: sqlite3.DatabaseError("database disk image is malformed"),
        lambda: OSError("gone"),
    ],
)
def test_a_database_that_refuses_is_tried_again_until_it_takes_the_rows(
    engine: Engine, make_writer, error
):
    writer = make_writer()
    with refusing(engine, error) as failed:
        writer.record(make_row())
        assert failed.wait(10)
        assert not writer.flush(timeout=0.01)
        assert (0, 1) == (writer.written, writer.state().queued)
    assert writer.flush()
    assert 1 == len(stored(engine))
    assert not writer.retrying
    assert writer.state().failures >= 1


@faults_of_sqlite
def test_recording_does_not_wait_for_a_database_that_hangs(engine: Engine, make_writer):
    gate = threading.Event()
    reached = threading.Event()

    def hang(cursor, statement, *_):
        if statement.startswith("INSERT"):
            reached.set()
            assert gate.wait(60)

    writer = make_writer(capacity=3, linger=0)
    with intercepting(engine, hang):
        writer.record(make_row())
        assert reached.wait(10)
        for _ in range(5):
            writer.record(make_row())  # returns, or the test would hang here
        assert (3, 3) == (writer.state().queued, writer.dropped)
        gate.set()
        assert writer.flush()
    assert 3 == len(stored(engine))


def test_a_lock_held_by_another_connection_is_waited_for(engine: Engine, make_writer, backend: str):
    holder = open_engine(engine.url).connect()
    holder.execute(text("LOCK turns" if backend == "postgresql" else "DELETE FROM turns"))
    writer = make_writer()
    writer.record(make_row())
    assert not writer.flush(timeout=0.05)
    holder.rollback()
    assert writer.flush()
    holder.close()
    holder.engine.dispose()
    assert 1 == len(stored(engine))


def test_rows_wait_while_others_hold_every_connection(engine: Engine, make_writer):
    hurried = create_engine(engine.url, poolclass=QueuePool, pool_size=1, max_overflow=0, pool_timeout=0)  # fmt: skip
    writer = make_writer(hurried)
    with hurried.connect():
        writer.record(make_row())
        assert not writer.flush(timeout=0.05)
        assert (1, 0) == (writer.state().queued, writer.state().rejected)
    assert writer.flush()
    assert 1 == len(stored(engine))
    hurried.dispose()


@faults_of_sqlite
def test_it_tells_since_when_rows_wait_and_none_is_written(engine: Engine, make_writer):
    clock = ManualClock()
    writer = make_writer(clock=clock, batch_size=1)
    assert writer.state().waiting_since is None
    with refusing(engine, locked) as failed:
        writer.record(make_row())
        assert failed.wait(10)
        clock.advance(30)
        writer.record(make_row())
        assert to_ms(START) == writer.state().waiting_since
    assert writer.flush()
    assert writer.state().waiting_since is None


def test_a_row_that_no_column_takes_is_rejected_and_the_others_are_written(
    engine: Engine, make_writer, caplog
):
    writer = make_writer(batch_size=10, linger=60)
    good = [make_row(), make_row()]
    bad = [
        make_row(turn_id="bad-int", attempts=2**70),
        make_row(turn_id="bad-null", tenant=None),
        make_row(turn_id="bad-type", model=object()),
        make_row(turn_id="bad-text", model="\ud800"),
    ]
    for row in (good[0], *bad, good[1]):
        writer.record(row)
    assert writer.flush()
    assert [row.turn_id for row in good] == [row.turn_id for row in stored(engine)]
    assert (2, 4, 0) == (writer.written, writer.state().rejected, writer.state().queued)
    for row in bad:
        assert f"turn {row.turn_id} cannot be stored" in caplog.text


@contextmanager
def uncountable(monkeypatch, *turn_ids: str):
    """While it lasts, sums of these rows raise; the table takes them."""

    def insert(connection, rows):
        new = insert_rows(connection, rows)
        if any(row.turn_id in turn_ids for row in rows):
            raise KeyError("secret words")
        return new

    with monkeypatch.context() as patch:
        patch.setattr(writing, "insert_rows", insert)
        yield


def test_a_row_that_cannot_be_counted_is_kept_and_holds_up_no_other(
    engine: Engine, make_writer, monkeypatch, caplog
):
    told, arrive = arrivals()
    writer = make_writer(on_written=told)
    with uncountable(monkeypatch, "turn_odd"):
        for name in ("turn_odd", "turn_a", "turn_b"):
            writer.record(make_row(turn_id=name))
        arrive("turn_a", "turn_b")
        writer.record(make_row(turn_id="turn_c"))
        arrive("turn_c")
        assert ["turn_a", "turn_b", "turn_c"] == [row.turn_id for row in stored(engine)]
        state = writer.state()
        assert (1, 1, 0, 0) == (state.queued, state.kept, state.rejected, state.dropped)
        assert (False, None) == (state.retrying, state.waiting_since)
        assert "KeyError" == state.last_error
    assert "turn turn_odd cannot be counted (KeyError); it is tried again" in caplog.messages
    writer.record(make_row(turn_id="turn_d"))
    arrive("turn_d", "turn_odd")
    assert (0, 0, 5) == (writer.state().queued, writer.state().kept, writer.written)
    assert 5 == summarize(engine, everything()).total


def arrivals():
    """What hears of rows that are written, and what waits for them."""
    heard: queue.SimpleQueue[str] = queue.SimpleQueue()

    def told(rows: list[TurnRow]) -> None:
        for row in rows:
            heard.put(row.turn_id)

    def arrive(*turn_ids: str) -> None:
        assert set(turn_ids) == {heard.get(timeout=10) for _ in turn_ids}

    return told, arrive


def test_where_nothing_can_be_counted_all_waits_and_is_tried_again(
    engine: Engine, make_writer, monkeypatch, heard
):
    writer = make_writer()
    with uncountable(monkeypatch, "turn_a", "turn_b"):
        for name in ("turn_a", "turn_b"):
            writer.record(make_row(turn_id=name))
        heard.until_retrying(writer)
        state = writer.state()
        assert (2, 0, 0) == (state.queued, state.kept, state.rejected)
    assert writer.flush()
    assert 2 == len(stored(engine))


def test_closing_writes_what_waits(engine: Engine, make_writer):
    writer = make_writer(linger=60)
    for _ in range(1_200):
        writer.record(make_row())
    assert writer.close()
    assert 1_200 == len(stored(engine))


@faults_of_sqlite
def test_closing_gives_up_on_a_dead_database_and_counts_the_loss(
    engine: Engine, make_writer, caplog
):
    writer = make_writer()
    with refusing(engine, locked) as failed:
        writer.record(make_row())
        assert failed.wait(10)
        assert not writer.close(timeout=0.05)
    assert (1, 0) == (writer.dropped, writer.state().queued)
    assert "closed with 1 rows unwritten" in caplog.text


def test_after_closing_rows_are_counted_as_dropped_and_closing_again_does_nothing(
    engine: Engine, make_writer
):
    writer = make_writer()
    assert writer.close()
    writer.record(make_row())
    assert 1 == writer.dropped
    assert writer.close()
    assert [] == stored(engine)


def test_sixty_four_turns_that_end_at_once_during_an_export_lose_nothing(
    engine: Engine, make_writer
):
    write_rows(engine, [make_row() for _ in range(2_000)])
    writer = make_writer()
    stop = threading.Event()
    errors = []

    def read():
        while not stop.is_set():
            try:
                for piece in write_csv(stream(engine, everything(), chunk=100)):
                    assert piece
            except Exception as error:
                errors.append(error)
                return

    start = threading.Barrier(64)

    def complete():
        start.wait()
        writer.record(make_row(source="embedded"))

    reader = threading.Thread(target=read)
    reader.start()
    threads = [threading.Thread(target=complete) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert writer.flush()
    stop.set()
    reader.join()
    assert [] == errors
    assert 64 == sum(row.source == "embedded" for row in stored(engine))
    assert (64, 0, 0) == (writer.written, writer.dropped, writer.state().failures)


def test_many_rows_can_be_written_at_once_as_they_are(engine: Engine):
    rows = [make_row(recorded_at=7) for _ in range(5)]
    assert 5 == write_rows(engine, rows, batch_size=2)
    assert 1 == write_rows(engine, [rows[0], make_row()])
    assert rows == stored(engine)[:5]


# --- with prices ----------------------------------------------------------------------------------


def test_rows_come_with_their_prices_and_keep_one_that_they_have(engine: Engine, make_writer):
    told = []
    writer = make_writer(price=lambda _row: Price(Decimal(2), "a note"), on_written=told.extend)
    for row in (make_row(), make_row(cost_usd=Decimal(1)), make_row(price_note="no_usage")):
        writer.record(row)
    assert writer.close()
    priced = [(Decimal(2), "a note"), (Decimal(1), None), (None, "no_usage")]
    assert priced == [(row.cost_usd, row.price_note) for row in stored(engine)]
    assert priced == [(row.cost_usd, row.price_note) for row in told]
    known = summarize(engine, everything()).cost
    assert (3 * 10**9, 2) == (known.nano_usd, known.priced)


def test_a_price_that_cannot_be_told_costs_no_row(engine: Engine, make_writer, caplog):
    def fail(_row):
        raise ValueError("secret words")

    writer = make_writer(price=fail)
    for _ in range(2):
        writer.record(make_row())
        assert writer.flush()
    assert [(None, None)] * 2 == [(row.cost_usd, row.price_note) for row in stored(engine)]
    assert ["turns are not priced at once: ValueError"] == caplog.messages


# --- with a journal -------------------------------------------------------------------------------


@pytest.fixture
def journals(tmp_path):
    made: list[Journal] = []

    def make(**options) -> Journal:
        made.append(Journal(tmp_path / "journal", **options))
        return made[-1]

    yield make
    for journal in made:
        journal.close()


@faults_of_sqlite
def test_rows_that_a_writer_could_not_write_are_written_by_the_next_process(
    engine: Engine, make_writer, journals
):
    first = make_writer(journal=journals())
    with refusing(engine, locked) as failed:
        first.record(make_row(turn_id="turn_a"))
        assert failed.wait(5)
        assert not first.close(timeout=0.2)
    assert ([], 0) == (stored(engine), first.dropped)
    second = make_writer(journal=journals())
    assert second.flush()
    assert ["turn_a"] == [row.turn_id for row in stored(engine)]
    assert second.state().journal.recovered == 1


def test_a_turn_that_had_begun_when_its_process_ended_becomes_an_error(
    engine: Engine, make_writer, journals
):
    first = make_writer(journal=journals())
    first.begin(make_begun(turn_id="turn_1"))
    first.close()
    second = make_writer(journal=journals())
    assert second.flush()
    assert [("turn_1", "error", "process_ended")] == [
        (row.turn_id, row.status, row.error_code) for row in stored(engine)
    ]


@faults_of_sqlite
def test_more_rows_than_fit_in_memory_wait_on_disk_and_keep_their_order(
    engine: Engine, make_writer, journals
):
    writer = make_writer(journal=journals(segment_bytes=2_000), capacity=3, batch_size=2)
    rows = [make_row(turn_id=f"turn_{n}") for n in range(20)]
    with refusing(engine, locked) as failed:
        for row in rows:
            writer.record(row)
        assert failed.wait(5)
        state = writer.state()
    assert (20, 17, 0) == (state.queued, state.on_disk, state.dropped)
    assert writer.flush()
    assert [row.turn_id for row in rows] == [row.turn_id for row in stored(engine)]
    assert (0, 0) == (writer.state().queued, writer.state().on_disk)


@faults_of_sqlite
def test_beyond_memory_and_disk_rows_are_dropped_and_counted(engine: Engine, make_writer, journals):
    writer = make_writer(journal=journals(limit=4_000), capacity=3)
    with refusing(engine, locked):
        for n in range(20):
            writer.record(make_row(turn_id=f"turn_{n}"))
        state = writer.state()
    assert state.dropped == 20 - state.queued > 0
    assert writer.flush()
    assert len(stored(engine)) == state.queued


def test_a_row_that_the_database_refuses_is_not_tried_again_by_the_next_process(
    engine: Engine, make_writer, journals
):
    first = make_writer(journal=journals())
    first.record(make_row(turn_id="turn_bad", input_tokens=2**70))
    first.record(make_row(turn_id="turn_good"))
    assert first.flush()
    assert first.close()
    second = make_writer(journal=journals())
    assert second.state().journal.recovered == 0
    assert ["turn_good"] == [row.turn_id for row in stored(engine)]


def test_a_row_that_cannot_be_counted_is_written_by_the_next_process(
    engine: Engine, make_writer, journals, monkeypatch
):
    told, arrive = arrivals()
    first = make_writer(journal=journals(), on_written=told)
    with uncountable(monkeypatch, "turn_odd"):
        for name in ("turn_odd", "turn_a"):
            first.record(make_row(turn_id=name))
        arrive("turn_a")
        first.record(make_row(turn_id="turn_b"))
        arrive("turn_b")
        assert not first.close()
        assert 0 == first.dropped
    second = make_writer(journal=journals())
    assert 1 == second.state().journal.recovered
    assert second.flush()
    assert ["turn_a", "turn_b", "turn_odd"] == [row.turn_id for row in stored(engine)]
