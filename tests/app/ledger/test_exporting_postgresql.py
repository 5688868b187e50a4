"""What both databases have to write is in ``test_exporting``."""

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.exc import DBAPIError, OperationalError

from app.ledger import exporting_postgresql
from app.ledger.exporting_postgresql import csv_lines
from app.ledger.queries import snapshot
from app.ledger.rows import COLUMNS
from app.ledger.writer import write_rows
from tests.support import postgres
from tests.support.ledger import everything
from tests.support.rows import make_row

pytestmark = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)


def lines(engine: Engine, columns, view=None, **settings) -> bytes:
    with snapshot(engine) as connection:
        for name, value in settings.items():
            connection.exec_driver_sql(f"SET {name} = '{value}'")
        found = csv_lines(connection, view or everything(), columns, raw=False)
        return b"".join(data for _, data in found)


def test_settings_of_the_database_change_nothing(engine: Engine):
    write_rows(engine, [make_row(session="é", ttft_ms=1 / 3, turn_id="t")])
    columns = ("session", "ttft_ms", "started_at", "store")
    assert "é,0.3333333333333333,2027-01-15T08:00:00.000Z,\r\n".encode() == lines(
        engine,
        columns,
        client_encoding="LATIN1",
        extra_float_digits="-10",
        datestyle="German",
        timezone="Asia/Tokyo",
    )


def test_pieces_are_bounded_in_rows_and_in_bytes(engine: Engine, monkeypatch):
    write_rows(engine, [make_row(session="x" * 50) for _ in range(7)])
    monkeypatch.setattr(exporting_postgresql, "ROWS", 3)
    with snapshot(engine) as connection:
        found = csv_lines(connection, everything(), ("session", "kind"), raw=False)
        assert [3, 3, 1] == [rows for rows, _ in found]
    monkeypatch.setattr(exporting_postgresql, "BYTES", 100)
    with snapshot(engine) as connection:
        found = csv_lines(connection, everything(), ("session", "kind"), raw=False)
        assert [2, 2, 2, 1] == [rows for rows, _ in found]


def test_values_of_a_filter_are_values_whatever_they_hold(engine: Engine):
    text = "%s %(x)s ' \\ %% $1 --"
    write_rows(engine, [make_row(turn_id="t", model=text), make_row(model="other")])
    view = everything().narrow("model", text)
    assert b"t,generation\r\n" == lines(engine, ("turn_id", "kind"), view)


def test_a_failure_is_one_of_sqlalchemy_without_values(engine: Engine):
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE turns RENAME COLUMN model TO gone")
    with pytest.raises(DBAPIError) as caught:
        lines(engine, COLUMNS, everything().narrow("session", "secret-name"))
    assert "secret-name" not in str(caught.value)


def lines_while_the_server_ends(engine: Engine) -> None:
    with snapshot(engine) as connection:
        number = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        end = f"SELECT pg_terminate_backend({number}, 5000)"
        # After the only statement that goes before COPY.
        event.listen(connection, "after_cursor_execute", lambda *_: postgres.server().ask(end))
        list(csv_lines(connection, everything(), COLUMNS, raw=False))


def test_a_connection_that_is_lost_meanwhile_is_told_as_lost(engine: Engine):
    with pytest.raises(OperationalError) as caught:
        lines_while_the_server_ends(engine)
    assert "COPY turns" == caught.value.statement
    assert caught.value.connection_invalidated
