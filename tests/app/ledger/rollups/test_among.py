from sqlalchemy import Engine, select

from app.ledger.models import turns
from app.ledger.rollups.among import among, listed, parts, sessions_among, text
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


def test_sessions_are_found_in_the_driver_s_own_sql(engine: Engine):
    write_rows(engine, [make_row(turn_id=name, session_key=f"{name}'\"") for name in "abc"])
    with engine.connect() as connection:
        query = f"SELECT turn_id FROM turns WHERE {sessions_among(connection)} ORDER BY turn_id"
        for wanted, keys in ((["a", "c"], ["c'\"", "a'\"", "other"]), ([], [])):
            given = (listed(connection, keys),)
            assert wanted == list(connection.exec_driver_sql(query, given).scalars())


def test_a_mark_stands_for_a_value_and_a_percent_sign_for_itself(engine: Engine):
    with engine.connect() as connection:
        query = text(connection, "SELECT 'a' LIKE '%a%' AND 7 % 4 = CAST(? AS INTEGER)")
        assert connection.exec_driver_sql(query, (3,)).scalar_one()


def test_parts_are_all_there_is_in_its_order_and_short():
    found = list(range(1_100))
    assert found == [one for some in parts(found) for one in some]
    assert [500, 500, 100] == [len(some) for some in parts(found)]
    assert [800, 300] == [len(some) for some in parts(found, 800)]
    assert [] == list(parts([]))
