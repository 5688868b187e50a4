from sqlalchemy import Engine, func, select, update

from app.alerts import tables
from app.alerts.retention import prune
from tests.support.deliveries import put, stored
from tests.support.rows import START_MS as NOW


def count(engine: Engine, table) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def settled(engine: Engine, at: int) -> str:
    """A delivery that was settled then, with one attempt."""
    name = put(engine)
    with engine.begin() as connection:
        connection.execute(
            update(tables.deliveries)
            .where(tables.deliveries.c.id == name)
            .values(state="delivered", settled_at=at)
        )
        number = connection.execute(
            select(tables.deliveries.c.number).where(tables.deliveries.c.id == name)
        ).scalar_one()
        connection.execute(
            tables.attempts.insert().values(
                delivery=number, attempt=1, started_at=at, duration_ms=1.0, outcome="HTTP 200"
            )
        )
    return name


def event(engine: Engine, at: int) -> None:
    with engine.begin() as connection:
        connection.execute(
            tables.events.insert().values(
                rule_id="r",
                rule_name="R",
                group_key="{}",
                at=at,
                before="ok",
                after="firing",
                cause="evaluation",
            )
        )


def test_what_is_settled_goes_with_its_attempts_and_what_waits_stays(engine: Engine):
    settled(engine, NOW - 1)
    kept, waiting = settled(engine, NOW), put(engine)
    assert 1 == prune(engine, NOW)
    assert [kept, waiting] == [stored(engine, name).id for name in (kept, waiting)]
    assert (2, 1) == (count(engine, tables.deliveries), count(engine, tables.attempts))


def test_events_go_when_they_are_too_old(engine: Engine):
    event(engine, NOW - 1)
    event(engine, NOW)
    assert 1 == prune(engine, NOW)
    assert 1 == count(engine, tables.events)


def test_more_than_one_transaction_takes_goes_as_well(engine: Engine, monkeypatch):
    monkeypatch.setattr("app.alerts.retention._AT_ONCE", 2)
    for _ in range(5):
        settled(engine, NOW - 1)
    assert 5 == prune(engine, NOW)
    assert (0, 0) == (count(engine, tables.deliveries), count(engine, tables.attempts))
