from sqlalchemy import Engine

from app.ledger.rollups import state as states
from app.ledger.rollups.contribution import BLOCK, DAY, HOUR
from app.ledger.rollups.state import RollupState


def test_a_new_ledger_has_all_its_rollups_and_nothing_was_deleted(engine: Engine):
    with engine.connect() as connection:
        assert RollupState() == states.read(connection)


def test_what_is_put_is_read(engine: Engine):
    with engine.begin() as connection:
        states.put(connection, states.COARSE_UNTIL, 7)
        states.put(connection, states.COARSE_UNTIL, 8)
        states.put(connection, states.MISSING, 1)
        states.raise_to(connection, states.ROWS_FROM, 5)
        states.raise_to(connection, states.ROWS_FROM, 4)
        states.insert(connection, states.ROLLUPS_FROM, "3")
        states.insert(connection, states.ROLLUPS_FROM, "9")
        assert RollupState(8, missing=True, rows_from=5, rollups_from=3) == states.read(connection)
        states.remove(connection, states.MISSING)
        assert not states.hold(connection, change=True).missing


def test_it_can_be_held_where_it_was_never_put(engine: Engine):
    with engine.begin() as connection:
        states.remove(connection, states.COARSE_UNTIL)
        assert RollupState() == states.hold(connection, change=False)


def test_a_coarse_stretch_is_there_when_it_is_over():
    state = RollupState(coarse_until=DAY + 7 * HOUR)
    assert [DAY + 7 * HOUR, DAY + 6 * HOUR, DAY] == [
        state.whole_until(level) for level in (HOUR, BLOCK, DAY)
    ]
