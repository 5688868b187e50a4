"""Figures over time, and per session.

The caller cuts time into buckets and passes their edges: ``n + 1`` ascending instants (epoch
milliseconds) for ``n`` half-open buckets. Only rows of the filter that lie between the first and
the last edge count; every such row is in exactly one bucket, so sums over buckets are sums over
rows.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sqlalchemy import ColumnElement, Engine, func, select

from app.ledger.cells import Cell, Continuity, TokenTotals, read_cells
from app.ledger.conditions import generation, time_column, where
from app.ledger.filters import Filter
from app.ledger.models import turns

c = turns.c


def modes(engine: Engine, view: Filter, edges: Sequence[int]) -> tuple[dict[str | None, int], ...]:
    """Generation turns by mode; None is an unknown mode."""
    result = []
    for cells in _bucketed(engine, view, edges):
        counts: Counter[str | None] = Counter()
        for cell in cells:
            if cell.generation:
                counts[cell.mode] += cell.turns
        result.append(dict(counts))
    return tuple(result)


def continuity(engine: Engine, view: Filter, edges: Sequence[int]) -> tuple[Continuity, ...]:
    return tuple(Continuity.of(cells) for cells in _bucketed(engine, view, edges))


def tokens(engine: Engine, view: Filter, edges: Sequence[int]) -> tuple[TokenTotals, ...]:
    return tuple(TokenTotals.of(cells) for cells in _bucketed(engine, view, edges))


def ttft(
    engine: Engine, view: Filter, edges: Sequence[int]
) -> tuple[dict[str | None, tuple[float, ...]], ...]:
    """Times to first token of generation turns in milliseconds by mode, ascending."""
    held = _clip(view, edges)
    result: list[dict[str | None, list[float]]] = [{} for _ in edges[1:]]
    if held is not None:
        time = time_column(view.by)
        query = (
            select(time, c.mode, c.ttft_ms)
            .where(where(held), generation, c.ttft_ms.is_not(None))
            .order_by(c.ttft_ms)
        )
        with engine.connect() as connection:
            for instant, mode, sample in connection.execute(query):
                result[bisect_right(edges, instant) - 1].setdefault(mode, []).append(sample)
    return tuple({mode: tuple(samples) for mode, samples in bucket.items()} for bucket in result)


@dataclass(frozen=True, slots=True)
class SessionTotals:
    session_key: str
    session: str | None
    """A name it went by."""
    turns: int
    """All rows; the rest counts generation turns."""
    first_at: int
    last_at: int
    continuity: Continuity
    tokens: TokenTotals


def sessions(
    engine: Engine, view: Filter, *, limit: int | None = None
) -> tuple[SessionTotals, ...]:
    """The sessions of a view, those with the most rows first."""
    time = time_column(view.by)
    with engine.connect() as connection:
        found = read_cells(
            connection,
            view,
            by=[c.session_key.label("cell_session")],
            also=[func.max(c.session), func.min(time), func.max(time)],
        )
    parts: dict[str, list[tuple[str | None, int, int, Cell]]] = {}
    for (key, name, first, last), cell in found:
        parts.setdefault(key, []).append((name, first, last, cell))
    totals = [
        SessionTotals(
            session_key=key,
            session=max((name for name, *_ in part if name is not None), default=None),
            turns=sum(cell.turns for *_, cell in part),
            first_at=min(first for _, first, *_ in part),
            last_at=max(last for _, _, last, _ in part),
            continuity=Continuity.of(cell for *_, cell in part),
            tokens=TokenTotals.of(cell for *_, cell in part),
        )
        for key, part in parts.items()
    ]
    totals.sort(key=lambda session: (-session.turns, session.session_key))
    return tuple(totals if limit is None else totals[:limit])


def _bucketed(engine: Engine, view: Filter, edges: Sequence[int]) -> list[list[Cell]]:
    buckets: list[list[Cell]] = [[] for _ in edges[1:]]
    held = _clip(view, edges)
    if held is None:
        return buckets
    expression, start_of = _grid(time_column(view.by), edges)
    with engine.connect() as connection:
        found = read_cells(connection, held, by=[expression.label("cell_grid")])
    for (grid,), cell in found:
        buckets[bisect_right(edges, start_of(grid)) - 1].append(cell)
    return buckets


def _clip(view: Filter, edges: Sequence[int]) -> Filter | None:
    """The filter within the edges; None where they leave nothing."""
    if len(edges) < 2 or any(left > right for left, right in pairwise(edges)):
        raise ValueError("edges are at least two ascending instants")
    start, end = max(view.start, edges[0]), min(view.end, edges[-1])
    return replace(view, start=start, end=end) if start < end else None


def _grid(
    time: ColumnElement[int], edges: Sequence[int]
) -> tuple[ColumnElement[Any], Callable[[int], int]]:
    """A regular grid none of whose lines is crossed by an edge: grouping by it is one division,
    and each of its fields lies in one bucket.

    Its distance is the greatest that fits all edges but the outermost, which the filter's window
    cuts anyway. The second value gives an instant of a field's bucket.
    """
    inner = edges[1:-1] or edges[:1]
    distance = math.gcd(*(right - left for left, right in pairwise(inner))) or (
        max(1, edges[-1] - edges[0])
    )
    # Begin at or before the first edge: division of negative numbers differs between databases.
    base = inner[0] - -(-(inner[0] - edges[0]) // distance) * distance
    return (time - base) // distance, lambda field: max(base + field * distance, edges[0])
