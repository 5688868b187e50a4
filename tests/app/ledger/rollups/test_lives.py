from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from app.ledger import store
from app.ledger.database import WRITES
from app.ledger.models import turns
from app.ledger.rollups import apply, tables, wide
from app.ledger.rollups.contribution import DAY, HOUR
from app.ledger.rollups.lives import EVERYTHING, block_of
from app.ledger.rollups.plan import only_rows
from app.ledger.writer import write_rows
from tests.support.rows import START_MS, make_row

DAWN = START_MS - START_MS % DAY
hours = st.integers(-(10**4), 10**6)


@given(st.tuples(hours, hours).map(sorted))
def test_a_block_holds_both_hours_and_no_smaller_one_does(ends):
    size, block = block_of(*ends)
    if (size, block) == EVERYTHING:
        assert ends[0] < 0 <= ends[1]
        return
    assert {block} == {hour >> size for hour in ends}
    assert size == 0 or ends[0] >> (size - 1) != ends[1] >> (size - 1)


def test_what_a_century_does_not_hold_has_a_block_of_its_own():
    assert EVERYTHING == block_of(-1, 0) == block_of(0, 2**30)


def lives(engine: Engine) -> dict[str, tuple[int, int, int]]:
    """Turns and the hours of each session's ends, after the day's dawn."""
    li = tables.lives.c
    with engine.connect() as connection:
        return {
            row.session_key: (row.turns, row.first - DAWN // HOUR, row.last - DAWN // HOUR)
            for row in connection.execute(select(li))
        }


def test_a_session_lives_as_long_as_its_hours_that_are_over(engine: Engine):
    rows = [
        make_row(turn_id=f"t{at}", session_key="k", started_at=DAWN + at * HOUR) for at in (1, 3)
    ]
    write_rows(engine, rows)
    assert {"k": (1, 1, 1)} == lives(engine)
    write_rows(engine, [make_row(session_key="later", started_at=DAWN + 4 * HOUR + apply.GRACE)])
    assert {"k": (2, 1, 3)} == lives(engine)
    write_rows(engine, [make_row(session_key="k", started_at=DAWN)])
    assert {"k": (3, 0, 3)} == lives(engine)
    with engine.execution_options(**WRITES).begin() as connection:
        store.delete_rows(connection, turns.c.turn_id == "t3")
    assert {"k": (2, 0, 1)} == lives(engine)
    with engine.execution_options(**WRITES).begin() as connection:
        store.delete_rows(connection, turns.c.session_key == "k")
    assert {} == lives(engine)
    with engine.connect() as connection:
        for table in (tables.blocks, tables.shares):
            assert [] == connection.execute(select(table)).all()


def test_a_block_knows_how_many_sessions_it_has_and_the_longest(engine: Engine):
    write_rows(
        engine,
        [
            *(make_row(session_key=name, started_at=DAWN) for name in "abbcc"),
            make_row(started_at=DAWN + HOUR + apply.GRACE),
        ],
    )
    with engine.connect() as connection:
        (found,) = connection.execute(select(tables.blocks)).all()
    assert (3, 2, "b") == (found.sessions, found.most, found.leader)


def test_shares_of_a_session_count_in_all_blocks_around_its_own(engine: Engine):
    hour = DAWN // HOUR
    write_rows(
        engine,
        [
            make_row(session_key="a", started_at=DAWN + HOUR),
            make_row(session_key="b", started_at=DAWN + 1),
            make_row(session_key="b", started_at=DAWN + 2 * HOUR, mode="ws_full"),
            make_row(session_key="later", started_at=DAWN + 8 * DAY),
        ],
    )

    def found(first: int, end: int) -> dict:
        with engine.connect() as connection:
            return wide.shares(connection, wide.Core(hour + first, hour + end, only_rows(0, 0), ()))

    assert {(1, 1): 1} == found(1, 2)
    assert {(1, 1): 1, (1, 2): 1} == found(0, 4) == found(-500, 600)
    with engine.execution_options(**WRITES).begin() as connection:
        store.delete_rows(connection, turns.c.session_key == "a")
    assert {(1, 2): 1} == found(0, 4)
