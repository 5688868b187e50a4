"""Sessions added up without a filter, in the driver's own SQL: building and looking up a statement
of a dozen sums takes SQLAlchemy longer than the database takes to answer it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Dialect, and_, case, func, literal

from app.ledger.cells import INCREMENTAL, has_price, known_usage, nano_usd
from app.ledger.conditions import generation
from app.ledger.models import turns
from app.ledger.rollups import tables
from app.ledger.rollups.among import listed, sessions_among
from app.ledger.rollups.plan import Plan
from engine.model import Reason, UsageState

c = turns.c
(_BY_KEY,) = (index.name for index in tables.sessions.indexes)


def sums(
    connection: Connection,
    made: Plan,
    names: Sequence[str],
    *,
    ends: bool = False,
    only: Collection[str] | None = None,
) -> Sequence[Sequence[Any]]:
    """Of each session with turns in a plan, its key and its sums of these names.

    With ``ends``, before the sums its greatest name, and when its first and last turn began; with
    ``only``, of no other sessions than these.
    """
    stretch = [*(("session", "first_at", "last_at") if ends else ()), *names]
    whose = "" if only is None else sessions_among(connection)
    selects = parts(connection.dialect, made, stretch, whose)
    if not selects:
        return []
    added = [f"CAST(SUM({name}) AS BIGINT)" for name in names]
    outer = [*(("MAX(session)", "MIN(first_at)", "MAX(last_at)") if ends else ()), *added]
    statement = (
        f"SELECT session_key, {', '.join(outer)} "  # noqa: S608
        f"FROM ({' UNION ALL '.join(selects)}) AS parts GROUP BY session_key"
    )
    if only is None:
        return connection.exec_driver_sql(statement).all()
    given = (listed(connection, only),) * len(selects)
    return connection.exec_driver_sql(statement, given).all()


def parts(dialect: Dialect, made: Plan, columns: Sequence[str] = (), whose: str = "") -> list[str]:
    """Queries for the keys and columns of sessions in the stretches and rows of a plan, one below
    the other; of each session there may be many.

    ``whose`` is a condition that leaves few of them.
    """
    of_row = _of_row(dialect)
    row = ", ".join(["session_key", *(f"{of_row[name]} AS {name}" for name in columns)])
    return [*of_stretches(dialect, made, columns, whose), *of_rows(made, row, whose)]


def of_stretches(dialect: Dialect, made: Plan, columns: Sequence[str], whose: str) -> list[str]:
    """Those of stretches.

    Few sessions are to be looked up by their keys: without statistics SQLite would read whole
    stretches, unless it is told the index. That it enters at a level and a start too, if these are
    not one of several.
    """
    spans, table = _spans(made), "rollup_sessions"
    if whose and dialect.name == "sqlite":
        spans = [f"{whose} AND {span}" for span in spans]
        table = f"{table} INDEXED BY {_BY_KEY}"
    elif whose and spans:
        spans = [f"{whose} AND ({' OR '.join(spans)})"]
    names = ", ".join(("session_key", *columns))
    return [f"SELECT {names} FROM {table} WHERE {span}" for span in spans]  # noqa: S608  (our names and numbers)


def of_rows(made: Plan, columns: str, whose: str) -> list[str]:
    """Those of rows."""
    return [
        f"SELECT {columns} FROM turns WHERE {f'{whose} AND ' if whose else ''}"  # noqa: S608
        f"started_at >= {first} AND started_at < {end}"
        for first, end in made.rows
    ]


def _spans(made: Plan) -> list[str]:
    return [
        f"(level = {length} AND start >= {first} AND start < {end})"
        for length, some in made.stretches.items()
        for first, end in some
    ]


def _one(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return case((condition, 1), else_=0)


def _amount(column: ColumnElement[Any], condition: ColumnElement[bool]) -> ColumnElement[int]:
    return case((condition, func.coalesce(column, 0)), else_=0)


known_mode = and_(generation, c.mode.is_not(None))
_incremental = and_(known_mode, c.mode.in_(sorted(INCREMENTAL)))
_eligible = and_(known_mode, c.eligible)
_usage = and_(generation, known_usage)
OF_ROW: dict[str, ColumnElement[int]] = {
    "turns": literal(1),
    "generation": _one(generation),
    "known": _one(known_mode),
    "incremental": _one(_incremental),
    "eligible": _one(_eligible),
    "breaks": _one(and_(_eligible, c.mode.not_in(sorted(INCREMENTAL)))),
    "mismatches": _one(and_(_eligible, c.reason == Reason.PREFIX_MISMATCH.value)),
    "usage_turns": _one(_usage),
    "inconsistent": _one(and_(_usage, c.usage_state == UsageState.INCONSISTENT.value)),
    "input": _amount(c.input_tokens, _usage),
    "cached": _amount(c.cached_tokens, _usage),
    "write_turns": _one(and_(_usage, c.cache_write_tokens.is_not(None))),
    "cache_write": _amount(c.cache_write_tokens, _usage),
    "output": _amount(c.output_tokens, generation),
    "reasoning": _amount(c.reasoning_tokens, generation),
    "priced": _one(has_price),
    "cost": func.coalesce(nano_usd, 0),
}
"""What one row adds to ``SESSION_SUMS``; as ``contribution`` says in Python."""


@lru_cache
def _of_row(dialect: Dialect) -> dict[str, str]:
    """The same as SQL."""
    columns = {"session": c.session, "first_at": c.started_at, "last_at": c.started_at, **OF_ROW}
    return {
        name: str(value.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
        for name, value in columns.items()
    }
