"""Deleting what alerts tell of a tenant: groups are named by it, sessions never are."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, Engine, Table, and_, delete, select

from app.alerts import groups, tables
from app.ledger.database import WRITES


def purge_tenant(engine: Engine, tenant: str, before: int | None = None) -> int:
    """Delete events and messages of groups of a tenant, and unless it is only of what was before an
    instant (epoch ms) also what is known of these groups; returns how many events and messages."""
    events, d = tables.events.c, tables.deliveries.c
    with engine.execution_options(**WRITES).begin() as connection:
        of_events: ColumnElement[bool] = events.group_key.in_(
            _groups(connection, tables.events, tenant)
        )
        of_messages: ColumnElement[bool] = d.group_key.in_(
            _groups(connection, tables.deliveries, tenant)
        )
        if before is not None:
            of_events = and_(of_events, events.at < before)
            of_messages = and_(of_messages, d.created_at < before)
        else:
            states = tables.states
            mine = states.c.group_key.in_(_groups(connection, states, tenant))
            connection.execute(delete(states).where(mine))
        numbers = select(d.number).where(of_messages)
        connection.execute(delete(tables.attempts).where(tables.attempts.c.delivery.in_(numbers)))
        deleted = connection.execute(delete(tables.events).where(of_events)).rowcount
        return deleted + connection.execute(delete(tables.deliveries).where(of_messages)).rowcount


def _groups(connection: Connection, table: Table, tenant: str) -> Sequence[str]:
    """The keys of groups whose labels name a tenant."""
    label = groups.key_of({"tenant": tenant})[1:-1]
    named = table.c.group_key.contains(label, autoescape=True)
    found = connection.execute(select(table.c.group_key).where(named).distinct()).scalars()
    return [key for key in found if groups.labels_of(key).get("tenant") == tenant]
