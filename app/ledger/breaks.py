"""Breaks by their cause: what a view and the whole ledger hold of each, and what an operator has
decided. What a break is, ``break_groups`` says.

What is counted comes from sums (``rollups.break_read``), as far as they know what a filter asks
for; what is read one by one, through the small index of breaks.
Functions that take a connection read several times and want one snapshot: ``database.reading``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, Engine, delete, func, insert, select, tuple_

from app.ledger import break_groups, cursors, models
from app.ledger.break_groups import broken, group_of
from app.ledger.conditions import generation, time_column, where
from app.ledger.database import WRITES
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.queries import Page
from app.ledger.rollups import break_read
from app.ledger.rollups.among import among
from app.ledger.rollups.break_read import Whole, days, parts, whole
from app.ledger.rollups.broken import NEEDED, Part
from app.ledger.rollups.read import Grid
from app.ledger.rows import COLUMNS, TurnRow

__all__ = ["Whole", "days", "parts", "whole"]

c = turns.c
_decisions = models.break_decisions


@dataclass(slots=True)
class Sums:
    """The breaks of one group in a view."""

    group: str
    turns: int = 0
    counted: int = 0
    """Turns whose missed tokens are known."""
    missed: int = 0
    last_at: int = 0
    buckets: Counter[int] = field(default_factory=Counter)


@dataclass(slots=True)
class Told:
    """More of it, for those that are shown."""

    sessions: int = 0
    clients: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)
    """By client and version."""
    models: Counter[str | None] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Decision:
    """What an operator says of a group."""

    state: str
    at: int
    until: int | None
    """The end of a mute; None: for ever."""
    who: str


def sums(
    connection: Connection, view: Filter, edges: Sequence[int], group: str | None = None
) -> dict[str, Sums]:
    """The groups of a view, or one of them; ``edges`` cut the view's window into buckets."""
    found: dict[str, Sums] = {}
    for part in break_read.totals(connection, view, edges, group):
        one = found.get(part.group)
        if one is None:
            one = found[part.group] = Sums(part.group)
        one.turns += part.turns
        one.counted += part.counted
        one.missed += part.missed
        one.last_at = max(one.last_at, part.last_at)
        one.buckets[part.bucket] += part.turns
    return found


def told(
    connection: Connection, view: Filter, groups: Collection[str], of: Iterable[Part]
) -> dict[str, Told]:
    """More of some groups of a view, from the ``parts`` of these or of all."""
    found = {group: Told() for group in groups}
    if not found:
        return found
    for part in of:
        one = found.get(part.key.break_group)
        if one is not None:
            one.clients[part.key.client, part.key.client_version] += part.turns
            one.models[part.key.model] += part.turns
    for group, number in break_read.sessions(connection, view, groups).items():
        found[group].sessions = number
    return found


def sessions(
    connection: Connection, view: Filter, edges: Sequence[int], group: str
) -> list[Counter[str]]:
    """How often each session has a group, by bucket."""
    grid = Grid.of(time_column(view.by), edges)
    query = (
        select(grid.value.label("break_bucket"), c.session_key, func.count())
        .where(break_groups.of(group), where(view))
        .group_by("break_bucket", c.session_key)
    )
    found: list[Counter[str]] = [Counter() for _ in edges[1:]]
    for place, session, number in connection.execute(query):
        found[grid.bucket(place)][session] += number
    return found


def worst(
    connection: Connection, view: Filter, group: str, *, limit: int
) -> list[tuple[str, str | None, int, str]]:
    """The sessions that have most of a group: key, name, breaks and the newest of these."""
    number, newest = func.count(), func.max(c.id)
    each = (
        select(c.session_key, number.label("breaks"), newest.label("newest"))
        .where(break_groups.of(group), where(view))
        .group_by(c.session_key)
        .order_by(number.desc(), newest.desc())
        .limit(limit)
        .subquery()
    )
    query = (
        select(c.session_key, c.session, each.c.breaks, c.turn_id)
        .join(each, c.id == each.c.newest)
        .order_by(each.c.breaks.desc(), each.c.newest.desc())
    )
    return [(key, name, count, turn) for key, name, count, turn in connection.execute(query)]


