"""The states of an alert, and when people are told (docs/alerts.md, "States").

``inactive → pending → firing → recovering → inactive``; beside them ``no_data``, ``error`` and
``paused``. Each group of a rule has its own ``Memory``. All functions are pure: they take the
memory and an instant and return a new memory with the transitions that happened. The same
readings at the same instants give the same transitions, live and in a backtest.

Telling is apart from the states: what receivers were last told is compared with what holds now.
So a silence keeps people in peace without stopping the evaluation, and when it ends they are told
once of what still holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from app.alerts.memory import MAX_GROUPS, OTHER, Cause, Labels, Memory, State, Told, Transition
from app.alerts.rules import NoData, Rule
from app.alerts.signals import CATALOGUE, Lack, Reading

__all__ = [
    "GONE_AFTER",
    "MAX_GROUPS",
    "OTHER",
    "Cause",
    "Labels",
    "Memory",
    "Notice",
    "State",
    "Told",
    "Transition",
]

GONE_AFTER = 3
"""Evaluations without any row after which an alert ends: there is nothing left to watch."""


class _Verdict(StrEnum):
    BREACH = "breach"
    BETWEEN = "between"
    CLEAR = "clear"
    LACKING = "lacking"
    ABSENT = "absent"


def crossed(rule: Rule, reading: Reading) -> bool:
    """Whether the data prove that the threshold is crossed."""
    if reading.lack is not None or reading.bound is None:
        return False
    if CATALOGUE[rule.signal].rises:
        return reading.bound > rule.threshold
    return reading.bound < rule.threshold


def recovered(rule: Rule, reading: Reading) -> bool:
    """Whether the value itself is on the good side of the recovery threshold.

    The value and not its bound: of few turns the bound lies far below a rate that is still bad.
    """
    if reading.lack is not None or reading.value is None or crossed(rule, reading):
        return False
    if CATALOGUE[rule.signal].rises:
        return reading.value <= rule.recover
    return reading.value >= rule.recover


def _verdict(rule: Rule, reading: Reading) -> _Verdict:
    if reading.lack is Lack.NO_ROWS:
        return _Verdict.ABSENT
    if reading.lack is not None:
        return _Verdict.LACKING
    if crossed(rule, reading):
        return _Verdict.BREACH
    return _Verdict.CLEAR if recovered(rule, reading) else _Verdict.BETWEEN


def step(
    rule: Rule, memory: Memory, reading: Reading, at: int
) -> tuple[Memory, tuple[Transition, ...]]:
    """One evaluation of an enabled rule for one group, at the instant ``at``."""
    transitions: tuple[Transition, ...] = ()
    if memory.state is State.ERROR:
        memory, transitions = _work_again(memory, at)
    elif memory.state is State.PAUSED:
        memory, transitions = _to(memory, State.INACTIVE, at, Cause.RESUMED)
    verdict = _verdict(rule, reading)
    if verdict is _Verdict.ABSENT:
        memory = replace(memory, absent=memory.absent + 1)
    elif memory.absent:
        memory = replace(memory, absent=0)
    memory, more = _judge(rule, memory, verdict, at)
    if memory.fires and reading.lack is None:
        memory = replace(memory, peak=_worst(rule, memory.peak, reading.value))
    return memory, transitions + more


def _judge(
    rule: Rule, memory: Memory, verdict: _Verdict, at: int
) -> tuple[Memory, tuple[Transition, ...]]:
    if verdict in (_Verdict.BETWEEN, _Verdict.LACKING) and _is_for_want_of_rows(memory):
        return _clear(rule, memory, at, Cause.CLEARED)
    match verdict:
        case _Verdict.BREACH:
            return _breach(rule, memory, at, Cause.CROSSED)
        case _Verdict.CLEAR:
            return _clear(rule, memory, at, Cause.CLEARED)
        case _Verdict.BETWEEN:
            return _between(memory, at)
        case _Verdict.LACKING:
            return _lacking(rule, memory, at)
        case _Verdict.ABSENT:
            return _absent(rule, memory, at)
        case never:
            assert_never(never)


def _is_for_want_of_rows(memory: Memory) -> bool:
    """Whether an alert, or the wait for one, says no more than that there are no rows. Then any
    row ends it: what it says is no longer so, whatever the rate."""
    return memory.absence and (memory.fires or memory.state is State.PENDING)


def _breach(
    rule: Rule, memory: Memory, at: int, cause: Cause
) -> tuple[Memory, tuple[Transition, ...]]:
    if memory.absence and cause is not Cause.ABSENT:
        memory = replace(memory, absence=False)
    match memory.state:
        case State.FIRING:
            return memory, ()
        case State.RECOVERING:
            return _to(memory, State.FIRING, at, Cause.RELAPSED)
        case State.PENDING:
            assert memory.pending_since is not None
            if at - memory.pending_since < rule.pending_for * 1_000:
                return memory, ()
            return _fire(memory, at, Cause.HELD)
        case _ if rule.pending_for == 0:
            memory = replace(memory, absence=cause is Cause.ABSENT)
            return _fire(memory, at, cause)
        case _:
            memory = replace(memory, pending_since=at, absence=cause is Cause.ABSENT)
            return _to(memory, State.PENDING, at, cause)


def _fire(memory: Memory, at: int, cause: Cause) -> tuple[Memory, tuple[Transition, ...]]:
    return _to(replace(memory, started_at=at, ended_at=None, peak=None), State.FIRING, at, cause)


def _clear(
    rule: Rule, memory: Memory, at: int, cause: Cause
) -> tuple[Memory, tuple[Transition, ...]]:
    match memory.state:
        case State.FIRING if rule.keep_firing_for == 0:
            return _to(memory, State.INACTIVE, at, cause)
        case State.FIRING:
            return _to(replace(memory, clear_since=at), State.RECOVERING, at, cause)
        case State.RECOVERING:
            assert memory.clear_since is not None
            if at - memory.clear_since < rule.keep_firing_for * 1_000:
                return memory, ()
            return _to(memory, State.INACTIVE, at, Cause.STAYED_CLEAR)
        case _:
            return _between(memory, at)


def _between(memory: Memory, at: int) -> tuple[Memory, tuple[Transition, ...]]:
    """Not crossed, and not yet (or never in need of being) recovered."""
    match memory.state:
        case State.PENDING:
            return _to(memory, State.INACTIVE, at, Cause.FELL_BACK)
        case State.NO_DATA:
            return _to(memory, State.INACTIVE, at, Cause.JUDGED)
        case State.RECOVERING:
            return _to(memory, State.FIRING, at, Cause.RELAPSED)
        case _:
            return memory, ()


def _lacking(rule: Rule, memory: Memory, at: int) -> tuple[Memory, tuple[Transition, ...]]:
    """Rows, but too little to judge by: nothing fires and nothing resolves."""
    if memory.state is State.INACTIVE and rule.no_data is not NoData.KEEP_LAST:
        if rule.no_data is NoData.OK:
            return memory, ()
        return _to(memory, State.NO_DATA, at, Cause.LACKING)
    return memory, ()


def _absent(rule: Rule, memory: Memory, at: int) -> tuple[Memory, tuple[Transition, ...]]:
    match rule.no_data:
        case NoData.ALERTING:
            return _breach(rule, memory, at, Cause.ABSENT)
        case NoData.OK:
            return _clear(rule, memory, at, Cause.ABSENT)
        case NoData.KEEP_LAST:
            return memory, ()
        case NoData.NO_DATA:
            return _absent_shown(rule, memory, at)
        case never:
            assert_never(never)


def _absent_shown(rule: Rule, memory: Memory, at: int) -> tuple[Memory, tuple[Transition, ...]]:
    """The default: an absence is shown, and ends an alert once it has lasted.

    A group that is gone is forgotten, so it ends ``inactive`` and not in ``no_data``.
    """
    end = State.INACTIVE if rule.group_by else State.NO_DATA
    if memory.state in (State.PENDING, State.FIRING, State.RECOVERING):
        if memory.absent < GONE_AFTER:
            return memory, ()
        return _to(memory, end, at, Cause.GONE)
    if memory.state is not end and (end is State.NO_DATA or memory.absent >= GONE_AFTER):
        return _to(memory, end, at, Cause.LACKING if end is State.NO_DATA else Cause.GONE)
    return memory, ()


def gone(rule: Rule, memory: Memory) -> bool:
    """Whether nothing is left of a group to watch."""
    return (
        bool(rule.group_by)
        and memory.absent >= GONE_AFTER
        and memory.state in (State.INACTIVE, State.NO_DATA)
    )


def forgotten(rule: Rule, memory: Memory) -> bool:
    """Whether a group's memory can go: its rows are gone and nobody waits to be told of its end."""
    return gone(rule, memory) and memory.told is None


