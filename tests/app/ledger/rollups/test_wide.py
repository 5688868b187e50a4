import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.rollups import apply, sessions, wide
from app.ledger.rollups import state as states
from app.ledger.rollups.contribution import DAY, HOUR, MINUTE, QUARTER
from app.ledger.rollups.lives import SIZES, TOGETHER, block_of
from app.ledger.rollups.plan import only_rows
from app.ledger.rollups.wide import Core, cover, cut
from app.ledger.writer import write_rows
from tests.support.rows import START_MS, make_row

DAWN = START_MS - START_MS % DAY
hours = st.integers(450_000, 450_080)


@given(st.tuples(hours, hours).map(sorted), st.tuples(hours, hours).map(sorted))
def test_each_block_that_has_an_hour_of_the_core_is_within_it_or_cut_by_it(core, life):
    first, end = core[0], core[1] + 1
    size, block = block_of(*life)
    begins, ends = block << size, (block + 1) << size
    within = first <= begins and ends <= end
    beside = ends <= first or end <= begins
    assert (not within and not beside) == (
        (size, block) in cut(Core(first, end, only_rows(0, 0), ()))
    )


@given(st.integers(-(10**4), 10**6), st.integers(1, 5_000))
def test_each_hour_of_the_core_is_covered_once_and_by_few_blocks(first, length):
    found = list(cover(Core(first, first + length, only_rows(0, 0), ())))
    lowest, beyond = -(-first >> TOGETHER), (first + length) >> TOGETHER
    covered = [at for size, block in found for at in range(block << size, (block + 1) << size)]
    covered += range(lowest << TOGETHER, max(lowest, beyond) << TOGETHER)
    assert list(range(first, first + length)) == sorted(covered)
    assert len(found) <= 2 * TOGETHER


def test_there_are_few_of_them():
    assert len(cut(Core(450_001, 450_721, only_rows(0, 0), ()))) <= 2 * len(SIZES) + 1


def write(engine: Engine) -> None:
    """``a`` within the day, ``b`` since before it, ``c`` in its first minutes and later, ``d`` on
    both sides of it."""
    at = {
        "a": [3 * HOUR, 5 * HOUR, 5 * HOUR + 1],
        "b": [-HOUR, 2 * HOUR],
        "c": [31 * MINUTE, 9 * HOUR],
        "d": [-HOUR, 30 * HOUR],
    }
    rows = [
        make_row(session_key=name, started_at=DAWN + one)
        for name, some in at.items()
        for one in some
    ]
    write_rows(engine, [*rows, make_row(session_key="z", started_at=DAWN + 2 * DAY)])


VIEW = Filter(start=DAWN + 30 * MINUTE, end=DAWN + DAY - 1)


def holds(engine: Engine) -> None:
    with reading(engine) as connection:
        assert wide.core(connection, VIEW) is not None
        assert 3 == sessions.count(connection, VIEW)
        found = [(one.session_key, one.sums[0]) for one in sessions.sums(connection, VIEW, 3)]
        assert [("a", 3), ("c", 2), ("b", 1)] == found
        assert [(1, 1, 1), (2, 2, 1), (3, 3, 1)] == sorted(sessions.residency(connection, VIEW))


def test_a_session_counts_with_the_turns_that_it_has_in_the_window(engine: Engine):
    write(engine)
    holds(engine)


def test_where_too_many_cross_an_edge_all_are_added_up(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    write(engine)
    monkeypatch.setattr(wide, "MANY", 1)
    holds(engine)


def test_a_filter_a_short_window_and_a_ledger_that_is_not_counted_have_no_core(engine: Engine):
    write(engine)
    hour = VIEW.start - VIEW.start % HOUR
    with engine.begin() as connection:
        assert wide.core(connection, VIEW.narrow("model", "x")) is None
        assert wide.core(connection, VIEW.window(hour + 1, hour + 2 * HOUR - QUARTER - 1)) is None
        states.put(connection, states.MISSING, 1)
        assert wide.core(connection, VIEW) is None


def test_hours_that_are_not_over_are_beside_the_core(engine: Engine):
    write_rows(engine, [make_row(started_at=DAWN + 3 * HOUR + apply.GRACE - 1)])
    with reading(engine) as connection:
        found = wide.core(connection, VIEW)
    assert found is not None
    assert DAWN // HOUR + 2 == found.end
