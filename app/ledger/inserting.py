"""Rows into ``turns``, as fast as the driver can: its own SQL, with plain tuples.

Only ``app.ledger.store`` inserts; it takes the rollups along.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from app.ledger.rows import COLUMNS, TurnRow

_values = attrgetter(*COLUMNS)
_COST = COLUMNS.index("cost_usd")
_NAMES = ", ".join(COLUMNS)
_COPY_FROM = 5
"""Rows from which on PostgreSQL takes them faster by COPY."""
_UNIQUE_VIOLATION = "23505"


def insert_new(connection: Connection, rows: Sequence[TurnRow]) -> list[TurnRow]:
    """Insert rows, leave alone those that are there already; returns the ones that were new.

    Of rows with one ``turn_id`` the first one counts. The database takes all rows of a call or
    none: SQLAlchemy's errors, and whatever the driver says to a value that it cannot pass on.
    """
    if not rows:
        return []
    if connection.dialect.name == "postgresql":
        return _new(rows, _insert_on_postgresql(connection, rows))
    newest = connection.exec_driver_sql("SELECT max(id) FROM turns").scalar_one() or 0
    inserted = connection.exec_driver_sql(_insert("?"), [_driver_values(row) for row in rows])
    if inserted.rowcount == len(rows):
        return list(rows)
    # Whoever inserts has the database's only lock for writing: all that came after are ours.
    found = connection.exec_driver_sql("SELECT turn_id FROM turns WHERE id > ?", (newest,))
    return _new(rows, found.scalars())


def _new(rows: Sequence[TurnRow], turn_ids: Iterable[str]) -> list[TurnRow]:
    left = set(turn_ids)
    new = []
    for row in rows:
        if row.turn_id in left:
            left.remove(row.turn_id)
            new.append(row)
    return new


def _insert_on_postgresql(connection: Connection, rows: Sequence[TurnRow]) -> list[str]:
    cursor: Any = connection.connection.cursor()
    values = [_driver_values(row) for row in rows]
    with translated(connection, "INSERT INTO turns"), contextlib.closing(cursor):
        if len(rows) < _COPY_FROM:
            # One by one: the driver's executemany quotes values in the log when one is refused.
            statement = f"{_insert('%s')} RETURNING turn_id"
            return [turn_id for one in values for (turn_id,) in cursor.execute(statement, one)]
        if _copied(connection, cursor, values):
            return [row.turn_id for row in rows]
        cursor.execute(_INCOMING)
        _copy(cursor, "incoming_turns", values)
        cursor.execute(_TAKE)
        return [turn_id for (turn_id,) in cursor]


def _copied(connection: Connection, cursor: Any, values: Sequence[tuple[Any, ...]]) -> bool:
    """Copy rows straight in, which takes all of them or, where one is there already, none."""
    cursor.execute("SAVEPOINT copying")
    try:
        _copy(cursor, "turns", values)
    except connection.dialect.loaded_dbapi.IntegrityError as error:
        if getattr(error, "sqlstate", None) != _UNIQUE_VIOLATION:
            raise
        cursor.execute("ROLLBACK TO SAVEPOINT copying")
        return False
    cursor.execute("RELEASE SAVEPOINT copying")
    return True


def _copy(cursor: Any, table: str, values: Sequence[tuple[Any, ...]]) -> None:
    with cursor.copy(f"COPY {table} ({_NAMES}) FROM STDIN") as copy:
        for one in values:
            copy.write_row(one)


@contextlib.contextmanager
def translated(connection: Connection, statement: str) -> Iterator[None]:
    """The driver's errors as SQLAlchemy's, as those of its own statements are.

    They name ``statement``, and none of its values.
    """
    dialect = connection.dialect
    base = dialect.loaded_dbapi.Error
    try:
        yield
    except base as error:
        lost = dialect.is_disconnect(error, connection.connection.dbapi_connection, None)
        if lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            statement,
            (),
            error,
            base,
            hide_parameters=True,
            connection_invalidated=lost,
            dialect=dialect,
        ) from error


def _driver_values(row: TurnRow) -> tuple[Any, ...]:
    values: tuple[Any, ...] = _values(row)
    if values[_COST] is None:
        return values
    return (*values[:_COST], str(values[_COST]), *values[_COST + 1 :])


def _insert(mark: str) -> str:
    """An insert that leaves a row alone that is there already."""
    marks = ", ".join([mark] * len(COLUMNS))
    return (
        f"INSERT INTO turns ({_NAMES}) VALUES ({marks}) "  # noqa: S608  (our own names)
        "ON CONFLICT (turn_id) DO NOTHING"
    )


_INCOMING = (
    "CREATE TEMPORARY TABLE IF NOT EXISTS incoming_turns ON COMMIT DELETE ROWS "  # noqa: S608
    f"AS SELECT {_NAMES} FROM turns WITH NO DATA"
)
_TAKE = (
    f"INSERT INTO turns ({_NAMES}) SELECT {_NAMES} FROM incoming_turns "  # noqa: S608
    "ON CONFLICT (turn_id) DO NOTHING RETURNING turn_id"
)
