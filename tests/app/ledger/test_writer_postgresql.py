"""The writer while a real PostgreSQL server goes away, hangs, or does not say how it ended."""

import signal
import time
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, event, func, select, text

from app.ledger.database import open_engine
from app.ledger.journal.journal import Journal
from app.ledger.models import turns
from app.ledger.rows import TurnRow
from app.ledger.writer import LedgerWriter
from tests.support import postgres
from tests.support.clock import ManualClock
from tests.support.rollups import counted_in
from tests.support.rows import make_row


@pytest.fixture(scope="module")
def backend() -> str:
    return "postgresql"


@pytest.fixture
def make_writer(engine: Engine):
    made: list[LedgerWriter] = []

    def make(engine: Engine = engine, **options) -> LedgerWriter:
        made.append(LedgerWriter(engine, ManualClock(), **options))
        return made[-1]

    yield make
    for writer in made:
        writer.close(timeout=10)


def stored(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return list(connection.execute(select(turns.c.turn_id).order_by(turns.c.id)).scalars())


def test_rows_of_the_time_without_a_server_are_written_when_it_is_back(
    engine: Engine, make_writer, heard
):
    told: list[TurnRow] = []
    writer = make_writer(on_written=told.extend, capacity=10_000)
    rows = [make_row() for _ in range(3_000)]
    for row in rows[:1_000]:
        writer.record(row)
    assert writer.flush()
    postgres.server().stop()
    for row in rows[1_000:]:
        writer.record(row)
    heard.until_retrying(writer)
    assert "OperationalError" == writer.state().last_error
    postgres.server().start()
    assert writer.flush(timeout=30)
    assert not writer.retrying
    assert [row.turn_id for row in rows] == stored(engine) == [row.turn_id for row in told]
    assert (3_000, 0, 0) == (writer.written, writer.dropped, writer.state().rejected)


def test_a_server_restarted_amid_writing_loses_nothing_and_doubles_nothing(
    engine: Engine, make_writer
):
    writer = make_writer(batch_size=20, linger=0)
    rows = [make_row() for _ in range(600)]
    for place, row in enumerate(rows):
        writer.record(row)
        if place in (150, 400):
            postgres.server().stop()
            postgres.server().start()
    assert writer.flush(timeout=30)
    assert [row.turn_id for row in rows] == stored(engine)
    state = writer.state()
    assert (600, 0, 0) == (state.written + state.duplicates, state.dropped, state.rejected)


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT])
def test_a_server_that_ends_between_insert_and_commit_has_each_row_once(
    engine: Engine, make_writer, how
):
    ended = []

    def end(_connection, _rows) -> None:
        if not ended:
            ended.append(how)
            postgres.server().stop(how)
            postgres.server().start()

    writer = make_writer(within=end)
    rows = [make_row() for _ in range(20)]
    for row in rows:
        writer.record(row)
    assert writer.flush(timeout=30)
    assert [how] == ended
    assert [row.turn_id for row in rows] == stored(engine)
    assert (20, 0, 1) == (writer.written, writer.state().duplicates, writer.state().failures)
    assert 20 == counted_in(engine)


def test_a_full_disk_of_the_server_is_waited_for(engine: Engine, make_writer, heard):
    full = [True]

    def refuse(*_) -> None:
        if full:
            raise psycopg.errors.DiskFull("could not extend file: No space left on device")

    event.listen(engine, "do_execute", refuse)
    event.listen(engine, "do_executemany", refuse)
    writer = make_writer()
    writer.record(make_row())
    heard.until_retrying(writer)
    full.clear()
    assert writer.flush(timeout=30)
    assert (1, 0) == (writer.written, writer.state().rejected)


