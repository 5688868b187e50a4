"""The tables of alerts. Times are epoch milliseconds; JSON is text that only this package reads.

- A rule's definition is one JSON text (``rules.parse`` reads it): it is never searched.
- ``alert_rules.evaluated_until`` is what processes agree by: whoever moves it on owns that
  evaluation, and writes states, events and deliveries in the same transaction.
- No table holds a webhook's secret or its address in the clear.

A change here needs a migration, as in ``app.ledger.models``.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, ForeignKey, Index, Table
from sqlalchemy.orm import Mapped, mapped_column

from app.ledger.models import Base, Id


class AlertRule(Base):
    __tablename__ = "alert_rules"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    origin: Mapped[str]
    """``file`` or ``page``."""
    definition: Mapped[str]
    version: Mapped[int]
    """Grows with every edit."""
    enabled: Mapped[bool]
    evaluated_until: Mapped[int] = mapped_column(BigInteger())
    """The instant of the last evaluation; at first that of the rule's making."""
    failure: Mapped[str | None]
    """Why the last evaluation failed; None when it did not."""
    created_at: Mapped[int] = mapped_column(BigInteger())
    updated_at: Mapped[int] = mapped_column(BigInteger())

    __table_args__ = (Index("uq_alert_rules_name", "name", unique=True),)


class AlertState(Base):
    """One group of a rule: ``states.Memory``, and the last reading."""

    __tablename__ = "alert_states"

    rule_id: Mapped[str] = mapped_column(ForeignKey("alert_rules.id"), primary_key=True)
    group_key: Mapped[str] = mapped_column(primary_key=True)
    """The labels as canonical JSON; ``{}`` of a rule that does not group."""
    state: Mapped[str]
    since: Mapped[int | None] = mapped_column(BigInteger())
    memory: Mapped[str]
    """JSON of the whole ``Memory``."""
    reading: Mapped[str | None]
    """JSON: value, bound, part, whole, turns, unknown, rows, lack, at."""
    told_receivers: Mapped[str | None]
    """JSON list of the ids of those who were told that it fires, and are to hear of its end."""


class AlertEvent(Base):
    """A transition. Never changed."""

    __tablename__ = "alert_events"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    rule_id: Mapped[str]
    rule_name: Mapped[str]
    group_key: Mapped[str]
    at: Mapped[int] = mapped_column(BigInteger())
    before: Mapped[str]
    after: Mapped[str]
    cause: Mapped[str]
    reading: Mapped[str | None]
    """As in ``alert_states``, with ``window_start`` and ``window_end``, and in words."""

    __table_args__ = (
        Index(None, "at", "id"),
        Index(None, "rule_id", "at"),
        {"sqlite_autoincrement": True},
    )


class AlertReceiver(Base):
    __tablename__ = "alert_receivers"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    origin: Mapped[str]
    """``file`` or ``page``; of those in the file only what is learned about them is kept here."""
    kind: Mapped[str]
    """``webhook``, ``slack`` or ``alertmanager``."""
    address: Mapped[str | None]
    """Sealed with the key file; None of one in the settings file."""
    secrets: Mapped[str | None]
    """Sealed JSON list, newest first; None of one in the settings file and where none is needed."""
    shown: Mapped[str]
    """Scheme, host and port: all of the address that is ever shown."""
    version: Mapped[int]
    disabled: Mapped[str | None]
    """Why nothing is sent to it; None while it is in use."""
    created_at: Mapped[int] = mapped_column(BigInteger())
    updated_at: Mapped[int] = mapped_column(BigInteger())

    __table_args__ = (Index("uq_alert_receivers_name", "name", unique=True),)


class AlertDelivery(Base):
    """One message to one receiver, written before it is sent."""

    __tablename__ = "alert_deliveries"

    number: Mapped[int] = mapped_column(Id, primary_key=True)
    """Messages of one alert to one receiver are sent in this order."""
    id: Mapped[str]
    """``webhook-id``: the same on every attempt."""
    receiver_id: Mapped[str]
    receiver_name: Mapped[str]
    rule_id: Mapped[str]
    rule_name: Mapped[str]
    group_key: Mapped[str]
    dedupe_key: Mapped[str]
    told: Mapped[str]
    """``firing``, ``resolved`` or ``no_data``."""
    repeat: Mapped[int]
    """0, or the number of the reminder."""
    test: Mapped[bool]
    body: Mapped[str]
    body_digest: Mapped[str]
    """SHA-256 of the body."""
    state: Mapped[str]
    """``queued``, ``sending``, ``delivered``, ``dead``."""
    attempts: Mapped[int]
    """Those that were begun."""
    attempts_before: Mapped[int]
    """Those before the last replay: the schedule of retries begins anew after them."""
    replays: Mapped[int]
    created_at: Mapped[int] = mapped_column(BigInteger())
    next_attempt_at: Mapped[int] = mapped_column(BigInteger())
    claimed_until: Mapped[int | None] = mapped_column(BigInteger())
    """While ``sending``: until when its sender may take; afterwards another one takes it over."""
    settled_at: Mapped[int | None] = mapped_column(BigInteger())
    outcome: Mapped[str | None]
    """Of the last attempt, in words."""

    __table_args__ = (
        Index("uq_alert_deliveries_id", "id", unique=True),
        Index(None, "state", "next_attempt_at"),
        Index(None, "receiver_id", "dedupe_key", "number"),
        {"sqlite_autoincrement": True},
    )


class AlertAttempt(Base):
    """One attempt at a delivery."""

    __tablename__ = "alert_attempts"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    delivery: Mapped[int] = mapped_column(BigInteger())
    """The delivery's number."""
    attempt: Mapped[int]
    started_at: Mapped[int] = mapped_column(BigInteger())
    duration_ms: Mapped[float]
    status: Mapped[int | None]
    """HTTP status; None where there was no answer."""
    outcome: Mapped[str]
    response: Mapped[str | None]
    """The first kilobyte of the answer, without anything of the address or the secrets."""

    __table_args__ = (Index(None, "delivery", "attempt"), {"sqlite_autoincrement": True})


class AlertSilence(Base):
    __tablename__ = "alert_silences"

    id: Mapped[str] = mapped_column(primary_key=True)
    rule_id: Mapped[str | None]
    """None: every rule."""
    matchers: Mapped[str]
    """JSON object: labels that a group must have."""
    starts_at: Mapped[int] = mapped_column(BigInteger())
    ends_at: Mapped[int] = mapped_column(BigInteger())
    comment: Mapped[str]
    author: Mapped[str]
    created_at: Mapped[int] = mapped_column(BigInteger())


def _table(name: str) -> Table:
    return Base.metadata.tables[name]


rules = _table("alert_rules")
states = _table("alert_states")
events = _table("alert_events")
receivers = _table("alert_receivers")
deliveries = _table("alert_deliveries")
attempts = _table("alert_attempts")
silences = _table("alert_silences")
