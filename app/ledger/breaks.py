"""Breaks by their cause: what a view and the whole ledger hold of each, and what an operator has
decided. What a break is, ``app.analysis.breaks`` says of a row; the SQL here says the same.

All reads go through the small index of breaks: their cost is that of the breaks, not of the rows.
Functions that take a connection read several times and want one snapshot: ``database.reading``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    and_,
    cast,
    delete,
    func,
    insert,
    literal_column,
    select,
    text,
    tuple_,
)

from app.ledger import cursors, models
from app.ledger.conditions import generation, time_column, where
from app.ledger.database import WRITES
from app.ledger.filters import Filter
from app.ledger.models import BROKEN, turns
from app.ledger.queries import Page
from app.ledger.rollups.read import Grid
from app.ledger.rows import COLUMNS, TurnRow

c = turns.c
_decisions = models.break_decisions
_broken: ColumnElement[bool] = text(BROKEN)  # type: ignore[assignment]
_NAMED = ("reason:", "verdict:")
"""What the names of groups without a fingerprint begin with."""
_group: ColumnElement[str] = literal_column(
    "coalesce(turns.fingerprint, CASE WHEN turns.eligible THEN 'reason:' || "
    "coalesce(turns.reason, 'unknown') || coalesce(':' || nullif(turns.fallback_reason, ''), "
    "':' || nullif(turns.changed_fields, ''), '') ELSE 'verdict:' || turns.cache_verdict END)"
)
_HOUR = 3_600_000
_DAY_HOURS = 24


@dataclass(slots=True)
class Sums:
    """The breaks of one group in a view."""

    group: str
    turns: int = 0
    counted: int = 0
    """Turns whose missed tokens are known."""
    missed: int = 0
    sessions: int = 0
    newest: int = 0
    """The number of the row that was written last."""
    first_at: int = 0
    last_at: int = 0
    clients: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)
    """By client and version."""
    models: Counter[str | None] = field(default_factory=Counter)
    buckets: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Whole:
    """The breaks of one group in the whole ledger, as far as its rows are kept."""

    turns: int
    first_at: int
    last_at: int


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
    within = and_(_of(group), where(view))
    grid = Grid.of(time_column(view.by), edges)
    name, client, version = _group.label("break_group"), c.client, c.client_version
    query = (
        select(
            name,
            client,
            version,
            c.model,
            grid.value.label("break_bucket"),
            func.count(),
            func.count(c.missed_tokens),
            cast(func.coalesce(func.sum(c.missed_tokens), 0), BigInteger),
            func.max(c.id),
            func.min(c.started_at),
            func.max(c.started_at),
        )
        .where(within)
        .group_by("break_group", client, version, c.model, "break_bucket")
    )
    found: dict[str, Sums] = {}
    for key, who, which, model, place, *figures in connection.execute(query):
        number, counted, missed, newest, first, last = figures
        one = found.get(key)
        if one is None:
            one = found[key] = Sums(key, first_at=first)
        one.turns += number
        one.counted += counted
        one.missed += missed
        one.newest = max(one.newest, newest)
        one.first_at, one.last_at = min(one.first_at, first), max(one.last_at, last)
        one.clients[who, which] += number
        one.models[model] += number
        one.buckets[grid.bucket(place)] += number
    those = select(name, func.count(c.session_key.distinct())).where(within)
    for key, number in connection.execute(those.group_by("break_group")):
        found[key].sessions = number
    return found


def whole(connection: Connection, group: str | None = None) -> dict[str, Whole]:
    """All groups of the ledger, or one of them."""
    name = _group.label("break_group")
    query = (
        select(name, func.count(), func.min(c.started_at), func.max(c.started_at))
        .where(_of(group))
        .group_by("break_group")
    )
    return {key: Whole(*rest) for key, *rest in connection.execute(query)}


def days(
    connection: Connection, now: int, number: int, group: str | None = None
) -> dict[str, list[int]]:
    """In how many hours of sessions each of the last days, of 24 hours and the newest first, has
    seen a group; groups that they all have not are left out."""
    hour = ((now - c.started_at) // _HOUR).label("break_hour")
    each = (
        select(_group.label("break_group"), c.session_key, hour)
        .where(_of(group), c.started_at > now - number * _DAY_HOURS * _HOUR, c.started_at <= now)
        .distinct()
        .subquery()
    )
    query = select(each.c.break_group, each.c.break_hour, func.count()).group_by(
        each.c.break_group, each.c.break_hour
    )
    found: dict[str, list[int]] = {}
    for key, ago, sessions in connection.execute(query):
        found.setdefault(key, [0] * number)[ago // _DAY_HOURS] += sessions
    return found


def sessions(
    connection: Connection, view: Filter, edges: Sequence[int], group: str
) -> list[Counter[str]]:
    """How often each session has a group, by bucket."""
    grid = Grid.of(time_column(view.by), edges)
    query = (
        select(grid.value.label("break_bucket"), c.session_key, func.count())
        .where(_of(group), where(view))
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
        .where(_of(group), where(view))
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


def before(connection: Connection, view: Filter, *, limit: int) -> list[TurnRow]:
    """The last generation turns of a view, broken or not."""
    query = (
        select(*(c[name] for name in COLUMNS))
        .where(where(view), generation)
        .order_by(time_column(view.by).desc(), c.id.desc())
        .limit(limit)
    )
    return [TurnRow.of(values) for values in connection.execute(query)]


def examples(connection: Connection, numbers: Sequence[int]) -> dict[int, TurnRow]:
    """Rows by their numbers."""
    query = select(c.id, *(c[name] for name in COLUMNS)).where(c.id.in_(numbers))
    return {number: TurnRow.of(values) for number, *values in connection.execute(query)}


_PRICED = (
    "source", "kind", "status", "started_at", "upstream", "model", "service_tier", "mode", "reason",
    "eligible", "changed_fields", "fallback_reason", "fingerprint", "input_tokens",
    "cache_write_tokens", "cache_write_long_tokens", "cache_verdict", "missed_tokens",
)  # fmt: skip


def counted(connection: Connection, view: Filter, group: str | None = None) -> Iterator[TurnRow]:
    """The breaks of a view whose missed tokens are known; the rows hold no more than what their
    group and their price are told from."""
    query = select(*(c[name] for name in _PRICED)).where(
        _of(group), where(view), c.missed_tokens.is_not(None)
    )
    for values in connection.execute(query):
        yield TurnRow.of_some(_PRICED, values)


def page(
    connection: Connection, view: Filter, group: str, *, limit: int, cursor: str | None = None
) -> Page:
    """The breaks of a group, newest first; as ``queries.page``."""
    time = time_column(view.by)
    query = select(c.id, *(c[name] for name in COLUMNS)).where(_of(group))
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


def _of(group: str | None) -> ColumnElement[bool]:
    """Breaks, or those of a group."""
    if group is None:
        return and_(_broken)
    return and_(_broken, _group == group if group.startswith(_NAMED) else c.fingerprint == group)
