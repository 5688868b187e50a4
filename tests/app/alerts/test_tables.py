import re
from typing import Any

import pytest
from sqlalchemy import BigInteger, Engine, Table, delete, insert, inspect, select
from sqlalchemy.exc import IntegrityError

from app.alerts import tables
from app.ledger.models import Base

ALL = (
    tables.rules,
    tables.states,
    tables.events,
    tables.receivers,
    tables.deliveries,
    tables.attempts,
    tables.silences,
)


def row(table: Table, **values: Any) -> dict[str, Any]:
    """What has to be there is "" or 0, and the rest NULL."""
    made = {column.name: column.type.python_type() for column in table.c if not column.nullable}
    return made | values


def test_these_are_all_tables_of_alerts():
    named = {name for name in Base.metadata.tables if name.startswith("alert_")}
    assert {table.name for table in ALL} == named


def test_a_new_database_has_them_with_their_columns(engine: Engine):
    found = inspect(engine)
    for table in ALL:
        columns = {column["name"] for column in found.get_columns(table.name)}
        assert columns == set(table.c.keys())


def test_an_address_and_secrets_have_one_place_each_and_that_is_sealed():
    """What a message or an attempt keeps is named by the receiver and never by where it goes."""
    telling = re.compile(r"url|uri|addr|host|path|query|secret|token|password|credential|header")
    found = {
        f"{table.name}.{column.name}"
        for table in ALL
        for column in table.c
        if telling.search(column.name)
    }
    assert found == {"alert_receivers.address", "alert_receivers.secrets"}


def test_nothing_of_a_conversation_has_a_place():
    content = re.compile(r"prompt|answer|content|input|output|message|request")
    found = {column.name for table in ALL for column in table.c if content.search(column.name)}
    assert found == set()


def test_times_in_milliseconds_have_64_bits():
    times = re.compile(r"(_at|^at|_until|^since)$")
    kinds = {type(column.type) for table in ALL for column in table.c if times.search(column.name)}
    assert kinds == {BigInteger}


@pytest.mark.parametrize(
    ("table", "first", "second"),
    [
        (tables.rules, {"id": "1", "name": "x"}, {"id": "2", "name": "x"}),
        (tables.receivers, {"id": "1", "name": "x"}, {"id": "2", "name": "x"}),
        (tables.deliveries, {"number": 1, "id": "x"}, {"number": 2, "id": "x"}),
    ],
    ids=["name of a rule", "name of a receiver", "id of a delivery"],
)
def test_what_names_one_thing_cannot_name_two(engine: Engine, table, first, second):
    with engine.begin() as connection:
        connection.execute(insert(table), row(table, **first))
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(insert(table), row(table, **second))


def test_a_group_has_one_state(engine: Engine):
    state = row(tables.states, rule_id="r1", group_key="{}")
    with engine.begin() as connection:
        connection.execute(insert(tables.rules), row(tables.rules, id="r1"))
        connection.execute(insert(tables.states), state)
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(insert(tables.states), state)


def test_a_state_belongs_to_a_rule(engine: Engine):
    state = row(tables.states, rule_id="nobody", group_key="{}")
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(insert(tables.states), state)


def test_the_number_of_a_deleted_delivery_is_not_given_again(engine: Engine):
    """Messages are sent in the order of their numbers, and their attempts refer to them."""
    table = tables.deliveries
    values = row(table)
    del values["number"]
    with engine.begin() as connection:
        connection.execute(insert(table), values)
        first = connection.execute(select(table.c.number)).scalar_one()
        connection.execute(delete(table))
        connection.execute(insert(table), values)
        assert connection.execute(select(table.c.number)).scalar_one() > first
