import threading
from collections.abc import Callable

import pytest
from sqlalchemy import Engine, select

from app.ledger import retention, store
from app.ledger.database import WRITES
from app.ledger.rollups import break_tables
from app.ledger.rollups import state as states
from app.ledger.rollups.broken import Key
from app.ledger.rollups.contribution import DAY, HOUR
from app.ledger.rollups.rebuild import build_missing, rebuild
from app.ledger.writer import write_rows
from tests.support.rollups import Model
from tests.support.rows import START_MS, make_row

PARTED = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": "f1"}


def sums(engine: Engine) -> set[tuple[int, int, int]]:
    s = break_tables.sums.c
    with engine.connect() as connection:
        return {tuple(row) for row in connection.execute(select(s.level, s.turns, s.missed))}


def test_a_break_is_in_its_hour_and_its_day_at_once(engine: Engine):
    row = make_row(**PARTED)
    write_rows(engine, [row, make_row()])
    assert {(HOUR, 1, 0), (DAY, 1, 0)} == sums(engine)
    with engine.execution_options(**WRITES).begin() as connection:
        store.put_verdicts(connection, {row.turn_id: store.Verdict("persistent", None, 500)})
    assert {(HOUR, 1, 500), (DAY, 1, 500)} == sums(engine)


def test_breaks_of_a_version_without_their_sums_are_counted_once(engine: Engine):
    write_rows(engine, [make_row(started_at=START_MS + n * HOUR, **PARTED) for n in range(3)])
    model = Model(engine)
    wanted = model.stored()
    with engine.begin() as connection:
        for table in (break_tables.sums, break_tables.sessions, break_tables.keys):
            connection.execute(table.delete())
        states.put(connection, states.BREAKS_MISSING, 1)
    build_missing(engine)
    assert wanted == model.stored()
    with engine.connect() as connection:
        assert not states.read(connection).breaks_missing


def test_a_break_that_goes_to_another_session_is_counted_there(engine: Engine):
    write_rows(engine, [row := make_row(**PARTED)])
    with engine.execution_options(**WRITES).begin() as connection:
        store.update_rows(connection, [make_row(turn_id=row.turn_id, session="b", **PARTED)])
    model = Model(engine)
    before = model.stored()
    model.rebuild([])
    assert before == model.stored()


def test_the_keys_are_those_of_the_table():
    assert ("id", *Key._fields) == tuple(break_tables.keys.c.keys())


KNOWN = store.Verdict("persistent", None, 500)
LOGGED = {"mode": None, "reason": None, "eligible": False}


def beside(engine: Engine, verdicts: list[str], act: Callable[[], object]) -> None:
    """Write verdicts, and end that only when ``act``, begun meanwhile, waits for it."""
    other = threading.Thread(target=act, daemon=True)
    waits = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    with engine.execution_options(**WRITES).begin() as connection:
        store.put_verdicts(connection, dict.fromkeys(verdicts, KNOWN))
        other.start()
        while not connection.exec_driver_sql(waits).scalar_one():
            connection.exec_driver_sql("SELECT pg_stat_clear_snapshot()")
    other.join()


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_a_verdict_that_is_being_written_is_not_counted_twice_by_counting_anew(engine: Engine):
    """What it adds is of a group without sums, beside one whose sums both of them change."""
    first, other = make_row(**PARTED), make_row(**LOGGED)
    write_rows(engine, [first, other])
    beside(engine, [first.turn_id, other.turn_id], lambda: rebuild(engine))
    assert {(HOUR, 1, 500), (DAY, 1, 500)} == sums(engine)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_a_row_that_becomes_a_break_while_it_is_deleted_as_too_old_leaves_nothing(engine: Engine):
    row = make_row(**LOGGED)
    write_rows(engine, [row])
    now = START_MS + 4 * DAY
    beside(
        engine,
        [row.turn_id],
        lambda: retention.prune(engine, now, row_days=1, rollup_days=9),
    )
    assert set() == sums(engine)
