"""Rows of the ledger: a page of them, one, and all of a view as a stream.

Figures are in ``summary`` and ``series``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Select, func, select, tuple_

from app.errors import AppError
from app.ledger import cursors
from app.ledger.conditions import time_column, where
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.rows import COLUMNS, TurnRow

c = turns.c
_COLUMNS = [c[name] for name in COLUMNS]

PAGE_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Page:
    rows: tuple[TurnRow, ...]
    """Newest first."""
    next_cursor: str | None
    """Where the next page begins; None on the last one."""


def page(engine: Engine, view: Filter, *, limit: int = 50, cursor: str | None = None) -> Page:
    """Up to ``limit`` (1 to 500) rows of a view, newest first.

    ``cursor`` is the ``next_cursor`` of the page before, of the same view. Rows of one instant are
    ordered by when they were written, so that none is lost or shown twice at a page's end.
    """
    check_limit(limit)
    time = time_column(view.by)
    query = select(c.id, *_COLUMNS).order_by(time.desc(), c.id.desc())
    if cursor is None:
        query = query.where(where(view))
    else:
        before, number = cursors.read(cursor, 2)
        # The window is narrowed too: databases look only for its bounds in the index.
        rest = replace(view, end=min(view.end, before + 1))
        query = query.where(where(rest), tuple_(time, c.id) < tuple_(before, number))
    with engine.connect() as connection:
        found = connection.execute(query.limit(limit + 1)).all()
    rows = tuple(TurnRow.of(record[1:]) for record in found[:limit])
    if len(found) <= limit:
        return Page(rows, None)
    last_time = rows[-1].recorded_at if view.by == "recorded" else rows[-1].started_at
    return Page(rows, cursors.write(last_time, found[limit - 1].id))


def check_limit(limit: int) -> None:
    """Refuse a page of no rows, or of too many."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise AppError(
            "invalid_parameter",
            f"limit cannot be {limit}.",
            f"It is a number from 1 to {PAGE_LIMIT}.",
            status=422,
        )


def count(engine: Engine, view: Filter) -> int:
    """How many rows a view holds."""
    with engine.connect() as connection:
        return connection.execute(select(func.count()).where(where(view))).scalar_one()


def one(engine: Engine, turn_id: str) -> TurnRow | None:
    with engine.connect() as connection:
        found = connection.execute(select(*_COLUMNS).where(c.turn_id == turn_id)).one_or_none()
    return None if found is None else TurnRow.of(found)


def some(engine: Engine, turn_ids: Sequence[str]) -> list[TurnRow]:
    """Of these rows the ones that there are, in the order of their writing."""
    query = select(*_COLUMNS).where(c.turn_id.in_(turn_ids)).order_by(c.id)
    with engine.connect() as connection:
        return [TurnRow.of(record) for record in connection.execute(query)]


def newest(engine: Engine) -> int:
    """The number of the row that was written last; 0 where there is none."""
    with engine.connect() as connection:
        return connection.execute(select(func.max(c.id))).scalar_one() or 0


def after(engine: Engine, number: int, *, limit: int) -> list[tuple[int, TurnRow]]:
    """The first rows that were written after the one with a number, with theirs."""
    query = select(c.id, *_COLUMNS).where(c.id > number).order_by(c.id).limit(limit)
    with engine.connect() as connection:
        return [(record[0], TurnRow.of(record[1:])) for record in connection.execute(query)]


def is_empty(engine: Engine) -> bool:
    """Whether the ledger holds no row at all."""
    with engine.connect() as connection:
        return connection.execute(select(c.id).limit(1)).first() is None


def selection(view: Filter, *what: ColumnElement[Any]) -> Select[Any]:
    """Something of each row of a view, oldest first; rows of one instant as they were written."""
    return select(*what).where(where(view)).order_by(time_column(view.by), c.id)


@contextlib.contextmanager
def snapshot(engine: Engine) -> Iterator[Connection]:
    """A connection whose reads all see the ledger as it is now, for as long as it takes.

    It is none of the pool's, so that nobody waits for one while a file goes to a slow reader. What
    it holds up is the clearing away of what is deleted or overwritten meanwhile: on SQLite the
    write-ahead log grows until it ends, on PostgreSQL dead rows stay.
    """
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        connection.detach()
        if engine.dialect.name == "sqlite":
            # Where no index has the order, what is sorted may be long.
            driver: Any = connection.connection.dbapi_connection
            driver.execute("PRAGMA temp_store = FILE")
        with connection.begin():
            connection.execute(select(c.id).limit(1)).first()  # both begin with the first read
            yield connection


def stream(
    engine: Engine, view: Filter, *, columns: Sequence[str] = COLUMNS, chunk: int = 1_000
) -> Iterator[list[tuple[Any, ...]]]:
    """All rows of a view, oldest first, as lists of up to ``chunk`` value tuples.

    They are those of the moment of the first step, from one ``snapshot``; memory is that of one
    chunk. Who leaves early has to ``close`` it.
    """
    with snapshot(engine) as connection:
        yield from stream_from(connection, view, columns=columns, chunk=chunk)


def stream_from(
    connection: Connection,
    view: Filter,
    *,
    columns: Sequence[str] = COLUMNS,
    chunk: int = 1_000,
) -> Iterator[list[tuple[Any, ...]]]:
    """``stream`` within a snapshot that is there."""
    query = selection(view, *(c[name] for name in columns))
    options = {"stream_results": True, "max_row_buffer": chunk}
    with connection.execute(query, execution_options=options) as result:
        for part in result.partitions(chunk):
            yield [tuple(record) for record in part]
