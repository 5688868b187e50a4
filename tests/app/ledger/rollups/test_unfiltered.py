from sqlalchemy import Engine

from app.ledger.rollups import unfiltered
from app.ledger.rollups.contribution import DAY, HOUR, QUARTER, SESSION_SUMS
from app.ledger.rollups.plan import Plan
from app.ledger.writer import write_rows
from tests.support.rows import START_MS, make_row

DAWN = START_MS - START_MS % DAY


def test_sums_are_those_of_stretches_and_rows_together(engine: Engine):
    at = [0, HOUR, HOUR + 1, 2 * HOUR + QUARTER]
    write_rows(
        engine,
        [
            make_row(session_key=key, session=name, started_at=DAWN + one)
            for key, name in (("a", "A"), ("b", "B"))
            for one in at
        ]
        + [make_row(session_key="z", started_at=DAWN + 2 * DAY)],
    )
    stretches = {HOUR: [(DAWN, DAWN + HOUR)], QUARTER: [(DAWN + HOUR, DAWN + HOUR + QUARTER)]}
    made = Plan([], rows=[(DAWN + 2 * HOUR, DAWN + 3 * HOUR)], stretches=stretches)
    with engine.connect() as connection:
        both = unfiltered.sums(connection, made, ("turns", "known"))
        assert [("a", 4, 4), ("b", 4, 4)] == sorted(map(tuple, both))
        (one,) = unfiltered.sums(connection, made, SESSION_SUMS, ends=True, only=["b", "none"])
        assert ("b", "B", DAWN, DAWN + 2 * HOUR + QUARTER, 4) == tuple(one)[:5]
        assert [] == list(unfiltered.sums(connection, Plan([]), ("turns",)))
        assert [] == list(unfiltered.sums(connection, made, ("turns",), only=[]))
