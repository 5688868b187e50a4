"""Sessions one by one: what they missed, their strips and lives, and the turns of one.

Functions that take a connection read several times and want one snapshot: ``database.reading``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    and_,
    bindparam,
    cast,
    func,
    select,
    text,
    tuple_,
)

from app.ledger import cursors
from app.ledger.break_groups import broken
from app.ledger.conditions import time_column, where
from app.ledger.filters import Filter
from app.ledger.models import SUB_AGENT, turns
from app.ledger.rollups.among import among
from app.ledger.rows import COLUMNS, TurnRow

c = turns.c
is_sub_agent: ColumnElement[bool] = text(SUB_AGENT)  # type: ignore[assignment]


def agents_of(
    connection: Connection, view: Filter, root: tuple[str, str], *, limit: int
) -> list[TurnRow]:
    """The latest turn of each of a root's sub-agents in the window of a view, the latest first.

    ``root`` is its tenant and its name.
    """
    time = time_column(view.by)
    keys = (
        select(c.session_key, func.max(c.id).label("newest"))
        .where(
            and_(is_sub_agent),
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
        .where(broken, where(view), c.missed_tokens.is_not(None))
        .group_by(c.session_key)
    )
    if keys is not None:
        query = query.where(among(connection, c.session_key, keys))
    return {key: tokens for key, tokens in connection.execute(query)}  # noqa: C416


class Stripe(NamedTuple):
    """What a strip, and the residency that is told from it, need of a turn."""

    started_at: int
    kind: str
    status: str
    mode: str | None
    eligible: bool
    input_tokens: int | None
    duration_ms: float | None
    tenant: str
    model: str | None
    client: str | None


def strips(
    connection: Connection, view: Filter, keys: Sequence[str], *, limit: int
) -> dict[str, list[Stripe]]:
    """The last turns of each of these sessions in the view, in the order in which they began.

    Each is looked up by its session: what is read depends on ``limit``, not on how long the
    sessions are.
    """
    query = (
        select(*(c[name] for name in Stripe._fields))
        .where(c.session_key == bindparam("key"), where(view))
        .order_by(c.started_at.desc(), c.id.desc())
        .limit(limit)
    )
    return {
        key: [Stripe._make(row) for row in reversed(connection.execute(query, {"key": key}).all())]
        for key in keys
    }


LANES = (
    "turn_id", "started_at", "ended_at", "source", "kind", "status", "session_key", "chain",
    "epoch", "epoch_turn", "mode", "reason", "shadow_reason", "epoch_reset_reason", "eligible",
    "connection", "fallback_reason",
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
