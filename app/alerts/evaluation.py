"""One evaluation of a rule: measures in, memories, transitions and notices out.

Pure, and the only way from measures to states: the live evaluator, the preview and the backtest
all fold with it, so the same rows give the same transitions at the same instants in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from app.alerts import groups, signals, states
from app.alerts.groups import GroupKey
from app.alerts.rules import NoData, Rule
from app.alerts.signals import Measure, Reading
from app.alerts.states import Labels, Memory, Notice, Transition

Silenced = Callable[[Labels, int], bool]
"""Whether a silence covers a group with these labels at an instant."""


class Notification(NamedTuple):
    """Something to tell of a group, with its memory before the evaluation and after it."""

    key: GroupKey
    notice: Notice
    before: Memory
    after: Memory


@dataclass(frozen=True, slots=True)
class Outcome:
    """All by key in ascending order; the transitions of one group in the order they happened."""

    memories: dict[GroupKey, Memory]
    """Of the groups to go on with."""
    readings: dict[GroupKey, Reading]
    """Of the groups that were evaluated, those among them that are forgotten now included."""
    transitions: list[tuple[GroupKey, Transition]]
    notices: list[Notification]


def window(rule: Rule, at: int) -> tuple[int, int]:
    """The half-open window that the evaluation at ``at`` looks at, in epoch milliseconds."""
    end = at - rule.delay * 1_000
    return end - rule.window * 1_000, end


def evaluate(
    rule: Rule,
    memories: Mapping[GroupKey, Memory],
    at: int,
    measures: Mapping[GroupKey, Measure],
    silenced: Silenced | None = None,
) -> Outcome:
    """Evaluate every group of an enabled rule at the instant ``at``.

    Without ``silenced`` nobody is told anything (a backtest). Raises ``ValueError`` where
    ``memories`` or ``measures`` are of another grouping than the rule's.
    """
    groups.check(rule, memories)
    groups.check(rule, measures)
    # A group that is gone but whose end was not told yet, for a silence, takes nobody's place:
    # silences change what is told and never what is evaluated.
    tracked = [key for key, memory in memories.items() if not states.gone(rule, memory)]
    placed = groups.place(tracked, measures, rule)
    after: dict[GroupKey, Memory] = {}
    readings: dict[GroupKey, Reading] = {}
    transitions: list[tuple[GroupKey, Transition]] = []
    notices: list[Notification] = []
    for key in sorted(placed.keys() | memories.keys()):
        before = memory = memories.get(key, Memory())
        if key in placed:
            if states.gone(rule, memory):
                memory = states.come_back(memory)
            reading = signals.read(rule.signal, rule.confidence, rule.min_turns, placed[key])
            memory, moved = states.step(_watching(rule, key), memory, reading, at)
            readings[key] = reading
            transitions.extend((key, transition) for transition in moved)
        if silenced is not None:
            quiet = silenced(groups.labels_of(key), at)
            memory, notice = states.notify(rule, memory, at, silenced=quiet)
            if notice is not None:
                notices.append(Notification(key, notice, before, memory))
        if not states.forgotten(rule, memory):
            after[key] = memory
    return Outcome(after, readings, transitions, notices)


def _watching(rule: Rule, key: GroupKey) -> Rule:
    """That ``other`` is empty is no fault: its members may all have found places of their own."""
    if rule.no_data is NoData.ALERTING and rule.group_by and key == groups.other_of(rule):
        return replace(rule, no_data=NoData.NO_DATA)
    return rule
