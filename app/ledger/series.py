"""Figures over time, and per session.

The caller cuts time into buckets and passes their edges: ``n + 1`` ascending instants (epoch
milliseconds) for ``n`` half-open buckets. Only rows of the filter that lie between the first and
the last edge count; every such row is in exactly one bucket, so sums over buckets are sums over
rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlalchemy import Engine

from app.ledger.cells import Cell, Continuity, TokenTotals
from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.rollups import read
from app.ledger.rollups import sessions as session_rollups
from app.ledger.rollups.contribution import COUNTS, SESSION_SUMS
from app.ledger.rollups.distribution import Distribution
from app.ledger.rollups.sessions import SessionSums


def modes(engine: Engine, view: Filter, edges: Sequence[int]) -> tuple[dict[str | None, int], ...]:
    """Generation turns by mode; None is an unknown mode."""
    result = []
    for cells in _bucketed(engine, view, edges, read.MODES):
        counts: Counter[str | None] = Counter()
        for cell in cells:
            if cell.generation:
                counts[cell.mode] += cell.turns
        result.append(dict(counts))
    return tuple(result)


def continuity(engine: Engine, view: Filter, edges: Sequence[int]) -> tuple[Continuity, ...]:
    return tuple(Continuity.of(cells) for cells in _bucketed(engine, view, edges, read.CONTINUITY))


def tokens(engine: Engine, view: Filter, edges: Sequence[int]) -> tuple[TokenTotals, ...]:
    return tuple(TokenTotals.of(cells) for cells in _bucketed(engine, view, edges, read.TOKENS))


def ttft(
    engine: Engine, view: Filter, edges: Sequence[int]
) -> tuple[dict[str | None, Distribution], ...]:
    """Times to first token of generation turns by mode, where there are any."""
    held = _clip(view, edges)
    if held is None:
        return tuple({} for _ in edges[1:])
    with reading(engine) as connection:
        return tuple(read.ttft(connection, held, edges))


def ttft_by_cache(engine: Engine, view: Filter) -> dict[tuple[str | None, str], Distribution]:
    """The same by mode and class of the cached share, where there are any."""
    with reading(engine) as connection:
        return read.ttft_by_cache(connection, view)


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
    priced: int
    """Of all rows, those that have a price."""
    nano_usd: int
    """What these cost."""


def sessions(
    engine: Engine, view: Filter, *, limit: int | None = None
) -> tuple[SessionTotals, ...]:
    """The sessions of a view, those with the most rows first."""
    with reading(engine) as connection:
        found = session_rollups.sums(connection, view, limit)
    return tuple(_totals(session) for session in found)


def residency(engine: Engine, view: Filter) -> tuple[tuple[int, int, int], ...]:
    """For each pair of numbers that occurs, of continued turns and of turns of known mode: the
    pair, and how many sessions have it."""
    with reading(engine) as connection:
        return tuple(session_rollups.residency(connection, view))


def _totals(found: SessionSums) -> SessionTotals:
    figures = dict(zip(SESSION_SUMS, found.sums, strict=True))
    return SessionTotals(
        session_key=found.session_key,
        session=found.session,
        turns=figures["turns"],
        first_at=found.first_at,
        last_at=found.last_at,
        continuity=Continuity(**{name: figures[name] for name in COUNTS}),
        tokens=TokenTotals(
            turns=figures["usage_turns"],
            unknown=figures["generation"] - figures["usage_turns"],
            inconsistent=figures["inconsistent"],
            input=figures["input"],
            cached=figures["cached"],
            cache_write=figures["cache_write"] if figures["write_turns"] else None,
            output=figures["output"],
            reasoning=figures["reasoning"],
        ),
        priced=figures["priced"],
        nano_usd=figures["cost"],
    )


def _bucketed(
    engine: Engine, view: Filter, edges: Sequence[int], fold: read.Fold
) -> list[list[Cell]]:
    buckets: list[list[Cell]] = [[] for _ in edges[1:]]
    held = _clip(view, edges)
    if held is None:
        return buckets
    with reading(engine) as connection:
        for bucket, cell in read.cells(connection, held, edges, fold):
            buckets[bucket].append(cell)
    return buckets


def _clip(view: Filter, edges: Sequence[int]) -> Filter | None:
    """The filter within the edges; None where they leave nothing."""
    if len(edges) < 2 or any(left > right for left, right in pairwise(edges)):
        raise ValueError("edges are at least two ascending instants")
    start, end = max(view.start, edges[0]), min(view.end, edges[-1])
    return replace(view, start=start, end=end) if start < end else None