def newest(
    connection: Connection,
    view: Filter,
    names: Sequence[str],
    *,
    limit: int,
    group: str | None = None,
) -> list[TurnRow]:
    """The last breaks of a group, or without one the last generation turns, broken or not; with
    these columns only."""
    query = (
        select(*(c[name] for name in names))
        .where(where(view), generation if group is None else break_groups.of(group))
        .order_by(time_column(view.by).desc(), c.id.desc())
        .limit(limit)
    )
    return [TurnRow.of_some(names, values) for values in connection.execute(query)]


def examples(connection: Connection, view: Filter, groups: Mapping[str, int]) -> dict[str, TurnRow]:
    """The last break of some groups of a view, by when it began."""
    query = (
        select(*(c[name] for name in COLUMNS))
        .where(broken, where(view), c.started_at.in_(sorted(set(groups.values()))))
        .order_by(c.id)
    )
    found: dict[str, TurnRow] = {}
    for values in connection.execute(query):
        row = TurnRow.of(values)
        group = group_of(row)
        if group is not None and groups.get(group) == row.started_at:
            found[group] = row
    return found


def counted(connection: Connection, view: Filter, groups: Collection[str]) -> Iterator[TurnRow]:
    """The breaks of a view whose missed tokens are known; the rows hold no more than what their
    group and their price are told from."""
    query = select(*(c[name] for name in NEEDED)).where(
        broken,
        where(view),
        c.missed_tokens.is_not(None),
        among(connection, break_groups.group, groups),
    )
    for values in connection.execute(query):
        yield TurnRow.of_some(NEEDED, values)


def page(
    connection: Connection, view: Filter, group: str, *, limit: int, cursor: str | None = None
) -> Page:
    """The breaks of a group, newest first; as ``queries.page``."""
    time = time_column(view.by)
    query = select(c.id, *(c[name] for name in COLUMNS)).where(break_groups.of(group))
    if cursor is not None:
        before, number = cursors.read(cursor, 2)
        view = replace(view, end=min(view.end, before + 1))
        query = query.where(tuple_(time, c.id) < tuple_(before, number))
    query = query.where(where(view)).order_by(time.desc(), c.id.desc()).limit(limit + 1)
    found = connection.execute(query).all()
    rows = tuple(TurnRow.of(values[1:]) for values in found[:limit])
    if len(found) <= limit:
        return Page(rows, None)
    last = rows[-1].recorded_at if view.by == "recorded" else rows[-1].started_at
    return Page(rows, cursors.write(last, found[limit - 1].id))


def decisions(connection: Connection) -> dict[str, Decision]:
    d = _decisions.c
    query = select(d.break_group, d.state, d.decided_at, d.until, d.who)
    return {key: Decision(*rest) for key, *rest in connection.execute(query)}


def decide(engine: Engine, group: str, decision: Decision, *seen: int | None) -> bool:
    """Say what is to become of a group; what was said before is gone.

    ``seen``, where it is given, is when it was last decided as far as somebody knows (None: never).
    False where that is not so any more: then nothing is said.
    """
    d = _decisions.c
    with engine.execution_options(**WRITES).begin() as connection:
        known = connection.execute(
            select(d.decided_at).where(d.break_group == group).with_for_update()
        ).scalar_one_or_none()
        if seen and known != seen[0]:
            return False
        connection.execute(delete(_decisions).where(d.break_group == group))
        connection.execute(
            insert(_decisions),
            {
                "break_group": group,
                "state": decision.state,
                "decided_at": decision.at,
                "until": decision.until,
                "who": decision.who,
            },
        )
    return True
