from decimal import Decimal

from sqlalchemy import create_engine, select

from app.ledger.models import Base, turns
from app.ledger.rows import (
    BOOL_COLUMNS,
    COLUMNS,
    DECIMAL_COLUMNS,
    FLOAT_COLUMNS,
    INT_COLUMNS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
    TurnRow,
)
from tests.support.rows import make_row


def test_the_table_holds_the_id_and_then_the_columns_of_the_contract():
    assert ("id", *COLUMNS) == tuple(turns.c.keys())


def test_each_column_has_the_type_that_rows_promise():
    python = {
        str: TEXT_COLUMNS,
        bool: BOOL_COLUMNS,
        float: FLOAT_COLUMNS,
        int: INT_COLUMNS | TIME_COLUMNS,
        Decimal: DECIMAL_COLUMNS,
    }
    for kind, names in python.items():
        for name in names:
            column = turns.c[name]
            found = Decimal if name in DECIMAL_COLUMNS else column.type.python_type
            assert kind is found, name


def test_what_may_be_unknown_is_nullable_and_nothing_else():
    optional = {name for name, hint in TurnRow.__annotations__.items() if "None" in hint}
    # A name may be unknown to importers; the key never is.
    assert optional == {name for name in COLUMNS if turns.c[name].nullable}


def test_ids_are_never_used_again():
    assert turns.dialect_options["sqlite"]["autoincrement"]


def test_money_comes_back_as_it_went_in():
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    row = make_row(cost_usd=Decimal("0.123456789"))
    with engine.begin() as connection:
        connection.execute(
            turns.insert(), [dict(zip(COLUMNS, r.values(), strict=True)) for r in (row, make_row())]
        )
        read = connection.execute(select(turns.c.cost_usd).order_by(turns.c.id)).scalars().all()
    engine.dispose()
    assert [Decimal("0.123456789"), None] == read
