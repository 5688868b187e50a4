"""Sessions of a view one by one, sub-agents rolled up under their roots, and the turns of one.

A session is in a view when one of its turns is: its figures are those of its turns in the view.
Functions that take a connection read several times and want one snapshot: ``database.reading``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    and_,
    cast,
    func,
    literal,
    select,
    text,
    tuple_,
    union_all,
)

from app.ledger import cursors
from app.ledger.conditions import time_column, where
from app.ledger.filters import Filter
from app.ledger.models import BROKEN, SUB_AGENT, turns
from app.ledger.rollups import sessions
from app.ledger.rollups.among import among, parts
from app.ledger.rollups.sessions import Ranked
from app.ledger.rows import COLUMNS, TurnRow

c = turns.c
_broken: ColumnElement[bool] = text(BROKEN)  # type: ignore[assignment]
_sub_agent: ColumnElement[bool] = text(SUB_AGENT)  # type: ignore[assignment]
_AT_ONCE = 100
_BILLION = 10**9

Root = tuple[str, str]
"""The tenant and the name of a session that has sub-agents."""


@dataclass(slots=True)
class Family:
    """A session and its sub-agents; mostly there are none."""

    key: str
    """Of the session itself, else the least of its sub-agents': where it has no row."""
    root: Root | None = None
    members: list[Ranked] = field(default_factory=list)
    """Those with turns in the view."""
    place: int = 0
    """By what it is ordered; the greatest comes first."""

    @property
    def sub_agents(self) -> int:
        return sum(member.session_key != self.key for member in self.members)


SORTS: dict[str, Callable[[Sequence[Ranked]], int]] = {
    "recent": lambda some: max(one.last_at for one in some),
    "turns": lambda some: sum(one.turns for one in some),
    "cost": lambda some: sum(one.cost for one in some),
    "mismatches": lambda some: _rate(
        sum(one.mismatches for one in some), sum(one.eligible for one in some)
    ),
    "missed": lambda _some: 0,  # from another table: ``families``
}
"""What a list can be ordered by."""


def families(connection: Connection, view: Filter, sort: str) -> list[Family]:
    """All of a view, in order. With a filter by root nothing is rolled up."""
    ranked = sessions.ranked(connection, view)
    subs = {} if "root" in view.include else sub_agents(connection, view)
    heads = _heads(connection, set(subs.values()))
    roots = {key: root for root, key in heads.items()}
    found: dict[str | Root, Family] = {}
    for one in ranked:
        root = None if one.session_key in roots else subs.get(one.session_key)
        name = one.session_key if root is None else heads.get(root, root)
        if name not in found:
            found[name] = Family(
                name if isinstance(name, str) else one.session_key,
                roots.get(one.session_key) if root is None else root,
            )
        found[name].members.append(one)
        if not isinstance(name, str):
            found[name].key = min(found[name].key, one.session_key)
    misses = missed(connection, view) if sort == "missed" else {}
    for family in found.values():
        family.place = SORTS[sort](family.members) + sum(
            misses.get(member.session_key, 0) for member in family.members
        )
    return sorted(found.values(), key=lambda one: (-one.place, one.key))


def _rate(part: int, whole: int) -> int:
    """As a whole number that orders like the rate; an unknown one comes last."""
    return 1 + part * _BILLION // whole if whole else 0


def sub_agents(connection: Connection, view: Filter) -> dict[str, Root]:
    """Keys of the sub-agents of a window, with their roots."""
    time = time_column(view.by)
    query = (
        select(c.session_key, c.tenant, c.root_session)
        .where(and_(_sub_agent), time >= view.start, time < view.end)
        .distinct()
    )
    return {key: (tenant, root) for key, tenant, root in connection.execute(query)}


def _heads(connection: Connection, roots: Iterable[Root]) -> dict[Root, str]:
    """The keys of root sessions, as far as they have rows at all."""
    found: dict[Root, str] = {}
    for some in parts(sorted(roots), _AT_ONCE):
        keys = [
            select(c.session_key)
            .where(c.session == name, c.tenant == tenant)
            .order_by(c.started_at.desc())
            .limit(1)
            .scalar_subquery()
            for tenant, name in some
        ]
        values = connection.execute(select(*keys)).one()
        found |= {root: key for root, key in zip(some, values, strict=True) if key is not None}
    return found


def head_of(connection: Connection, root: Root) -> str | None:
    """The key of a root session."""
    return _heads(connection, [root]).get(root)


def agents_of(connection: Connection, view: Filter, root: Root, *, limit: int) -> list[TurnRow]:
    """The latest turn of each of a root's sub-agents in the window of a view, the latest first."""
    time = c.started_at
    keys = (
        select(c.session_key, func.max(c.id).label("newest"))
        .where(
            and_(_sub_agent),
            time >= view.start,
            time < view.end,
            c.tenant == root[0],
            c.root_session == root[1],
        )
        .group_by(c.session_key)
        .order_by(func.max(c.id).desc())
        .limit(limit)
        .subquery()
    )
    query = select(*(c[name] for name in COLUMNS)).join(keys, c.id == keys.c.newest)
    return [TurnRow.of(row) for row in connection.execute(query.order_by(c.id.desc()))]


