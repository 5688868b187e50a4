"""What was sent, and what became of it: pages of deliveries, one with its attempts, counts.

Reads only; ``outbox`` writes. Times are epoch milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, func, select

from app.alerts.outbox import unknown_delivery
from app.alerts.retry import DeliveryState
from app.alerts.tables import attempts, deliveries
from app.errors import BadParameterError
from app.ledger import cursors

d = deliveries.c
PAGE_LIMIT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    id: str
    receiver_id: str
    receiver_name: str
    """As it was when the message was written; so too the rule's."""
    rule_id: str
    rule_name: str
    group_key: str
    dedupe_key: str
    told: str
    repeat: int
    """0, or the number of the reminder."""
    test: bool
    state: DeliveryState
    attempts: int
    """Those that were begun, over all replays."""
    replays: int
    created_at: int
    next_attempt_at: int | None
    """When it is due; None when it is under way or settled."""
    settled_at: int | None
    outcome: str | None
    """Of the last attempt, in words; None before the first one."""


@dataclass(frozen=True, slots=True)
class Attempt:
    attempt: int
    started_at: int
    duration_ms: float
    status: int | None
    """HTTP status; None where there was no answer."""
    outcome: str
    response: str | None
    """The first kilobyte of the answer."""


@dataclass(frozen=True, slots=True)
class Detail:
    delivery: Delivery
    body: str
    """The message as it goes out: JSON."""
    attempts: tuple[Attempt, ...]
    """Oldest first. One that was cut off by the end of its process is missing here."""


@dataclass(frozen=True, slots=True)
class Page:
    deliveries: tuple[Delivery, ...]
    """Newest first."""
    next_cursor: str | None


_SHOWN = (
    d.id,
    d.receiver_id,
    d.receiver_name,
    d.rule_id,
    d.rule_name,
    d.group_key,
    d.dedupe_key,
    d.told,
    d.repeat,
    d.test,
    d.state,
    d.attempts,
    d.replays,
    d.created_at,
    d.next_attempt_at,
    d.settled_at,
    d.outcome,
)


def page(
    engine: Engine,
    *,
    receiver_id: str | None = None,
    rule_id: str | None = None,
    state: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page:
    """Up to ``limit`` (1 to 500) deliveries, newest first; ``cursor`` as the page before gave it.

    Raises ``AppError`` for a limit, state or cursor that cannot be.
    """
    if not 1 <= limit <= PAGE_LIMIT:
        raise BadParameterError(
            "limit", f"limit cannot be {limit}.", f"It is a number from 1 to {PAGE_LIMIT}."
        )
    query = select(d.number, *_SHOWN).order_by(d.number.desc()).limit(limit + 1)
    if receiver_id is not None:
        query = query.where(d.receiver_id == receiver_id)
    if rule_id is not None:
        query = query.where(d.rule_id == rule_id)
    if state is not None:
        if state not in list(DeliveryState):
            raise BadParameterError(
                "state", "There is no such state.", f"It is one of {', '.join(DeliveryState)}."
            )
        query = query.where(d.state == state)
    if cursor is not None:
        query = query.where(d.number < cursors.read(cursor, 1)[0])
    with engine.connect() as connection:
        found = connection.execute(query).all()
    more = len(found) > limit
    return Page(
        tuple(_delivery(row) for row in found[:limit]),
        cursors.write(found[limit - 1].number) if more else None,
    )


def get(engine: Engine, delivery_id: str) -> Detail:
    """Raises ``AppError`` (404) for one that is not there."""
    query = select(d.number, d.body, *_SHOWN).where(d.id == delivery_id)
    log = attempts.c
    with engine.connect() as connection:
        found = connection.execute(query).one_or_none()
        if found is None:
            raise unknown_delivery()
        rows = connection.execute(
            select(
                log.attempt,
                log.started_at,
                log.duration_ms,
                log.status,
                log.outcome,
                log.response,
            )
            .where(log.delivery == found.number)
            .order_by(log.attempt, log.id)
        ).all()
    return Detail(_delivery(found), found.body, tuple(Attempt(*row) for row in rows))


def counts(engine: Engine) -> dict[DeliveryState, int]:
    """How many there are in each state; 0 is a count as well."""
    query = select(d.state, func.count()).group_by(d.state)
    with engine.connect() as connection:
        found = {row[0]: row[1] for row in connection.execute(query)}
    return {state: found.get(state.value, 0) for state in DeliveryState}


def next_due(engine: Engine) -> int | None:
    """When the next attempt is due; None while nothing waits."""
    query = select(func.min(d.next_attempt_at)).where(d.state == DeliveryState.QUEUED.value)
    with engine.connect() as connection:
        due: int | None = connection.execute(query).scalar_one()
    return due


def _delivery(row: Any) -> Delivery:
    values = {column.name: getattr(row, column.name) for column in _SHOWN}
    state = DeliveryState(values.pop("state"))
    if state is not DeliveryState.QUEUED:
        values["next_attempt_at"] = None
    return Delivery(state=state, **values)
