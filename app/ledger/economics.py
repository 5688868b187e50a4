"""The rows that money and time are told from: turns that lost something, the warm turns of their
sessions, and the turns of sessions whose history was rewritten.

All of them come one by one, as the database reads them; nobody holds more than one session's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Select, and_, case, false, func, or_, select

from app.ledger.cells import INCREMENTAL
from app.ledger.conditions import SUCCEEDED, generation, where
from app.ledger.filters import Filter
from app.ledger.going_on import ORDER
from app.ledger.models import turns
from app.ledger.rows import TurnRow, light
from engine.model import Kind

c = turns.c
_CHUNK = 1_000
_NEAR = 64
"""Turns among which the one before is looked for."""
LOST = (
    "turn_id", "started_at", "source", "session", "session_key", "upstream", "model",
    "service_tier", "mode", "reason", "shadow_reason", "changed_fields", "fallback_reason",
    "diverged_at", "diverged_kind", "diverged_path", "diverged_class", "evidence", "input_tokens",
    "cache_write_tokens", "cache_write_long_tokens", "ttft_ms", "cache_verdict", "cache_grade",
    "missed_tokens", "provider_miss_reason",
)  # fmt: skip
"""All that is asked of a turn that lost something."""
_PASSING = (
    "turn_id", "session_key", "session", "started_at", "ended_at", "source", "kind", "status",
    "chain", "mode", "reason", "shadow_reason", "previous_response_id", "response_id",
    "items_total", "model", "upstream", "service_tier", "epoch_reset_reason", "cache_verdict",
    "usage_state", "input_tokens", "cached_tokens", "cache_write_tokens", "cache_write_long_tokens",
    "output_tokens",
)  # fmt: skip


def lost(
    connection: Connection, view: Filter, verdicts: Collection[str], reasons: Collection[str]
) -> Iterator[tuple[TurnRow, int | None]]:
    """The generation turns of a view with one of these verdicts or reasons (also as
    ``shadow_reason``), in the order of their writing.

    With those that have a reason, or changed their identity, the milliseconds since the answered
    turn before it ended, by when they began: of its chain, or of its session where none of the last
    turns is of its chain. None where there is none.
    """
    latest, near = _before(1), _before(_NEAR)
    ended = func.coalesce(
        # Nearly always the one before is of the chain, and the others need not be read.
        select(latest.ended_at).where(latest.elsewhere == 0).scalar_subquery(),
        select(near.ended_at)
        .order_by(near.elsewhere, near.started_at.desc(), near.id.desc())
        .limit(1)
        .scalar_subquery(),
    )
    compared = or_(c.reason.in_(reasons), c.shadow_reason.in_(reasons))
    asked = or_(compared, c.cache_verdict == "identity_change")
    query = (
        select(*(c[name] for name in LOST), case((asked, ended)))
        .where(where(view), generation, or_(c.cache_verdict.in_(verdicts), compared))
        .order_by(c.id)
    )
    made = light(LOST)
    for *values, at in _read(connection, query):
        row = made(values)
        yield row, None if at is None else max(0, row.started_at - at)


def _before(number: int) -> Any:
    """The last answered turns of its session that began before a turn."""
    before = turns.alias()
    return (
        select(
            before.c.ended_at,
            case((before.c.chain == c.chain, 0), else_=1).label("elsewhere"),
            before.c.started_at,
            before.c.id,
        )
        .where(
            before.c.session_key == c.session_key,
            before.c.started_at < c.started_at,
            before.c.kind == Kind.GENERATION.value,
            before.c.status.in_(SUCCEEDED),
        )
        .order_by(before.c.started_at.desc(), before.c.id.desc())
        .limit(number)
        .correlate(turns)
        .subquery()
        .c
    )


def warm(
    connection: Connection, view: Filter, losses: Collection[str]
) -> Iterator[tuple[str, list[float]]]:
    """Of each session that has turns with these verdicts in a view (without a filter: of each): the
    times to first token of its warm turns in the window, whatever else the view asks for, the
    shortest first.

    Warm is what read all that it could (``hit``), or was continued and is no loss.
    """
    window = Filter(view.start, view.end, view.tz, view.by)
    sessions = select(c.session_key).where(where(view), c.cache_verdict.in_(losses))
    is_warm = or_(
        c.cache_verdict == "hit",
        and_(c.mode.in_(sorted(INCREMENTAL)), func.coalesce(c.cache_verdict, "").not_in(losses)),
    )
    query = (
        select(c.session_key, c.ttft_ms)
        .where(where(window), generation, is_warm, c.ttft_ms.is_not(None))
        .order_by(c.session_key, c.ttft_ms)
    )
    if view.include or view.exclude or view.q is not None:
        query = query.where(c.session_key.in_(sessions))
    for key, found in groupby(_read(connection, query), itemgetter(0)):
        yield key, [time for _, time in found]


def passing(
    connection: Connection, view: Filter, verdict: str, no_rewrites: Collection[str]
) -> Iterator[Any]:
    """The turns in the window of each session that has a rewritten history in a view: session by
    session, as they ended. ``selected`` says whether the view has it."""
    window = Filter(view.start, view.end, view.tz, view.by)
    rewritten = or_(
        c.kind == Kind.COMPACTION.value,
        c.cache_verdict == verdict,
        and_(c.epoch_reset_reason.is_not(None), c.epoch_reset_reason.not_in(no_rewrites)),
    )
    sessions = select(c.session_key).where(where(view), rewritten)
    query = (
        select(
            *(c[name] for name in _PASSING), func.coalesce(where(view), false()).label("selected")
        )
        .where(where(window), c.session_key.in_(sessions))
        .order_by(c.session_key, *ORDER)
    )
    return _read(connection, query)


def _read(connection: Connection, query: Select[Any]) -> Iterator[Any]:
    options = {"stream_results": True, "max_row_buffer": _CHUNK}
    with connection.execute(query, execution_options=options) as result:
        for part in result.partitions(_CHUNK):
            yield from part
