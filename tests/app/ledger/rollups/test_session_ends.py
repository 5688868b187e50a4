from sqlalchemy import Engine, select

from app.ledger import store
from app.ledger.database import WRITES
from app.ledger.models import turns
from app.ledger.rollups import apply, tables
from app.ledger.rollups.contribution import DAY, HOUR
from app.ledger.writer import write_rows
from tests.support.rows import START_MS, make_row

DAWN = START_MS - START_MS % DAY


def ends(engine: Engine, level: int) -> list[tuple[str | None, int, int]]:
    s = tables.sessions.c
    query = select(s.session, s.first_at, s.last_at).where(s.level == level, s.session_key == "k")
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(query.order_by(s.start))]


def delete(engine: Engine, turn_id: str) -> None:
    with engine.execution_options(**WRITES).begin() as connection:
        assert 1 == store.delete_rows(connection, turns.c.turn_id == turn_id)


def test_without_its_first_or_last_turn_a_session_is_shorter(engine: Engine):
    rows = [
        make_row(turn_id=name, session=name, session_key="k", started_at=DAWN + at)
        for name, at in (("a", 10), ("b", 20), ("c", 30), ("d", HOUR))
    ]
    write_rows(engine, rows)
    write_rows(engine, [make_row(started_at=DAWN + DAY + apply.GRACE)])
    delete(engine, "c")
    assert [("b", DAWN + 10, DAWN + 20), ("d", DAWN + HOUR, DAWN + HOUR)] == ends(engine, HOUR)
    delete(engine, "d")
    assert [("b", DAWN + 10, DAWN + 20)] == ends(engine, HOUR) == ends(engine, DAY)
    delete(engine, "a")
    delete(engine, "b")
    assert [] == ends(engine, HOUR) == ends(engine, DAY)