def come_back(memory: Memory) -> Memory:
    """A gone group has rows again before its end was told: it begins anew, and only what people
    believe is kept."""
    return replace(memory, state=State.INACTIVE, since=None, absent=0)


def interrupted(memory: Memory, at: int) -> Memory:
    """Evaluations just before ``at`` were left out: what waits begins its waiting anew."""
    return replace(
        memory,
        pending_since=None if memory.pending_since is None else at,
        clear_since=None if memory.clear_since is None else at,
        told_at=None if memory.told_at is None else min(memory.told_at, at),
    )


def fail(memory: Memory, at: int) -> tuple[Memory, tuple[Transition, ...]]:
    """The evaluation failed: what was true before still counts as told, nothing is told anew."""
    if memory.state in (State.ERROR, State.PAUSED):
        return memory, ()
    return _to(replace(memory, resume=memory.state), State.ERROR, at, Cause.FAILED)


def _work_again(memory: Memory, at: int) -> tuple[Memory, tuple[Transition, ...]]:
    """Back to where it was, but for a wait that was interrupted: that one begins anew."""
    before = memory.resume or State.INACTIVE
    kept = {
        State.RECOVERING: State.FIRING,
        State.PENDING: State.INACTIVE,
    }.get(before, before)
    return _to(replace(memory, resume=None), kept, at, Cause.WORKS_AGAIN)


