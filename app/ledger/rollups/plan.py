"""Which stretches make up a window of time, and what is left for the rows.

Pure. A stretch is used where it lies within the window and no edge of a bucket cuts it; a coarse
one before finer ones. What no stretch covers, the rows cover, so that the figures are exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from app.ledger.rollups.state import RollupState

Span = tuple[int, int]
"""Half-open, in milliseconds since 1970."""


@dataclass(slots=True)
class Plan:
    edges: list[int]
    """The edges of the buckets, as many as were asked for. In time whose rows were deleted, they
    lie on the next start of a stretch."""
    rows: list[Span] = field(default_factory=list)
    stretches: dict[int, list[Span]] = field(default_factory=dict)
    """Spans of whole stretches by level."""


def only_rows(start: int, end: int, edges: Sequence[int] = ()) -> Plan:
    return Plan(list(edges) or [start, end], rows=[(start, end)])


def plan(
    start: int, end: int, edges: Sequence[int], levels: Sequence[int], state: RollupState
) -> Plan:
    """The plan for ``[start, end)`` cut at ``edges``; ``levels`` from fine to coarse.

    The outermost edges may lie beyond the window.
    """
    finest = levels[0]
    kept = state.rows_from
    if kept is not None and start < kept:
        # Of these rows only whole stretches are known.
        edges = [_up(edge, finest) if edge < kept else edge for edge in edges]
        start = _down(start, finest)
        end = max(_up(end, finest), start) if end < kept else end
    made = Plan(list(edges) or [start, end])
    cuts = [start, *sorted({edge for edge in edges if start < edge < end}), end]
    for left, right in pairwise(cuts):
        _cover(made, left, right, levels, state)
    return made


Uses = dict[tuple[int, int], list[tuple[int, int]]]
"""By level and start of a stretch: the buckets in which it counts, each with 1, or with -1 where it
is to be taken away."""


def uses(
    made: Plan, bucket: Callable[[int], int], levels: Sequence[int], state: RollupState
) -> Uses:
    """What makes up the buckets, where most of a coarse stretch comes as that without the rest of
    it: seven hours of eight are eight without one."""
    starts: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for level, spans in made.stretches.items():
        for first, end in spans:
            for start in range(first, end, level):
                starts[level, bucket(start)].append(start)
    found: Uses = defaultdict(list)
    for finer, coarse in pairwise(levels):
        for level, place in [at for at in starts if at[0] == finer]:
            parts: defaultdict[int, list[int]] = defaultdict(list)
            for start in starts.pop((level, place)):
                parts[_down(start, coarse)].append(start)
            for block, some in parts.items():
                rest = {*range(block, block + coarse, finer)}.difference(some)
                if 1 + len(rest) < len(some) and block + coarse <= state.whole_until(coarse):
                    starts[coarse, place].append(block)
                    for start in sorted(rest):
                        found[finer, start].append((place, -1))
                else:
                    for start in some:
                        found[finer, start].append((place, 1))
    for (level, place), some in starts.items():
        for start in some:
            found[level, start].append((place, 1))
    return found


def apart(made: Plan, levels: Sequence[int], state: RollupState) -> tuple[Plan, Plan]:
    """The stretches that a coarser one may stand for, of which each edge has but some, and the
    others: of a window without end these are without number."""
    near, far = Plan(made.edges), Plan(made.edges)
    coarser = dict(pairwise(levels))
    for level, spans in made.stretches.items():
        for first, end in spans:
            until = state.whole_until(coarser[level]) if level in coarser else first
            if first < until:
                _join(near.stretches.setdefault(level, []), first, min(end, until))
            if until < end:
                _join(far.stretches.setdefault(level, []), max(first, until), end)
    return near, far


def within(starts: Iterable[tuple[int, int]], beside: Plan | None = None) -> Plan:
    """Some stretches, by level and start, and those of another plan."""
    spans = beside.stretches if beside else {}
    made = Plan([], stretches={level: list(some) for level, some in spans.items()})
    for level, start in sorted(starts):
        _join(made.stretches.setdefault(level, []), start, start + level)
    return made


def _cover(made: Plan, start: int, end: int, levels: Sequence[int], state: RollupState) -> None:
    if start >= end:
        return
    if not levels:
        _join(made.rows, start, end)
        return
    *finer, level = levels
    first, last = _up(start, level), _down(end, level)
    if finer:
        last = min(last, state.whole_until(level))
    if first >= last:
        _cover(made, start, end, finer, state)
        return
    _cover(made, start, first, finer, state)
    _join(made.stretches.setdefault(level, []), first, last)
    _cover(made, last, end, finer, state)


def _join(spans: list[Span], start: int, end: int) -> None:
    """Add a span; one that begins where the one before ends makes it longer."""
    if spans and spans[-1][1] == start:
        spans[-1] = (spans[-1][0], end)
    else:
        spans.append((start, end))


def _down(instant: int, level: int) -> int:
    return instant - instant % level


def _up(instant: int, level: int) -> int:
    return -(-instant // level) * level
