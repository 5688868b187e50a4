"""The sessions of a filter: from hours and days of sessions, and from the rows at the edges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    Subquery,
    cast,
    func,
    select,
    union,
    union_all,
)

from app.ledger.conditions import dimensions_of, time_column, where
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.rollups import tables, unfiltered, wide
from app.ledger.rollups.among import among
from app.ledger.rollups.contribution import SESSION_LEVELS, SESSION_SUMS
from app.ledger.rollups.plan import Plan
from app.ledger.rollups.read import SESSIONS, in_stretches, key_column, planned
from app.ledger.rollups.unfiltered import OF_ROW

c, s = turns.c, tables.sessions.c


class SessionSums(NamedTuple):
    session_key: str
    session: str | None
    first_at: int
    last_at: int
    sums: tuple[int, ...]
    """``SESSION_SUMS``."""


def sums(connection: Connection, view: Filter, limit: int | None) -> list[SessionSums]:
    """Those with the most rows first."""
    made = _plan(connection, view)
    if limit is None:
        return _summed(connection, view, made, None)
    # First which ones they are: adding up the rest of all of them takes much longer.
    core = wide.core(connection, view)
    likely = [] if core is None else wide.foremost(connection, core, limit)
    if core is None or len(likely) >= wide.MANY:
        parts = _parts(connection, view, made, ("turns",))
        order = (_sum(parts, "turns").desc(), parts.c.session_key)
        first = select(parts.c.session_key).group_by(parts.c.session_key).order_by(*order)
        most = list(connection.execute(first.limit(limit)).scalars())
        return _summed(connection, view, made, most)
    found = unfiltered.sums(connection, made, SESSION_SUMS, ends=True, only=likely)
    return _made(sorted(found, key=lambda row: (-row[4], row[0]))[:limit])


def of(connection: Connection, view: Filter, keys: Sequence[str]) -> list[SessionSums]:
    """Some sessions of a view, as far as they have turns in it; those with the most rows first."""
    return _summed(connection, view, _plan(connection, view), keys)


class Ranked(NamedTuple):
    """What all sessions of a view can be ordered by."""

    session_key: str
    last_at: int
    turns: int
    eligible: int
    mismatches: int
    cost: int
    """Nano-dollars."""


def ranked(connection: Connection, view: Filter) -> list[Ranked]:
    """All sessions of a view, in no order."""
    names = Ranked._fields[2:]
    parts = _parts(connection, view, _plan(connection, view), names, ends=True)
    sums = (_sum(parts, name) for name in names)
    query = select(parts.c.session_key, func.max(parts.c.last_at), *sums)
    return [Ranked(*row) for row in connection.execute(query.group_by(parts.c.session_key))]


def _summed(
    connection: Connection, view: Filter, made: Plan, only: Sequence[str] | None
) -> list[SessionSums]:
    parts = _parts(connection, view, made, SESSION_SUMS, ends=True, only=only)
    query = (
        select(
            parts.c.session_key,
            func.max(parts.c.session),
            func.min(parts.c.first_at),
            func.max(parts.c.last_at),
            *(_sum(parts, name) for name in SESSION_SUMS),
        )
        .group_by(parts.c.session_key)
        .order_by(_sum(parts, "turns").desc(), parts.c.session_key)
    )
    return _made(connection.execute(query))


def _made(rows: Iterable[Sequence[Any]]) -> list[SessionSums]:
    return [
        SessionSums(key, name, first_at, last_at, tuple(figures))
        for key, name, first_at, last_at, *figures in rows
    ]


def count(connection: Connection, view: Filter) -> int:
    core = wide.core(connection, view)
    if core is not None:
        return wide.count(connection, core) + wide.count_others(connection, core)
    made = _plan(connection, view)
    selects: list[Select[Any]] = [
        _of(view, select(s.session_key).where(within))
        for within in in_stretches(connection, tables.sessions, made)
    ]
    if made.rows or not selects:
        selects.append(select(c.session_key).where(where(view, made.rows)))
    distinct = selects[0].distinct() if len(selects) == 1 else union(*selects)
    return connection.execute(select(func.count()).select_from(distinct.subquery())).scalar_one()


def residency(connection: Connection, view: Filter) -> list[tuple[int, int, int]]:
    """Turns that were continued, turns of known mode, and how many sessions have just these."""
    core = wide.core(connection, view)
    cross = [] if core is None else wide.crossing(connection, core)
    if core is not None and len(cross) < wide.MANY:
        shares = wide.residency(connection, core, cross)
        return [(*share, number) for share, number in shares.items() if number]
    parts = _parts(connection, view, _plan(connection, view), ("incremental", "known"))
    each = (
        select(_sum(parts, "incremental").label("part"), _sum(parts, "known").label("whole"))
        .group_by(parts.c.session_key)
        .subquery()
    )
    query = select(each.c.part, each.c.whole, func.count()).group_by(each.c.part, each.c.whole)
    return [(part, whole, number) for part, whole, number in connection.execute(query)]


def _plan(connection: Connection, view: Filter) -> Plan:
    return planned(connection, view, (), SESSIONS, SESSION_LEVELS)


def _of(view: Filter, stretches: Select[Any]) -> Select[Any]:
    terms = dimensions_of(view, key_column)
    return (
        stretches.where(s.key.in_(select(tables.keys.c.id).where(*terms))) if terms else stretches
    )


def _sum(parts: Subquery, name: str) -> ColumnElement[int]:
    return cast(func.sum(parts.c[name]), BigInteger)


def _parts(
    connection: Connection,
    view: Filter,
    made: Plan,
    names: Sequence[str],
    *,
    ends: bool = False,
    only: Sequence[str] | None = None,
) -> Subquery:
    """Stretches and rows, one below the other; of each session there may be many."""
    of_stretch = () if only is None else (among(connection, s.session_key, only),)
    of_row_too = () if only is None else (among(connection, c.session_key, only),)
    selects: list[Select[Any]] = []
    for within in in_stretches(
        connection, tables.sessions, made, *of_stretch, few=only is not None
    ):
        columns = [s.session, s.first_at, s.last_at] if ends else []
        stretches = select(s.session_key, *columns, *(s[name] for name in names))
        selects.append(_of(view, stretches.where(within)))
    if made.rows or not selects:
        time = time_column(view.by)
        of_row = [c.session, time.label("first_at"), time.label("last_at")] if ends else []
        selects.append(
            select(c.session_key, *of_row, *(OF_ROW[name].label(name) for name in names)).where(
                where(view, made.rows), *of_row_too
            )
        )
    return union_all(*selects).subquery()
