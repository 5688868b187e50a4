import pytest
from sqlalchemy import Engine, select

from app.ledger.rollups import apply, tables
from app.ledger.rollups import state as states
from app.ledger.rollups.contribution import BLOCK, DAY, FIVE, HOUR, QUARTER
from app.ledger.rollups.distribution import Distribution
from app.ledger.writer import write_rows
from tests.support.rows import START_MS, make_row

DAWN = START_MS - START_MS % DAY


def levels(engine: Engine, table=tables.cells) -> dict[int, int]:
    """Turns by level, where there are any."""
    found: dict[int, int] = {}
    with engine.connect() as connection:
        for row in connection.execute(select(table)):
            if getattr(row, "detail", 0) == 0:
                found[row.level] = found.get(row.level, 0) + row.turns
    return found


def row_at(instant: int, **changes):
    return make_row(started_at=instant, recorded_at=instant, **changes)


def test_a_row_is_counted_in_its_five_minutes_at_once_and_in_its_hour_when_that_is_over(
    engine: Engine,
):
    write_rows(engine, [row_at(DAWN)])
    assert {FIVE: 1} == levels(engine)
    write_rows(engine, [row_at(DAWN + HOUR + apply.GRACE - 1)])
    assert {FIVE: 2} == levels(engine)
    write_rows(engine, [row_at(DAWN + HOUR + apply.GRACE)])
    assert {FIVE: 3, HOUR: 1} == levels(engine)
    write_rows(engine, [row_at(DAWN + DAY + apply.GRACE)])
    assert {FIVE: 4, HOUR: 3, BLOCK: 3, DAY: 3} == levels(engine)
    assert {QUARTER: 4, HOUR: 3, DAY: 3} == levels(engine, tables.sessions)


def test_a_row_that_comes_late_is_counted_at_every_level(engine: Engine):
    write_rows(engine, [row_at(DAWN + DAY + apply.GRACE)])
    write_rows(engine, [make_row(started_at=DAWN, recorded_at=DAWN + 2 * DAY)])
    assert {FIVE: 2, HOUR: 1, BLOCK: 1, DAY: 1} == levels(engine)
    assert {QUARTER: 2, HOUR: 1, DAY: 1} == levels(engine, tables.sessions)


def test_a_clock_far_ahead_at_one_client_sums_up_nothing_early(engine: Engine):
    """A row is not newer than when it was written."""
    write_rows(engine, [make_row(started_at=DAWN + 999 * DAY, recorded_at=DAWN)])
    with engine.connect() as connection:
        assert states.read(connection).coarse_until <= DAWN


def test_times_are_appended_and_made_short_when_the_hour_is_over(engine: Engine, monkeypatch):
    monkeypatch.setattr(apply, "LONG", 8)
    for _ in range(3):
        write_rows(engine, [row_at(DAWN, ttft_ms=100.0)])
    query = select(tables.times.c.ttft).where(
        tables.times.c.level == FIVE, tables.times.c.start == DAWN, tables.times.c.detail == 0
    )
    with engine.connect() as connection:
        (long,) = connection.execute(query).scalars()
    write_rows(engine, [row_at(DAWN + 2 * HOUR)])
    with engine.connect() as connection:
        (short,) = connection.execute(query).scalars()
    assert len(short) < len(long)
    assert Distribution([100.0] * 3) == Distribution.read(short) == Distribution.read(long)


@pytest.mark.parametrize("name", ["a", None])
def test_a_session_keeps_the_greater_of_its_names(engine: Engine, name):
    for session in ("b", name):
        write_rows(engine, [row_at(DAWN, session=session, session_key="k")])
    with engine.connect() as connection:
        assert "b" == connection.execute(select(tables.sessions.c.session)).scalar_one()
