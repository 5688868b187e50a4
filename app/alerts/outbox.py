"""The outbox: messages are written in the transaction that decides on them, and sent from here.

A delivery belongs to whoever claims it, by an update that only one process can win, and for a
limited time: a sender that died is replaced, and the message goes out again under the same id.
``attempts`` grows with every claim and so names its owner; whoever comes late with a result
finds another number there, and only leaves the record of his attempt.

Times are epoch milliseconds. ``delivery_log`` reads what is here for people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import ColumnElement, Connection, Engine, and_, func, insert, or_, select, update

from app.alerts.groups import dedupe_key
from app.alerts.retry import DeliveryState, Next
from app.alerts.rules import Rule
from app.alerts.states import Told
from app.alerts.tables import attempts as log
from app.alerts.tables import deliveries
from app.errors import AppError
from app.ledger.database import WRITES

d = deliveries.c
_QUEUED, _SENDING, _DELIVERED, _DEAD = DeliveryState


class Addressee(Protocol):
    """What is needed to know of a receiver to write to it."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def disabled(self) -> str | None: ...


class Result(Protocol):
    """What is recorded of an attempt."""

    @property
    def status(self) -> int | None: ...
    @property
    def outcome(self) -> str: ...
    @property
    def duration_ms(self) -> float: ...
    @property
    def response(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that is this process's to send, until the lease ends."""

    number: int
    id: str
    receiver_id: str
    body: bytes
    attempt: int
    """Its number over all replays, which also names this claim."""
    tries: int
    """Its number in the present schedule."""


def enqueue(
    connection: Connection,
    *,
    receiver: Addressee,
    rule: Rule,
    group_key: str,
    told: Told,
    body: bytes,
    now: int,
    new_id: Callable[[str], str],
    repeat: int = 0,
    test: bool = False,
) -> str:
    """Write one message to one receiver, inside the caller's transaction; returns its id.

    Of a disabled receiver it is dead from the start, and can be replayed.
    """
    delivery_id = new_id("msg_")
    disabled = receiver.disabled
    connection.execute(
        insert(deliveries).values(
            id=delivery_id,
            receiver_id=receiver.id,
            receiver_name=receiver.name,
            rule_id=rule.id,
            rule_name=rule.name,
            group_key=group_key,
            dedupe_key=dedupe_key(rule.id, group_key),
            told=told.value,
            repeat=repeat,
            test=test,
            body=body.decode(),
            body_digest=hashlib.sha256(body).hexdigest(),
            state=_QUEUED if disabled is None else _DEAD,
            attempts=0,
            attempts_before=0,
            replays=0,
            created_at=now,
            next_attempt_at=now,
            claimed_until=None,
            settled_at=None if disabled is None else now,
            outcome=disabled,
        )
    )
    return delivery_id


def _open(now: int) -> ColumnElement[bool]:
    """Not settled, and nobody is at it."""
    return or_(d.state == _QUEUED, and_(d.state == _SENDING, d.claimed_until <= now))


def _due(now: int) -> ColumnElement[bool]:
    """To be sent now, if no earlier message of the same alert waits or is under way.

    Tests are no part of an alert's story: they neither wait nor hold anything up.
    """
    other = deliveries.alias("other")
    first = (
        select(func.min(other.c.number))
        .where(other.c.state.in_((_QUEUED, _SENDING)), other.c.test.is_(False))
        .group_by(other.c.receiver_id, other.c.dedupe_key)
    )
    in_time = or_(
        and_(d.state == _QUEUED, d.next_attempt_at <= now),
        and_(d.state == _SENDING, d.claimed_until <= now),
    )
    return and_(
        d.state.in_((_QUEUED, _SENDING)), in_time, or_(d.test.is_(True), d.number.in_(first))
    )


def waiting(engine: Engine, now: int) -> set[str]:
    """Receivers that something is to be sent to now."""
    query = select(d.receiver_id).where(_due(now)).distinct()
    with engine.connect() as connection:
        return set(connection.execute(query).scalars())


def claim_due(
    engine: Engine,
    now: int,
    lease: int,
    limit: int,
    room: Mapping[str, int],
    *,
    under_way: Collection[int] = (),
) -> list[Claimed]:
    """Take up to ``limit`` deliveries to send, for ``lease`` milliseconds; counts their attempts.

    ``room`` holds the receivers that this process knows and how many it may take of each. All
    receivers get their first one before any gets its second. Nothing that is ``under_way`` in
    this process is taken, by number: after a sleep of the machine its claim may be over.
    """
    place = func.row_number().over(
        partition_by=d.receiver_id, order_by=(d.next_attempt_at, d.number)
    )
    known = [receiver for receiver, most in room.items() if most > 0]
    query = (
        select(d.number, d.attempts, d.receiver_id, place.label("place"))
        .where(d.receiver_id.in_(known), d.number.not_in(under_way), _due(now))
        .order_by("place", d.next_attempt_at, d.number)
        .limit(limit * max(1, len(known)))
    )
    if not known or limit < 1:
        return []
    with engine.connect() as connection:
        seen = [row for row in connection.execute(query) if row.place <= room[row.receiver_id]]
    if not seen:
        return []
    claimed: dict[int, Claimed] = {}
    chosen = [row.number for row in seen[:limit]]
    with engine.execution_options(**WRITES).begin() as connection:
        # By number, as everyone does: two who claim at once must not wait for each other.
        for row in sorted(seen[:limit], key=lambda row: row.number):
            found = connection.execute(
                update(deliveries)
                .where(d.number == row.number, d.attempts == row.attempts, _due(now))
                .values(state=_SENDING, attempts=d.attempts + 1, claimed_until=now + lease)
                .returning(d.id, d.receiver_id, d.body, d.attempts, d.attempts_before)
            ).one_or_none()
            if found is not None:
                claimed[row.number] = Claimed(
                    number=row.number,
                    id=found.id,
                    receiver_id=found.receiver_id,
                    body=found.body.encode(),
                    attempt=found.attempts,
                    tries=found.attempts - found.attempts_before,
                )
    return [claimed[number] for number in chosen if number in claimed]


def settle(
    engine: Engine, claimed: Claimed, result: Result, then: Next, *, started_at: int, now: int
) -> bool:
    """Record an attempt and what follows; False when the claim had gone to someone else.

    Then only the attempt is recorded. Doing it again, after a commit whose answer was lost, adds
    nothing.
    """
    settled = then.state is not _QUEUED
    with engine.execution_options(**WRITES).begin() as connection:
        mine = _settle_own(
            connection,
            claimed,
            state=then.state,
            claimed_until=None,
            settled_at=now if settled else None,
            outcome=result.outcome,
            **({} if then.at is None else {"next_attempt_at": then.at}),
        )
        recorded = select(log.c.id).where(
            log.c.delivery == claimed.number, log.c.attempt == claimed.attempt
        )
        if connection.execute(recorded).first() is None:
            connection.execute(
                insert(log).values(
                    delivery=claimed.number,
                    attempt=claimed.attempt,
                    started_at=started_at,
                    duration_ms=result.duration_ms,
                    status=result.status,
                    outcome=result.outcome,
                    response=result.response,
                )
            )
    return mine


def _settle_own(connection: Connection, claimed: Claimed, **values: object) -> bool:
    own = and_(d.number == claimed.number, d.attempts == claimed.attempt, d.state == _SENDING)
    return connection.execute(update(deliveries).where(own).values(**values)).rowcount == 1


def abandon(engine: Engine, receiver_id: str, why: str, now: int) -> int:
    """Give up all that waits for a receiver that is disabled or gone; returns how many.

    What is under way settles by itself. ``why`` is shown.
    """
    with engine.execution_options(**WRITES).begin() as connection:
        return connection.execute(
            update(deliveries)
            .where(d.receiver_id == receiver_id, _open(now))
            .values(state=_DEAD, claimed_until=None, settled_at=now, outcome=why)
        ).rowcount


def replay(engine: Engine, delivery_id: str, now: int) -> None:
    """Send a settled delivery again: the same message, id included, by a new schedule.

    Raises ``AppError`` for one that is not there (404) or not settled (409).
    """
    with engine.execution_options(**WRITES).begin() as connection:
        changed = connection.execute(
            update(deliveries)
            .where(d.id == delivery_id, d.state.in_((_DELIVERED, _DEAD)))
            .values(
                state=_QUEUED,
                replays=d.replays + 1,
                attempts_before=d.attempts,
                next_attempt_at=now,
                claimed_until=None,
                settled_at=None,
            )
        ).rowcount
        if changed:
            return
        if connection.execute(select(d.number).where(d.id == delivery_id)).first() is None:
            raise unknown_delivery()
    raise AppError(
        "not_settled",
        "This delivery is still to be sent.",
        "Only delivered and dead ones can be replayed.",
        status=409,
    )


def unknown_delivery() -> AppError:
    return AppError(
        "unknown_delivery", "There is no such delivery.", "GET /api/alerts/deliveries", status=404
    )
