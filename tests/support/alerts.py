"""Rules and rows for the tests of alerts. Times are epoch milliseconds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine

from app.alerts import rules
from app.alerts.rules import Rule
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows
from tests.support.rows import START_MS, make_row

MINUTE = 60_000


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


def numbered(prefix: str = "id") -> Callable[[], str]:
    """A source of ids that are not random."""
    numbers = itertools.count(1)
    return lambda: f"{prefix}-{next(numbers)}"
