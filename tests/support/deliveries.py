"""Deliveries in a database, without the rules, receivers and networks around them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, select

from app.alerts import outbox
from app.alerts.rules import Rule, parse
from app.alerts.states import Told
from app.alerts.tables import attempts, deliveries
from app.ledger.database import WRITES
from tests.support.rows import START_MS

RULE = parse({"name": "Mismatches", "signal": "mismatch_rate", "threshold": 0.2}, id="rule-1")
OTHER_RULE = parse({"name": "Breaks", "signal": "break_rate", "threshold": 0.2}, id="rule-2")


@dataclass(frozen=True)
class Party:
    """As much of a receiver as the outbox looks at."""

    id: str = "receiver-1"
    name: str = "on-call"
    disabled: str | None = None
    version: int = 1


@dataclass(frozen=True)
class Answered:
    """What became of an attempt."""

    status: int | None = 200
    outcome: str = "200"
    duration_ms: float = 12.5
    response: str | None = "ok"
    retry_after: str | None = None


@dataclass
class Ids:
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def __call__(self, prefix: str) -> str:
        return f"{prefix}{next(self.numbers)}"


_ids = Ids()


def put(
    engine: Engine,
    receiver: outbox.Addressee | None = None,
    *,
    rule: Rule = RULE,
    group_key: str = "{}",
    told: Told = Told.FIRING,
    body: bytes = b'{"type":"cache.alert.firing"}',
    now: int = START_MS,
    test: bool = False,
) -> str:
    """One message in the outbox; returns its id."""
    with engine.execution_options(**WRITES).begin() as connection:
        return outbox.enqueue(
            connection,
            receiver=receiver or Party(),
            rule=rule,
            group_key=group_key,
            told=told,
            body=body,
            now=now,
            new_id=_ids,
            test=test,
        )


def stored(engine: Engine, delivery_id: str) -> Any:
    """The row of one delivery."""
    with engine.connect() as connection:
        return connection.execute(select(deliveries).where(deliveries.c.id == delivery_id)).one()


def logged(engine: Engine, delivery_id: str) -> list[Any]:
    """The rows of its attempts."""
    query = (
        select(attempts)
        .join(deliveries, deliveries.c.number == attempts.c.delivery)
        .where(deliveries.c.id == delivery_id)
        .order_by(attempts.c.id)
    )
    with engine.connect() as connection:
        return list(connection.execute(query))
