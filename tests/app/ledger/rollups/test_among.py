from sqlalchemy import Engine, select

from app.ledger.models import turns
from app.ledger.rollups.among import among
from app.ledger.writer import write_rows
from tests.support.rows import make_row

c = turns.c


def test_rows_are_found_by_texts_and_by_numbers(engine: Engine):
    rows = [make_row(turn_id=name, session_key=f"{name}\u00e9'\"") for name in "abc"]
    write_rows(engine, rows)
    with engine.connect() as connection:

        def found(column, values) -> list[str]:
            where = among(connection, column, values)
            return sorted(connection.execute(select(c.turn_id).where(where)).scalars())

        assert ["a", "c"] == found(c.session_key, ["a\u00e9'\"", "c\u00e9'\"", "other"])
        assert ["a", "b", "c"] == found(c.started_at, [0, rows[0].started_at])
        assert [] == found(c.session_key, [])
        assert [] == found(c.started_at, [])
