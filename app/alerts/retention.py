"""Deleting what alerts have left behind long ago."""

from __future__ import annotations

from sqlalchemy import Engine, delete, select

from app.alerts import tables
from app.ledger.database import WRITES

_AT_ONCE = 1_000
"""Deliveries of one transaction."""


def prune(engine: Engine, before: int) -> int:
    """Delete events before an instant (epoch ms), and deliveries that were settled before, with
    their attempts; returns how many events and deliveries. States, rules and silences stay."""
    writing = engine.execution_options(**WRITES)
    events, d, attempts = tables.events, tables.deliveries.c, tables.attempts
    with writing.begin() as connection:
        deleted = connection.execute(delete(events).where(events.c.at < before)).rowcount
    old = select(d.number).where(d.settled_at < before).order_by(d.number).limit(_AT_ONCE)
    while True:
        with writing.begin() as connection:
            numbers = connection.execute(old).scalars().all()
            connection.execute(delete(attempts).where(attempts.c.delivery.in_(numbers)))
            connection.execute(delete(tables.deliveries).where(d.number.in_(numbers)))
        deleted += len(numbers)
        if len(numbers) < _AT_ONCE:
            return deleted
