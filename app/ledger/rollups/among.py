"""Looking up many values at once, in one parameter; and SQL with its values, as drivers want it.

A list with a parameter for each value costs more to send than to answer: its statement is written
anew each time.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, any_, bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY

_AT_ONCE = 500

T = TypeVar("T")


def among(
    connection: Connection,
    column: ColumnElement[str] | ColumnElement[int],
    values: Collection[str | int],
) -> ColumnElement[bool]:
    """Whether a column has one of the values."""
    given = listed(connection, values)
    if connection.dialect.name == "postgresql":
        return column == any_(bindparam(None, given, type_=ARRAY(column.type)))
    return column.in_(select(func.json_each(given).table_valued("value").c.value))


def sessions_among(connection: Connection) -> str:
    """The same in the driver's own SQL, of sessions; ``listed`` makes its parameter."""
    return among_these(connection, "session_key")


def among_these(connection: Connection, column: str) -> str:
    """Likewise, of any column."""
    if connection.dialect.name == "postgresql":
        return text(connection, f"{column} = ANY(?)")
    return f"{column} IN (SELECT value FROM json_each(?))"  # noqa: S608  (our own names)


def listed(connection: Connection, values: Collection[str | int]) -> str | list[str | int]:
    """Many values as one parameter."""
    found = list(values)
    return found if connection.dialect.name == "postgresql" else json.dumps(found)


def parts(found: Sequence[T], at_once: int = _AT_ONCE) -> Iterator[Sequence[T]]:
    """As many at a time as one statement looks up."""
    for first in range(0, len(found), at_once):
        yield found[first : first + at_once]


def text(connection: Connection, statement: str) -> str:
    """SQL with ``?`` for values, as this database's driver wants it."""
    if connection.dialect.paramstyle == "qmark":
        return statement
    return statement.replace("%", "%%").replace("?", "%s")


def run(connection: Connection, statement: str, rows: list[tuple[Any, ...]]) -> None:
    """SQL with ``?`` for values, once for each row of them."""
    if rows:
        connection.exec_driver_sql(text(connection, statement), rows)
