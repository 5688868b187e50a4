"""What becomes of a rule's alerts when the rule is edited, paused or deleted.

``store`` reads the states, and writes what comes of this in one transaction with the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import Connection

from app.alerts import event_store, groups, states
from app.alerts.evaluation import Notification
from app.alerts.groups import GroupKey
from app.alerts.records import Observation
from app.alerts.rules import Rule
from app.alerts.state_store import GroupState
from app.alerts.states import Cause, Transition
from app.alerts.teller import Dispatch, Letter


class Ended:
    """``states`` are those to keep. ``rule`` is the definition from now on."""

    def __init__(self, rule: Rule, now: int, dispatch: Dispatch) -> None:
        self.states: dict[GroupKey, GroupState] = {}
        self.transitions: list[tuple[GroupKey, Transition, Observation | None]] = []
        self.letters: list[Letter] = []
        self._rule = rule
        self._now = now
        self._dispatch = dispatch

    def write(self, connection: Connection) -> None:
        """The events and the messages."""
        event_store.add(connection, self._rule.id, self._rule.name, self.transitions)
        self._dispatch.post(connection, self.letters, self._now)

    def go_on(self, key: GroupKey, state: GroupState, was: Rule) -> None:
        memory, moved = states.edit(state.memory, self._now)
        # What was read of another signal cannot be said in the words of this one.
        if was.signal is not self._rule.signal:
            memory = replace(memory, peak=None)
        kept = state.observation if _reads(was) == _reads(self._rule) else None
        self.states[key] = replace(state, memory=memory, observation=kept)
        self.transitions += [(key, transition, None) for transition in moved]

    def pause(self, key: GroupKey, state: GroupState) -> None:
        self.states[key] = self.end(key, state, Cause.PAUSED)

    def end(self, key: GroupKey, state: GroupState, cause: Cause) -> GroupState:
        """Those who were told that it fires are told, silence or not: there is no later."""
        memory, moved = states.end(state.memory, self._now, cause)
        self.transitions += [(key, transition, None) for transition in moved]
        memory, notice = states.notify(self._rule, memory, self._now, silenced=False)
        if notice is None:
            return replace(state, memory=memory)
        telling = self._dispatch.compose(
            self._rule,
            Notification(key, notice, state.memory, memory),
            cause=cause,
            observation=state.observation,
            told_receivers=state.told_receivers,
            evaluated=False,
        )
        self.letters += telling.letters
        return replace(state, memory=memory, told_receivers=telling.told_receivers)


def _reads(rule: Rule) -> tuple[object, ...]:
    return rule.signal, rule.weight, rule.confidence


def of_edit(
    rule: Rule,
    before: Mapping[GroupKey, GroupState],
    now: int,
    dispatch: Dispatch,
    *,
    was: Rule | None = None,
) -> Ended:
    """``rule`` is the new definition, ``before`` what was kept under the old one. ``was`` is that
    one, None where it cannot be read."""
    ended = Ended(rule, now, dispatch)
    for key, state in before.items():
        if set(groups.labels_of(key)) != set(rule.group_by):
            ended.end(key, state, Cause.EDITED)
        elif not rule.enabled:
            ended.pause(key, state)
        else:
            ended.go_on(key, state, was or rule)
    return ended


def of_deletion(
    rule: Rule, before: Mapping[GroupKey, GroupState], now: int, dispatch: Dispatch
) -> Ended:
    ended = Ended(rule, now, dispatch)
    for key, state in before.items():
        ended.end(key, state, Cause.DELETED)
    return ended
