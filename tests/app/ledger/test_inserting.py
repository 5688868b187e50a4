"""Rows come back as they were given, on both databases and by both ways into PostgreSQL."""

from decimal import Decimal

import pytest
from sqlalchemy import Connection, Engine, select, text
from sqlalchemy.exc import DataError, DBAPIError, OperationalError

from app.ledger.inserting import insert_new
from app.ledger.models import turns
from app.ledger.rows import COLUMNS, TurnRow
from tests.support import postgres
from tests.support.rows import make_row

FEW, MANY = 3, 60


def stored(engine: Engine) -> list[TurnRow]:
    columns = [turns.c[name] for name in COLUMNS]
    with engine.connect() as connection:
        found = connection.execute(select(*columns).order_by(turns.c.id)).all()
    return [TurnRow(**row._mapping) for row in found]


def insert(engine: Engine, rows: list[TurnRow]) -> list[TurnRow]:
    with engine.begin() as connection:
        return insert_new(connection, rows)


def cut(connection: Connection) -> None:
    """As when the server ends while it is spoken to."""
    number = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    assert [(True,)] == postgres.server().ask(f"SELECT pg_terminate_backend({number}, 5000)")


@pytest.mark.parametrize("number", [0, 1, FEW, MANY])
def test_rows_are_stored_as_they_are_and_in_their_order(engine: Engine, number: int):
    rows = [make_row(session=f"s\t{place}\n\\N", model=None) for place in range(number)]
    assert rows == insert(engine, rows)
    assert rows == stored(engine)


@pytest.mark.parametrize("number", [1, MANY])
def test_values_of_every_kind_come_back(engine: Engine, number: int):
    values = {
        "store": False,
        "eligible": False,
        "cost_usd": Decimal("0.094"),
        "evidence": '{"a": "\\\\u00e9 é"}',
        "ttft_ms": 0.1,
        "bytes_total": 2**40,
        "session": "",
        "model": "\\N",
    }
    rows = [make_row(**values) for _ in range(number)]
    insert(engine, rows)
    assert rows == stored(engine)


@pytest.mark.parametrize("number", [FEW, MANY])
def test_only_the_rows_that_were_new_are_told_of(engine: Engine, number: int):
    rows = [make_row() for _ in range(number)]
    insert(engine, rows[:2])
    twice = make_row(turn_id=rows[-1].turn_id, model="another")
    assert rows[2:] == insert(engine, [*rows, twice])
    assert rows == stored(engine)
    assert [] == insert(engine, rows)


@pytest.mark.parametrize("number", [FEW, MANY])
def test_a_value_that_no_column_takes_lets_none_of_the_rows_in(engine: Engine, number: int):
    bad = make_row(epoch=2**70)
    with pytest.raises((DBAPIError, OverflowError)), engine.begin() as connection:
        insert_new(connection, [*(make_row() for _ in range(number)), bad])
    assert [] == stored(engine)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
@pytest.mark.parametrize("number", [FEW, MANY])
def test_a_driver_s_errors_are_those_of_the_layer_above(engine: Engine, number: int):
    rows = [make_row() for _ in range(number)]
    with pytest.raises(DataError), engine.begin() as connection:
        insert_new(connection, [*rows, make_row(session="\0")])
    with engine.connect() as connection:
        cut(connection)
        with pytest.raises(OperationalError):
            insert_new(connection, rows)
    assert rows == insert(engine, rows)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_the_way_in_leaves_nothing_in_the_database(engine: Engine):
    """Rows of which one is there already take a way of their own."""
    rows = [make_row() for _ in range(MANY)]
    insert(engine, rows[:1])
    assert rows[1:] == insert(engine, rows)
    with engine.begin() as connection:  # the same connection again
        assert 0 == connection.execute(text("SELECT count(*) FROM incoming_turns")).scalar_one()
    engine.dispose()
    with engine.connect() as connection:
        left = connection.execute(text("SELECT to_regclass('incoming_turns')")).scalar_one()
    assert left is None