def edit(memory: Memory, at: int) -> tuple[Memory, tuple[Transition, ...]]:
    """An edited rule begins its waiting anew; what fires goes on firing."""
    if memory.state is State.PENDING:
        return _to(memory, State.INACTIVE, at, Cause.EDITED)
    return memory, ()


def end(memory: Memory, at: int, cause: Cause) -> tuple[Memory, tuple[Transition, ...]]:
    """The rule was paused or deleted, or its groups are others now: nobody watches any more.

    So nobody looks whether a silence is over, either: callers ``notify`` at once, silenced or not.
    """
    after = State.PAUSED if cause is Cause.PAUSED else State.INACTIVE
    if memory.state is after:
        return memory, ()
    return _to(replace(memory, resume=None), after, at, cause)


def _to(
    memory: Memory, after: State, at: int, cause: Cause
) -> tuple[Memory, tuple[Transition, ...]]:
    """Into another state, which ends what only the former one needs."""
    before = memory.state
    alert_goes_on = after in (State.FIRING, State.RECOVERING, State.ERROR)
    if before is State.ERROR:
        ends = not alert_goes_on and memory.started_at is not None and memory.ended_at is None
    else:
        ends = memory.fires and not alert_goes_on
    moved = replace(
        memory,
        state=after,
        since=at,
        pending_since=memory.pending_since if after is State.PENDING else None,
        clear_since=memory.clear_since if after is State.RECOVERING else None,
        ended_at=at if ends else memory.ended_at,
    )
    return moved, (Transition(at, before, after, cause),)


def _worst(rule: Rule, peak: float | None, value: float | None) -> float | None:
    if peak is None or value is None:
        return value if peak is None else peak
    return max(peak, value) if CATALOGUE[rule.signal].rises else min(peak, value)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that receivers are to be told."""

    told: Told
    at: int
    repeat: int = 0
    """0: for the first time; n: the n-th reminder."""


def notify(rule: Rule, memory: Memory, at: int, *, silenced: bool) -> tuple[Memory, Notice | None]:
    """What to tell now, if anything. Nothing while ``silenced``; then once what still holds.

    An alert is told once, reminders apart. One exception: who was told that there are no rows
    hears of it when rows come and cross the threshold, for that is another fault.
    """
    if silenced:
        return replace(memory, hushed=memory.told is not None), None
    if memory.state is State.ERROR:
        return memory, None
    if not memory.fires:
        if memory.told is None:
            return memory, None
        over = replace(memory, told=None, told_at=at, told_times=0, hushed=False)
        return over, Notice(Told.RESOLVED, at)
    if memory.told is None or (memory.told is Told.NO_DATA and not memory.absence):
        holds = Told.NO_DATA if memory.absence else Told.FIRING
        first = replace(memory, told=holds, told_at=at, told_times=1, hushed=False)
        return first, Notice(holds, at)
    if memory.hushed or _reminder_is_due(rule, memory, at):
        again = replace(memory, told_at=at, told_times=memory.told_times + 1, hushed=False)
        return again, Notice(memory.told, at, repeat=memory.told_times)
    return memory, None


def _reminder_is_due(rule: Rule, memory: Memory, at: int) -> bool:
    assert memory.told_at is not None
    return (
        rule.renotify_every > 0
        and at - memory.told_at >= rule.renotify_every * 1_000
        and memory.told_times <= rule.renotify_max
    )
