"""Which stretches make up a window of time, and what is left for the rows.

Pure. A stretch is used where it lies within the window and no edge of a bucket cuts it; a coarse
one before finer ones. What no stretch covers, the rows cover, so that the figures are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
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
