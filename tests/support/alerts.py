"""Rules and rows for the tests of alerts. Times are epoch milliseconds."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, select

from app.alerts import event_store, rules, state_store, store, tables
from app.alerts.evaluator import Evaluator
from app.alerts.groups import key_of
from app.alerts.records import Observation
from app.alerts.rules import Rule
from app.alerts.teller import Teller
from app.clock import Clock
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows
from tests.support.clock import START, ManualClock
from tests.support.rows import START_MS, make_row

MINUTE = 60_000
BASE_URL = "https://warmline.example"


def make_rule(*, id: str = "rule-1", **overrides: Any) -> Rule:  # noqa: A002  (as in parse)
    """Mismatches among eligible turns, raw, over one minute; each minute, without any delay.

    It fires at once above 20 %, from one turn on, and tells the receiver ``ops``.
    ``overrides`` are fields as a person writes them (``window="15m"``).
    """
    given: dict[str, Any] = {
        "name": "Mismatches",
        "signal": "mismatch_rate",
        "confidence": "raw",
        "threshold": 0.2,
        "window": "1m",
        "every": "1m",
        "delay": 0,
        "min_turns": 1,
        "receivers": ["ops"],
    }
    return rules.parse(given | overrides, id=id)


def good_row(recorded_at: int = START_MS, **changes: Any) -> TurnRow:
    """An eligible turn that was continued."""
    return make_row(**({"started_at": recorded_at - 2_000, "recorded_at": recorded_at} | changes))


def bad_row(recorded_at: int = START_MS, **changes: Any) -> TurnRow:
    """An eligible turn that was sent in full because of a prefix mismatch."""
    broken = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": "fp-1"}
    return good_row(recorded_at, **(broken | changes))


def write(engine: Engine, at: int, *, good: int = 0, bad: int = 0, **changes: Any) -> None:
    """So many turns of each sort, recorded in the milliseconds from ``at`` on."""
    times = itertools.count(at)
    write_rows(
        engine,
        [good_row(next(times), **changes) for _ in range(good)]
        + [bad_row(next(times), **changes) for _ in range(bad)],
    )


_numbers = itertools.count(1)


def next_id(prefix: str) -> str:
    """An id that is not random."""
    return f"{prefix}{next(_numbers)}"


@dataclass(frozen=True)
class Known:
    """A receiver, as far as composing a message needs it."""

    name: str
    kind: str = "webhook"
    disabled: str | None = None

    @property
    def id(self) -> str:
        return f"id-of-{self.name}"


class Directory:
    """The receivers that there are; a test may change the list."""

    def __init__(self, *names: str) -> None:
        self.known = [Known(name) for name in names]

    def all(self) -> list[Known]:
        return self.known


def make_teller(engine: Engine, receivers: Directory | None = None) -> Teller:
    known = Directory("ops") if receivers is None else receivers
    return Teller(engine, receivers=known, base_url=BASE_URL, new_id=next_id)


def make_evaluator(
    engine: Engine,
    clock: Clock,
    receivers: Directory | None = None,
    *,
    new_id: Callable[[str], str] = next_id,
    on_queued: Callable[[], None] = lambda: None,
) -> Evaluator:
    return Evaluator(
        engine,
        clock,
        receivers=Directory("ops") if receivers is None else receivers,
        base_url=BASE_URL,
        new_id=new_id,
        on_queued=on_queued,
    )


def moves(engine: Engine) -> list[tuple[int, str, str]]:
    """Every transition there was, in order: minutes since ``START_MS``, before, after."""
    found = reversed(event_store.page(engine, limit=event_store.MOST).events)
    return [((event.at - START_MS) // MINUTE, event.before, event.after) for event in found]


def messages(engine: Engine) -> list[tuple[str, str]]:
    """Every delivery, in the order of their writing: what is told, and to whom."""
    table = tables.deliveries
    query = select(table.c.told, table.c.receiver_name).order_by(table.c.number)
    with engine.connect() as connection:
        return [(told, name) for told, name in connection.execute(query)]


def bodies(engine: Engine) -> list[dict[str, Any]]:
    """What the messages say."""
    table = tables.deliveries
    with engine.connect() as connection:
        found = connection.execute(select(table.c.body).order_by(table.c.number)).scalars().all()
    return [json.loads(body)["data"] for body in found]


def begin(engine: Engine, **overrides: Any) -> Rule:
    """A rule that was made at ``START_MS``; its first evaluation is a minute later."""
    rule = make_rule(**overrides)
    store.create_rule(engine, rule, START_MS)
    return rule


def minute(number: float) -> ManualClock:
    """So many minutes after ``START_MS``."""
    return ManualClock(START + 60 * number)


def state_of(engine: Engine, rule: Rule, **labels: str) -> state_store.GroupState:
    """What is kept of the group with these labels."""
    with engine.connect() as connection:
        return state_store.load(connection, rule.id)[key_of(labels)]


def last_reading(engine: Engine, rule: Rule) -> Observation:
    observation = state_of(engine, rule).observation
    assert observation is not None
    return observation
