"""The figures of a filtered view as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Engine

from app.ledger.cells import Cell, Continuity, Cost, TokenTotals
from app.ledger.database import reading
from app.ledger.filters import CACHE_CLASSES, UNKNOWN, Filter
from app.ledger.rollups import read, sessions
from app.ledger.rollups.distribution import Distribution
from engine.model import Mode, Status

ERRORS = (Status.FAILED, Status.ERROR, Status.RATE_LIMITED, Status.REFUSED)
"""Statuses of turns that failed, ended in an error, or were refused."""


@dataclass(frozen=True, slots=True)
class ReasonCount:
    reason: str | None
    turns: int
    eligible: int


@dataclass(frozen=True, slots=True)
class Summary:
    """``total``, ``by_kind``, ``by_status``, ``sessions`` and ``cost`` count every row of the view;
    everything else counts generation turns (docs/ledger.md, "Rates")."""

    total: int
    sessions: int
    by_kind: Mapping[str, int]
    by_status: Mapping[str, int]
    continuity: Continuity
    modes: tuple[tuple[str | None, int], ...]
    """Modes that occur, in the order of ``Mode``, unknown last."""
    reasons: tuple[ReasonCount, ...]
    """Most frequent first."""
    tokens: TokenTotals
    cost: Cost
    cache_by_wire: Mapping[str, Mapping[str, int]]
    """``incremental``, ``full`` and ``unknown`` (most logs name no mode), each by cache class."""
    ttft: Mapping[str | None, Distribution]
    """Times to first token by mode, where there are any."""
    cells: tuple[Cell, ...] = field(compare=False, repr=False)
    """What all counts but that of sessions are folded from."""

    @property
    def errors(self) -> int:
        """Turns that failed, ended in an error, or were refused. A client that left is none."""
        return sum(self.by_status.get(status, 0) for status in ERRORS)

    @property
    def client_closed(self) -> int:
        return self.by_status.get(Status.CLIENT_CLOSED, 0)

    @property
    def error_rate(self) -> float | None:
        """Errors of the turns whose client did not leave."""
        whole = self.total - self.client_closed
        return self.errors / whole if whole else None


def summarize(engine: Engine, view: Filter) -> Summary:
    edges = [view.start, view.end]
    with reading(engine) as connection:
        cells = [cell for _, cell in read.cells(connection, view, edges)]
        session_count = sessions.count(connection, view)
        (ttft,) = read.ttft(connection, view, edges)
    return Summary(
        total=sum(cell.turns for cell in cells),
        sessions=session_count,
        by_kind=_counted(cells, "kind"),
        by_status=_counted(cells, "status"),
        continuity=Continuity.of(cells),
        modes=_modes(cells),
        reasons=_reasons(cells),
        tokens=TokenTotals.of(cells),
        cost=Cost.of(cells),
        cache_by_wire=_cache_by_wire(cells),
        ttft=ttft,
        cells=tuple(cells),
    )


def _counted(cells: Sequence[Cell], name: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for cell in cells:
        counts[getattr(cell, name)] += cell.turns
    return dict(counts.most_common())


def _modes(cells: Sequence[Cell]) -> tuple[tuple[str | None, int], ...]:
    counts: Counter[str | None] = Counter()
    for cell in cells:
        if cell.generation:
            counts[cell.mode] += cell.turns
    order = [mode.value for mode in Mode]
    last = len(order)

    def place(mode: str | None) -> tuple[int, str]:
        known = order.index(mode) if mode in order else last
        return (last + 1, "") if mode is None else (known, mode)

    return tuple((mode, counts[mode]) for mode in sorted(counts, key=place))


def _reasons(cells: Sequence[Cell]) -> tuple[ReasonCount, ...]:
    counts: Counter[str | None] = Counter()
    eligible: Counter[str | None] = Counter()
    for cell in cells:
        if cell.generation:
            counts[cell.reason] += cell.turns
            eligible[cell.reason] += cell.turns if cell.eligible else 0
    ordered = sorted(counts, key=lambda reason: (-counts[reason], reason or ""))
    return tuple(ReasonCount(reason, counts[reason], eligible[reason]) for reason in ordered)


def _cache_by_wire(cells: Sequence[Cell]) -> dict[str, dict[str, int]]:
    table = {wire: dict.fromkeys(CACHE_CLASSES, 0) for wire in ("incremental", "full", UNKNOWN)}
    for cell in cells:
        if cell.generation:
            wire = UNKNOWN if not cell.known else "incremental" if cell.incremental else "full"
            table[wire][cell.cache] += cell.turns
    return table
