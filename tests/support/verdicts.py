"""Windows by what they mean to the rule of ``tests.support.alerts``, with ``recover`` at 10 %."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.alerts import signals, states
from app.alerts.rules import Rule
from app.alerts.signals import Measure, Reading
from app.alerts.states import Memory, Transition
from tests.support.alerts import MINUTE, make_rule

MEASURES = {
    "breach": Measure(100, 30, 100, 100),
    "worse": Measure(100, 60, 100, 100),
    "between": Measure(100, 15, 100, 100),
    "clear": Measure(100, 5, 100, 100),
    "lacking": Measure(100, 1, 1, 1),
    "absent": Measure(),
}
"""By verdict. ``lacking`` is a rate of 100 % of one turn: it would cross, were it enough."""


def rule_of(**overrides: Any) -> Rule:
    """Fires above 20 %, recovers at 10 %, judges from 20 turns on, each minute."""
    return make_rule(**({"recover": 0.1, "min_turns": 20} | overrides))


def reading(rule: Rule, verdict: str) -> Reading:
    return signals.read(rule.signal, rule.confidence, rule.min_turns, MEASURES[verdict])


def walk(
    rule: Rule, verdicts: str | Iterable[str], memory: Memory | None = None, *, start: int = 0
) -> tuple[Memory, list[Transition]]:
    """One evaluation each minute from ``start`` minutes on; all that happened."""
    memory = memory or Memory()
    happened: list[Transition] = []
    words = verdicts.split() if isinstance(verdicts, str) else verdicts
    for minute, verdict in enumerate(words, start):
        memory, moved = states.step(rule, memory, reading(rule, verdict), minute * MINUTE)
        happened.extend(moved)
    return memory, happened


def path(happened: Iterable[Transition]) -> list[tuple[int, str, str]]:
    """Minute, state and cause of each transition."""
    return [(t.at // MINUTE, t.after.value, t.cause.value) for t in happened]
