import pytest
from sqlalchemy import Engine

from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.rollups.contribution import DAY, FIVE, HOUR, LEVELS, MINUTE, QUARTER, SESSION_LEVELS
from app.ledger.rollups.reaching import reach
from app.ledger.rollups.read import CELLS, SESSIONS, planned
from app.ledger.rollups.wide import core
from app.ledger.writer import write_rows
from tests.support.rows import START_MS, make_row

DAWN = START_MS - START_MS % DAY
NEWEST = DAWN + HOUR + 12 * MINUTE


@pytest.mark.parametrize(
    ("end", "reached"),
    [
        (NEWEST, NEWEST),
        (NEWEST + 1, DAWN + HOUR + QUARTER),
        (DAWN + HOUR + QUARTER, DAWN + HOUR + QUARTER),
        (DAWN + HOUR + QUARTER + 1, DAWN + HOUR + 2 * QUARTER),
        (DAWN + 1, DAWN + QUARTER),
        (-1, 0),
        (0, 0),
    ],
)
def test_a_window_takes_in_the_rest_of_a_stretch_in_which_no_row_begins(
    engine: Engine, end: int, reached: int
):
    write_rows(engine, [make_row(started_at=DAWN), make_row(started_at=NEWEST)])
    with reading(engine) as connection:
        assert reached == reach(connection, Filter(start=end - 1, end=end), QUARTER)


def test_of_a_window_that_goes_on_to_now_no_rows_are_read_at_its_end(engine: Engine):
    write_rows(engine, [make_row(started_at=DAWN + MINUTE), make_row(started_at=NEWEST)])
    view = Filter(start=DAWN, end=NEWEST + 1)
    edges = [DAWN, DAWN + HOUR, NEWEST + 1]
    with reading(engine) as connection:
        cells = planned(connection, view, edges, CELLS, LEVELS)
        assert ([], DAWN + HOUR + QUARTER) == (cells.rows, cells.edges[-1])
        assert [] == planned(connection, view, (), SESSIONS, SESSION_LEVELS).rows
        found = core(connection, view)
        assert found is not None
        assert found.ahead is not None
        assert [] == found.ahead.rows


def test_at_an_end_with_rows_on_both_sides_rows_are_read(engine: Engine):
    write_rows(engine, [make_row(started_at=NEWEST - 1), make_row(started_at=NEWEST)])
    view = Filter(start=DAWN, end=NEWEST)
    with reading(engine) as connection:
        made = planned(connection, view, [DAWN, NEWEST], CELLS, LEVELS)
    assert [(DAWN + HOUR + 2 * FIVE, NEWEST)] == made.rows
