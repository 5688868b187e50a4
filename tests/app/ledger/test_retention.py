from sqlalchemy import Engine

from app.ledger.database import WRITES
from app.ledger.filters import Filter
from app.ledger.retention import Pruned, kept_from, prune
from app.ledger.rollups import state as states
from app.ledger.rollups.contribution import DAY
from app.ledger.summary import summarize
from app.ledger.writer import write_rows
from tests.support.rollups import turns_in
from tests.support.rows import START_MS, make_row

DAWN = START_MS - START_MS % DAY


def write(engine: Engine) -> None:
    write_rows(engine, [make_row(started_at=START_MS - n * DAY) for n in range(10)])


def total(engine: Engine, view: Filter) -> int:
    return summarize(engine, view).total


WHOLE = Filter(start=DAWN - 20 * DAY, end=DAWN + DAY)


def test_rows_go_by_whole_days_and_their_figures_stay(engine: Engine):
    write(engine)
    done = prune(engine, START_MS, row_days=3, rollup_days=0)
    assert Pruned(rows=6, rows_from=DAWN - 3 * DAY, rollups_from=None) == done
    assert 4 == turns_in(engine)
    assert 10 == total(engine, WHOLE)
    assert DAWN - 3 * DAY == kept_from(engine).rows_from


def test_a_filter_that_only_rows_can_answer_finds_what_is_kept(engine: Engine):
    write(engine)
    prune(engine, START_MS, row_days=3, rollup_days=0)
    assert 4 == total(engine, WHOLE.narrow("session", "session-a"))


def test_sums_go_too_when_they_are_too_old(engine: Engine):
    write(engine)
    done = prune(engine, START_MS, row_days=3, rollup_days=5)
    assert DAWN - 5 * DAY == done.rollups_from
    assert 6 == total(engine, WHOLE)


def test_sums_stay_at_least_as_long_as_rows(engine: Engine):
    write(engine)
    assert DAWN - 3 * DAY == prune(engine, START_MS, row_days=3, rollup_days=1).rollups_from
    assert 4 == turns_in(engine) == total(engine, WHOLE)


def test_for_ever_is_for_ever(engine: Engine):
    write(engine)
    assert Pruned(0, None, None) == prune(engine, START_MS, row_days=0, rollup_days=0)
    assert Pruned(0, None, None) == prune(engine, START_MS, row_days=0, rollup_days=3)
    assert 10 == turns_in(engine)


def test_what_was_deleted_stays_deleted_when_the_setting_grows(engine: Engine):
    write(engine)
    prune(engine, START_MS, row_days=3, rollup_days=0)
    assert DAWN - 3 * DAY == prune(engine, START_MS, row_days=8, rollup_days=0).rows_from


def test_it_can_be_stopped_and_goes_on_the_next_time(engine: Engine):
    write(engine)
    stopped = prune(engine, START_MS, row_days=3, rollup_days=0, stop=lambda: True)
    assert (0, 10) == (stopped.rows, turns_in(engine))
    assert 10 == total(engine, WHOLE)
    assert 6 == prune(engine, START_MS, row_days=3, rollup_days=0).rows


def test_rows_that_no_rollup_counts_yet_are_not_deleted(engine: Engine):
    write(engine)
    with engine.execution_options(**WRITES).begin() as connection:
        states.put(connection, states.MISSING, 1)
    assert 0 == prune(engine, START_MS, row_days=3, rollup_days=0).rows
    assert 10 == turns_in(engine)


def test_nothing_is_said_to_be_deleted_where_there_was_nothing(engine: Engine):
    write_rows(engine, [make_row()])
    assert Pruned(0, None, None) == prune(engine, START_MS, row_days=3, rollup_days=5)
    assert kept_from(engine).rows_from is None
