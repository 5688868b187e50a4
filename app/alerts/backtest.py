"""What a rule would have done over the rows that are stored.

Evaluated as live: the same instants, windows and fold (``evaluation``). It begins with empty
memories, as a rule does that is made at ``start``; nobody is told anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlalchemy import Engine

from app.alerts import evaluation, measures
from app.alerts.groups import GroupKey
from app.alerts.rules import Rule, duration
from app.alerts.signals import Lack, Measure, Reading
from app.alerts.states import Memory, Transition
from app.errors import AppError

MAX_INSTANTS = 50_000
MAX_POINTS = 250_000
"""Readings of all groups together: what is kept of one takes some 200 bytes."""
MAX_TRANSITIONS = 20_000
"""Of all groups together: an answer of more would take the processor from the turns."""


@dataclass(frozen=True, slots=True)
class Point:
    """A reading at an instant, without the samples it was made of."""

    at: int
    """The instant of the evaluation, in epoch milliseconds as all times here."""
    value: float | None
    bound: float | None
    lack: Lack | None
    rows: int
    part: int
    whole: int
    turns: int
    unknown: int


@dataclass(frozen=True, slots=True)
class Firing:
    group: GroupKey
    started_at: int
    ended_at: int | None
    """None: it still fires at the last instant."""
    peak: float | None
    """The worst value; None where it fired for want of rows."""


@dataclass(frozen=True, slots=True)
class Backtest:
    first: int
    last: int
    """The first and the last instant that was evaluated."""
    evaluations: int
    """Instants, each of which evaluates every group."""
    series: dict[GroupKey, list[Point]]
    """By group, ascending. A group that is gone is not evaluated, and has no points then."""
    transitions: list[tuple[GroupKey, Transition]]
    firings: list[Firing]
    """In the order of their beginning."""


def run(
    engine: Engine,
    rule: Rule,
    start: int,
    end: int,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Backtest:
    """Evaluate a rule at every one of its instants from ``start`` to ``end``, both included.

    ``progress`` is told how many instants are done, of how many.
    Whether the rule is enabled makes no difference. Callers end it now at the latest: an instant
    to come looks at a window that is not over. Raises ``AppError`` (422) where there is no
    instant or more than ``MAX_INSTANTS`` of them.
    """
    step = rule.every * 1_000
    first, last = -(-start // step) * step, end // step * step
    count = (last - first) // step + 1
    if count < 1:
        raise AppError(
            "nothing_to_test",
            f"The rule is not evaluated between these times: it is every {duration(rule.every)}.",
            "Choose a longer time; the end comes after the start.",
            status=422,
        )
    if count > MAX_INSTANTS:
        raise AppError(
            "backtest_too_long",
            f"That would be {count:,} evaluations; a backtest makes {MAX_INSTANTS:,} at most.",
            f"Choose a time of at most {_rounded(MAX_INSTANTS * rule.every)}, or evaluate less "
            f"often than every {duration(rule.every)}.",
            status=422,
        )
    windows = measures.windows(engine, rule, first, last)
    return fold(rule, windows if progress is None else _told(windows, count, progress))


def _told(
    windows: Iterable[tuple[int, Mapping[GroupKey, Measure]]],
    count: int,
    progress: Callable[[int, int], None],
) -> Iterator[tuple[int, Mapping[GroupKey, Measure]]]:
    for number, window in enumerate(windows, 1):
        yield window
        progress(number, count)


def fold(rule: Rule, windows: Iterable[tuple[int, Mapping[GroupKey, Measure]]]) -> Backtest:
    """The pure part: ``windows`` are the measures of each instant, ascending.

    Raises ``AppError`` (422) where all groups together have more than ``MAX_POINTS`` readings or
    ``MAX_TRANSITIONS``.
    """
    memories: dict[GroupKey, Memory] = {}
    series: dict[GroupKey, list[Point]] = {}
    transitions: list[tuple[GroupKey, Transition]] = []
    open_: dict[GroupKey, Firing] = {}
    over: list[Firing] = []
    instants: list[int] = []
    points = 0
    for at, measured in windows:
        instants.append(at)
        outcome = evaluation.evaluate(rule, memories, at, measured)
        memories = outcome.memories
        points += len(outcome.readings)
        if points > MAX_POINTS:
            raise _too_large(
                f"{len(series):,} groups make more than {MAX_POINTS:,} readings in this time."
            )
        for key, reading in outcome.readings.items():
            series.setdefault(key, []).append(_point(at, reading))
        transitions.extend(outcome.transitions)
        if len(transitions) > MAX_TRANSITIONS:
            raise _too_large(
                f"There are more than {MAX_TRANSITIONS:,} changes of state in this time."
            )
        ended = [key for key in open_ if key not in memories or not memories[key].fires]
        over.extend(replace(open_.pop(key), ended_at=at) for key in ended)
        for key, memory in memories.items():
            if memory.fires and memory.started_at is not None:
                open_[key] = Firing(key, memory.started_at, None, memory.peak)
    firings = sorted([*over, *open_.values()], key=lambda firing: (firing.started_at, firing.group))
    return Backtest(
        first=instants[0],
        last=instants[-1],
        evaluations=len(instants),
        series=series,
        transitions=transitions,
        firings=firings,
    )


def _too_large(message: str) -> AppError:
    hint = "Choose a shorter time, fewer groups, or evaluate less often."
    return AppError("backtest_too_large", message, hint, status=422)


def _rounded(seconds: int) -> str:
    """Down to whole days or, of less than two, hours."""
    unit = 86_400 if seconds >= 2 * 86_400 else 3_600
    return duration(seconds // unit * unit)


def _point(at: int, reading: Reading) -> Point:
    counted = reading.measure
    return Point(
        at,
        reading.value,
        reading.bound,
        reading.lack,
        counted.rows,
        counted.part,
        counted.whole,
        counted.turns,
        counted.unknown,
    )
