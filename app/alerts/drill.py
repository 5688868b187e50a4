"""Test messages: what a receiver would be told, though nothing has happened.

They go through the outbox like any other, so that a test shows the whole way. They are marked,
and carry a key of their own: a receiver that matches messages by it must not end a real alert.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine

from app.alerts import groups, links, outbox, payloads, rules
from app.alerts.evaluation import window
from app.alerts.message import Links, Message
from app.alerts.rules import Rule
from app.alerts.states import Cause, State, Told
from app.alerts.teller import Addressee
from app.ledger.database import WRITES

SAMPLE = "example"
"""The value of every label of a test."""
LASTED = 10 * 60_000
"""How long the made-up alert fired, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Sent:
    id: str
    receiver: str
    """Its name."""


def rule_for(receiver: str) -> Rule:
    """What a test of a receiver, without any rule, tells of."""
    return rules.parse(
        {"name": f"Test of {receiver}"[:100], "signal": "mismatch_rate", "threshold": 0.2},
        id="test",
    )


def send(
    engine: Engine,
    rule: Rule,
    told: Told,
    receivers: Sequence[Addressee],
    *,
    now: int,
    base_url: str,
    new_id: Callable[[str], str],
) -> list[Sent]:
    """Write a test to the outbox for each receiver."""
    message = compose(rule, told, now, base_url)
    bodies = [payloads.encode(each.kind, message, each.name) for each in receivers]
    key = groups.key_of(message.labels)
    with engine.execution_options(**WRITES).begin() as connection:
        return [
            Sent(
                outbox.enqueue(
                    connection,
                    receiver=receiver,
                    rule=rule,
                    group_key=key,
                    told=told,
                    body=body,
                    now=now,
                    new_id=new_id,
                    test=True,
                ),
                receiver.name,
            )
            for receiver, body in zip(receivers, bodies, strict=True)
        ]


def compose(rule: Rule, told: Told, now: int, base_url: str) -> Message:
    """The message itself; no value and no cause, because there is none."""
    labels = dict.fromkeys(rule.group_by, SAMPLE)
    start, end = window(rule, now)
    rows = links.offending(rule, labels, start, end)
    over = told is Told.RESOLVED
    return Message(
        told=told,
        before=State.FIRING if over else State.INACTIVE,
        now=State.INACTIVE if over else State.FIRING,
        rule=rule,
        labels=labels,
        reading=None,
        start=start,
        end=end,
        started_at=now - LASTED if over else now,
        ended_at=now if over else None,
        peak=None,
        cause={Told.FIRING: Cause.CROSSED, Told.NO_DATA: Cause.ABSENT}.get(told, Cause.CLEARED),
        absence=told is Told.NO_DATA,
        details=None,
        links=Links(
            alert=links.alert_link(base_url, rule.id),
            rows=links.rows_link(base_url, rows),
            csv=links.csv_link(base_url, rows),
            silence=links.silence_link(base_url, rule.id, labels),
        ),
        dedupe_key=groups.dedupe_key(f"test/{rule.id}", groups.key_of(labels)),
        test=True,
        at=now,
    )