def test_what_a_dead_server_did_not_take_is_written_by_the_next_process(
    engine: Engine, make_writer, tmp_path: Path, heard
):
    first = make_writer(journal=Journal(tmp_path / "journal"))
    postgres.server().stop()
    first.record(make_row(turn_id="kept"))
    heard.until_retrying(first)
    assert not first.close(timeout=0.2)
    postgres.server().start()
    assert 0 == first.dropped
    second = make_writer(journal=Journal(tmp_path / "journal"))
    assert second.flush(timeout=30)
    assert ["kept"] == stored(engine)


def test_a_commit_whose_answer_is_lost_leaves_each_row_once(
    engine: Engine, make_writer, monkeypatch
):
    told: list[str] = []
    writer = make_writer(on_written=lambda rows: told.extend(row.turn_id for row in rows))
    commit, lost = engine.dialect.do_commit, []

    def lose(connection) -> None:
        commit(connection)
        if not lost:
            driver = connection.driver_connection
            lost.append(driver.info.backend_pid)
            postgres.server().ask(f"SELECT pg_terminate_backend({lost[0]}, 5000)")
            driver.execute("SELECT 1")

    monkeypatch.setattr(engine.dialect, "do_commit", lose)
    writer.record(make_row(turn_id="once"))
    assert writer.flush(timeout=30)
    assert ["once"] == stored(engine) == told
    state = writer.state()
    assert (0, 1, 1) == (state.written, state.duplicates, state.failures)


def test_a_server_that_is_slow_holds_up_the_writer_and_nobody_else(engine: Engine, make_writer):
    with engine.begin() as holder:
        holder.execute(text("LOCK turns"))
        writer = make_writer(linger=0)
        began = time.monotonic()
        for _ in range(100):
            writer.record(make_row())
        assert time.monotonic() - began < 1
        assert not writer.flush(timeout=0.05)
    assert writer.flush()
    assert 100 == len(stored(engine))


def test_a_statement_that_takes_too_long_is_tried_again(
    database: str, engine: Engine, make_writer, heard
):
    impatient = open_engine(f"{database}&options=-c%20statement_timeout%3D50")
    writer = make_writer(impatient)
    with engine.begin() as holder:
        holder.execute(text("LOCK turns"))
        writer.record(make_row())
        heard.until_retrying(writer)
    assert writer.flush(timeout=30)
    assert 1 == len(stored(engine))
    assert 0 == writer.state().rejected
    writer.close()
    impatient.dispose()


def test_a_database_that_only_reads_is_tried_again(
    database: str, engine: Engine, make_writer, heard
):
    """As after a change of roles that made a standby of the server."""
    writer = make_writer()
    name = engine.url.database
    postgres.server().ask(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    engine.dispose()
    writer.record(make_row())
    heard.until_retrying(writer)
    postgres.server().ask(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    engine.dispose()
    assert writer.flush(timeout=30)
    assert 1 == len(stored(engine))


def test_a_text_with_a_zero_byte_is_refused_and_the_rest_of_its_batch_is_not(
    engine: Engine, make_writer
):
    """PostgreSQL alone takes none; ``facts`` lets none through."""
    writer = make_writer(linger=60)
    for number in range(60):
        writer.record(make_row(model="\0" if number == 30 else "m"))
    assert writer.flush()
    assert (59, 1) == (writer.written, writer.state().rejected)
    assert 59 == len(stored(engine))


def test_writers_of_one_database_that_have_the_same_rows_write_them_once(
    engine: Engine, make_writer
):
    """As of an import that two machines run; in another order, so that they wait for each other."""
    rows = [make_row() for _ in range(400)]
    writers = [make_writer(batch_size=100, linger=0) for _ in range(2)]
    for forth, back in zip(rows, reversed(rows), strict=True):
        writers[0].record(forth)
        writers[1].record(back)
    assert all(writer.flush(timeout=30) for writer in writers)
    with engine.connect() as connection:
        assert 400 == connection.execute(select(func.count()).select_from(turns)).scalar_one()
    assert 400 == sum(writer.written for writer in writers)
    assert 400 == sum(writer.state().duplicates for writer in writers)
