from sqlalchemy import Engine, func, insert, select

from app.alerts import tables
from app.alerts.groups import key_of
from app.alerts.purging import purge_tenant
from tests.support.deliveries import put, stored
from tests.support.rows import START_MS as NOW

MINE, THEIRS = key_of({"model": "m", "tenant": "mine"}), key_of({"tenant": "mine too"})


def event(engine: Engine, group: str, at: int = NOW) -> None:
    values = dict.fromkeys(("rule_id", "rule_name", "before", "after", "cause"), "x")
    with engine.begin() as connection:
        connection.execute(insert(tables.events).values(group_key=group, at=at, **values))


def count(engine: Engine, table) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def attempt(engine: Engine, name: str) -> None:
    d = tables.deliveries.c
    with engine.begin() as connection:
        number = connection.execute(select(d.number).where(d.id == name)).scalar_one()
        connection.execute(
            insert(tables.attempts).values(
                delivery=number, attempt=1, started_at=NOW, duration_ms=1.0, outcome="HTTP 200"
            )
        )


def test_events_and_messages_of_a_tenants_groups_go(engine: Engine):
    for group in (MINE, THEIRS, "{}"):
        event(engine, group)
    mine, theirs = put(engine, group_key=MINE), put(engine, group_key=THEIRS)
    attempt(engine, mine)
    attempt(engine, theirs)
    assert 2 == purge_tenant(engine, "mine")
    assert (2, 1) == (count(engine, tables.events), count(engine, tables.attempts))
    assert stored(engine, theirs)
    assert 1 == count(engine, tables.deliveries)


def test_only_what_was_before_goes_where_that_is_asked(engine: Engine):
    event(engine, MINE, NOW - 1)
    event(engine, MINE, NOW)
    assert 1 == purge_tenant(engine, "mine", NOW)
    assert 1 == count(engine, tables.events)


def test_a_tenant_with_marks_that_json_escapes_is_found_by_its_whole_name(engine: Engine):
    event(engine, key_of({"model": "m", "tenant": 'a"b\\'}))
    event(engine, key_of({"tenant": 'a"b'}))
    assert 1 == purge_tenant(engine, 'a"b\\')
    with engine.connect() as connection:
        left = connection.execute(select(tables.events.c.group_key)).scalars().all()
    assert [key_of({"tenant": 'a"b'})] == left