def missed(
    connection: Connection, view: Filter, keys: Sequence[str] | None = None
) -> dict[str, int]:
    """The missed tokens of each session's breaks, as far as they are known."""
    query = (
        select(c.session_key, cast(func.sum(c.missed_tokens), BigInteger))
        .where(and_(_broken), where(view), c.missed_tokens.is_not(None))
        .group_by(c.session_key)
    )
    if keys is not None:
        query = query.where(among(connection, c.session_key, keys))
    return {key: tokens for key, tokens in connection.execute(query)}  # noqa: C416


STRIP = (
    "session", "root_session", "tenant", "started_at", "kind", "status", "mode", "eligible",
    "model", "client", "input_tokens", "duration_ms",
)  # fmt: skip


def strips(
    connection: Connection, view: Filter, keys: Sequence[str], *, limit: int
) -> dict[str, list[TurnRow]]:
    """The last turns of each of these sessions in the view, in the order in which they began.

    The rows hold no more than ``STRIP``. Each is looked up by its session: what is read depends on
    ``limit``, not on how long the sessions are.
    """
    found: dict[str, list[TurnRow]] = {key: [] for key in keys}
    for some in parts(keys, _AT_ONCE):
        each = [
            select(
                select(literal(key).label("strip"), *(c[name] for name in STRIP), c.id)
                .where(c.session_key == key, where(view))
                .order_by(c.started_at.desc(), c.id.desc())
                .limit(limit)
                .subquery()
            )
            for key in some
        ]
        for key, *values, _id in connection.execute(union_all(*each)):
            found[key].append(TurnRow.of_some(STRIP, values, session_key=key))
    for rows in found.values():
        rows.reverse()
    return found


LANES = (
    "turn_id", "started_at", "ended_at", "source", "kind", "status", "session_key", "chain",
    "epoch", "epoch_turn", "mode", "reason", "shadow_reason", "epoch_reset_reason", "eligible",
    "connection",
    "previous_response_id", "response_id", "items_total", "input_tokens", "cached_tokens",
    "cache_write_long_tokens", "missed_tokens", "duration_ms", "model",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Turns:
    rows: list[TurnRow]
    """In the order in which they began; they hold no more than ``LANES``."""
    context: list[TurnRow]
    """Some of those before, also beyond the view: what the first rows may go on from."""
    next_cursor: str | None
    """Where the turns before these begin; None where there are none in the view."""


def turns_of(
    connection: Connection,
    view: Filter,
    key: str,
    *,
    limit: int,
    context: int = 0,
    cursor: str | None = None,
) -> Turns:
    """The last ``limit`` turns of a session in a view, or those before the ones a cursor names."""
    place = tuple_(c.started_at, c.id)
    query = select(c.id, *(c[name] for name in LANES)).where(c.session_key == key)
    if cursor is not None:
        before, number = cursors.read(cursor, 2)
        query = query.where(c.started_at <= before, place < tuple_(before, number))
    query = query.order_by(c.started_at.desc(), c.id.desc())
    found = connection.execute(query.where(where(view)).limit(limit + 1)).all()
    shown = found[:limit]
    if not shown:
        return Turns([], [], None)
    number, _turn, started, *_ = shown[-1]
    earlier = select(*(c[name] for name in LANES)).where(
        c.session_key == key, c.started_at <= started, place < tuple_(started, number)
    )
    earlier = earlier.order_by(c.started_at.desc(), c.id.desc()).limit(context)
    return Turns(
        [TurnRow.of_some(LANES, values) for _, *values in reversed(shown)],
        [TurnRow.of_some(LANES, values) for values in reversed(connection.execute(earlier).all())]
        if context
        else [],
        cursors.write(started, number) if len(found) > limit else None,
    )


def life(connection: Connection, key: str) -> tuple[TurnRow, int, int] | None:
    """The latest turn of a session, and when its first and its last began; None of an unknown
    one."""
    query = select(*(c[name] for name in COLUMNS)).where(c.session_key == key)
    last = connection.execute(
        query.order_by(c.started_at.desc(), c.id.desc()).limit(1)
    ).one_or_none()
    if last is None:
        return None
    row = TurnRow.of(last)
    first = select(func.min(c.started_at)).where(c.session_key == key)
    return row, connection.execute(first).scalar_one(), row.started_at


def around(connection: Connection, row: TurnRow, *, limit: int) -> list[TurnRow]:
    """What a turn may go on from: the last turns of its session that began before it, and the one
    whose response it names, however old."""
    query = select(*(c[name] for name in COLUMNS)).where(
        c.session_key == row.session_key, c.started_at <= row.started_at, c.turn_id != row.turn_id
    )
    latest = query.order_by(c.started_at.desc(), c.id.desc()).limit(limit)
    found = {one.turn_id: one for one in map(TurnRow.of, connection.execute(latest))}
    if row.previous_response_id is not None and all(
        one.response_id != row.previous_response_id for one in found.values()
    ):
        named = query.where(c.response_id == row.previous_response_id).limit(1)
        found |= {one.turn_id: one for one in map(TurnRow.of, connection.execute(named))}
    return list(found.values())


def of_session(view: Filter, key: str) -> Filter:
    """A view's turns of one session."""
    return replace(view, include={**view.include, "session": (key,)})
