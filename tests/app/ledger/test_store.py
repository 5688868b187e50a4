import pytest
from sqlalchemy import Engine

from app.errors import LedgerError
from app.ledger import queries, store
from app.ledger.database import WRITES
from app.ledger.models import turns
from app.ledger.rollups import state as states
from tests.support.ledger import everything
from tests.support.rollups import expected_whole, found_whole, turns_in
from tests.support.rows import START_MS, make_row


@pytest.fixture
def writing(engine: Engine) -> Engine:
    return engine.execution_options(**WRITES)


def holds(engine: Engine, rows) -> None:
    assert len(rows) == turns_in(engine)
    assert expected_whole(rows, everything()) == found_whole(engine, everything())


def test_only_new_rows_are_inserted_and_told(writing: Engine):
    first, second = make_row(turn_id="a"), make_row(turn_id="b")
    with writing.begin() as connection:
        assert [first] == store.insert_rows(connection, [first])
        assert [second] == store.insert_rows(
            connection, [make_row(turn_id="a", model="x"), second, make_row(turn_id="b", model="y")]
        )
        assert [] == store.insert_rows(connection, [])
    holds(writing, [first, second])


def test_a_changed_row_is_counted_as_it_is_now(writing: Engine):
    before = [make_row(turn_id="a"), make_row(turn_id="b")]
    after = make_row(turn_id="b", mode="ws_full", session="other", started_at=START_MS + 9)
    with writing.begin() as connection:
        store.insert_rows(connection, before)
        assert 1 == store.update_rows(connection, [before[0], after, make_row(turn_id="not there")])
    holds(writing, [before[0], after])
    assert after == queries.one(writing, "b")


def test_a_deleted_row_has_never_been(writing: Engine):
    rows = [make_row(model=model) for model in "aab"]
    told: list[int] = []
    with writing.begin() as connection:
        store.insert_rows(connection, rows)
        assert 2 == store.delete_rows(connection, turns.c.model == "a", progress=told.append)
    holds(writing, rows[2:])
    assert [2] == told


def test_a_change_that_fails_changes_nothing(writing: Engine):
    row = make_row()

    def fail() -> None:
        with writing.begin() as connection:
            store.insert_rows(connection, [row])
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        fail()
    holds(writing, [])


def test_nothing_is_taken_away_from_rollups_that_are_not_complete(writing: Engine):
    row = make_row()
    with writing.begin() as connection:
        store.insert_rows(connection, [row])
        states.put(connection, states.MISSING, 1)
    with pytest.raises(LedgerError, match="warmline db rollup"), writing.begin() as connection:
        store.delete_rows(connection, turns.c.turn_id == row.turn_id)
    holds(writing, [row])


def test_rows_that_are_pruned_stay_in_the_figures(writing: Engine):
    rows = [make_row(started_at=START_MS - n) for n in range(3)]
    with writing.begin() as connection:
        store.insert_rows(connection, rows)
        assert 2 == store.prune_rows(connection, START_MS, limit=2)
        assert 0 == store.prune_rows(connection, START_MS, limit=2)
    assert 1 == turns_in(writing)
    assert 3 == found_whole(writing, everything())["total"]
