"""Rows counted by what tells them apart, and the figures that follow from the counts.

A cell is a group of rows of one kind, status, mode, reason, eligibility and cache class, with
its sums. Every figure on every page is folded from cells here, in one place, so that a rate means
the same everywhere (docs/ledger.md, "Rates"). Cells add up: those of a window are those of its
parts together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Label,
    Numeric,
    and_,
    case,
    cast,
    func,
    literal_column,
    select,
    type_coerce,
)

from app.ledger.conditions import SUCCEEDED, cache_class, where
from app.ledger.filters import Filter
from app.ledger.models import turns
from engine.model import Kind, Mode, Reason, UsageState

c = turns.c
INCREMENTAL = frozenset(mode.value for mode in Mode if mode.incremental)


@dataclass(frozen=True, slots=True)
class Cell:
    kind: str
    status: str
    mode: str | None
    reason: str | None
    marked_eligible: bool
    """The column ``eligible``; whether it counts, ``eligible`` says."""
    cache: str
    turns: int
    usage_turns: int
    """Turns whose input and cached tokens are known; all sums from here to ``cache_write`` are over
    them."""
    inconsistent: int
    """Those of them whose usage was cut to fit."""
    input: int
    cached: int
    write_turns: int
    cache_write: int
    output: int
    reasoning: int
    priced: int
    """Turns that have a price."""
    cost: int
    """Of these, in nano-dollars."""

    @property
    def generation(self) -> bool:
        """A generation that came to its end: what every rate counts."""
        return self.kind == Kind.GENERATION and self.status in SUCCEEDED

    @property
    def known(self) -> bool:
        """A generation turn whose mode is known."""
        return self.generation and self.mode is not None

    @property
    def incremental(self) -> bool:
        return self.generation and self.mode in INCREMENTAL

    @property
    def eligible(self) -> bool:
        """A generation turn of known mode that could have been continued."""
        return self.known and self.marked_eligible

    @property
    def broken(self) -> bool:
        return self.eligible and not self.incremental

    @property
    def mismatch(self) -> bool:
        return self.eligible and self.reason == Reason.PREFIX_MISMATCH


@dataclass(frozen=True, slots=True)
class Continuity:
    """Counts of generation turns. A rate is None where its denominator is 0."""

    generation: int = 0
    known: int = 0
    incremental: int = 0
    eligible: int = 0
    breaks: int = 0
    mismatches: int = 0

    @property
    def unknown(self) -> int:
        """Generation turns of unknown mode; they are in no rate."""
        return self.generation - self.known

    @property
    def incremental_rate(self) -> float | None:
        return _share(self.incremental, self.known)

    @property
    def break_rate(self) -> float | None:
        return _share(self.breaks, self.eligible)

    @property
    def mismatch_rate(self) -> float | None:
        return _share(self.mismatches, self.eligible)

    @classmethod
    def of(cls, cells: Iterable[Cell]) -> Continuity:
        counts = [0] * 6
        for cell in cells:
            flags = (
                cell.generation,
                cell.known,
                cell.incremental,
                cell.eligible,
                cell.broken,
                cell.mismatch,
            )
            for place, counted in enumerate(flags):
                if counted:
                    counts[place] += cell.turns
        return cls(*counts)


@dataclass(frozen=True, slots=True)
class TokenTotals:
    """Sums over generation turns whose input and cached tokens are known."""

    turns: int = 0
    unknown: int = 0
    """Generation turns whose input or cached tokens are unknown; they are in no sum."""
    inconsistent: int = 0
    """Of ``turns``, those whose usage was cut to fit."""
    input: int = 0
    cached: int = 0
    cache_write: int | None = None
    """None where no turn reported writes."""
    output: int = 0
    """Over all generation turns whose output is known."""
    reasoning: int = 0

    @property
    def non_cached(self) -> int:
        return self.input - self.cached

    @property
    def uncached(self) -> int | None:
        """Neither read from the cache nor written to it; None where no turn reported writes."""
        return None if self.cache_write is None else self.non_cached - self.cache_write

    @property
    def cached_ratio(self) -> float | None:
        """Σ cached / Σ input."""
        return _share(self.cached, self.input)

    @classmethod
    def of(cls, cells: Iterable[Cell]) -> TokenTotals:
        counted = [cell for cell in cells if cell.generation]
        writes = sum(cell.cache_write for cell in counted)
        return cls(
            turns=sum(cell.usage_turns for cell in counted),
            unknown=sum(cell.turns - cell.usage_turns for cell in counted),
            inconsistent=sum(cell.inconsistent for cell in counted),
            input=sum(cell.input for cell in counted),
            cached=sum(cell.cached for cell in counted),
            cache_write=writes if any(cell.write_turns for cell in counted) else None,
            output=sum(cell.output for cell in counted),
            reasoning=sum(cell.reasoning for cell in counted),
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """What all turns cost together at list prices, also those that are in no rate."""

    nano_usd: int = 0
    """Nano-dollars, of the turns that have a price."""
    priced: int = 0
    unpriced: int = 0
    """Turns that came to their end and have no price. Of those that did not, few cost anything."""

    @property
    def usd(self) -> Decimal | None:
        """None where no turn has a price."""
        return Decimal(self.nano_usd).scaleb(-9) if self.priced else None

    @classmethod
    def of(cls, cells: Iterable[Cell]) -> Cost:
        some = list(cells)
        return cls(
            nano_usd=sum(cell.cost for cell in some),
            priced=sum(cell.priced for cell in some),
            unpriced=sum(cell.turns - cell.priced for cell in some if cell.status in SUCCEEDED),
        )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


has_price = c.cost_usd.is_not(None)
nano_usd = cast(
    func.round(type_coerce(c.cost_usd, Numeric()) * literal_column("1000000000")), BigInteger
)
"""The cost of a row in nano-dollars; ``rows.nano`` in Python."""
known_usage = and_(c.input_tokens.is_not(None), c.cached_tokens.is_not(None))


def sum_of(column: ColumnElement[Any]) -> ColumnElement[int]:
    """Of no rows and of no values it is 0."""
    return cast(func.coalesce(func.sum(column), 0), BigInteger)


def _sum(column: ColumnElement[Any], condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, column))), 0)


# Grouped by their labels: PostgreSQL takes two expressions with parameters for two things.
_KEYS: tuple[Label[Any], ...] = (
    c.kind.label("cell_kind"),
    c.status.label("cell_status"),
    c.mode.label("cell_mode"),
    c.reason.label("cell_reason"),
    c.eligible.label("cell_eligible"),
    cache_class.label("cell_cache"),
)
_SUMS: tuple[ColumnElement[int], ...] = (
    func.count(),
    func.count().filter(known_usage),
    func.count().filter(known_usage, c.usage_state == UsageState.INCONSISTENT.value),
    _sum(c.input_tokens, known_usage),
    _sum(c.cached_tokens, known_usage),
    func.count().filter(known_usage, c.cache_write_tokens.is_not(None)),
    _sum(c.cache_write_tokens, known_usage),
    func.coalesce(func.sum(c.output_tokens), 0),
    func.coalesce(func.sum(c.reasoning_tokens), 0),
    func.count().filter(has_price),
    cast(func.coalesce(func.sum(nano_usd), 0), BigInteger),
)


def read_cells(
    connection: Connection,
    view: Filter,
    *,
    by: Sequence[Label[Any]] = (),
    also: Sequence[ColumnElement[Any]] = (),
    within: Sequence[tuple[int, int]] | None = None,
) -> list[tuple[tuple[Any, ...], Cell]]:
    """The cells of a filter, each preceded by the values of ``by`` and of the aggregates ``also``.

    ``by`` splits the cells further; the labels must not be names of columns. ``within`` are spans
    of time to read instead of the filter's window.
    """
    keys = (*by, *_KEYS)
    query = (
        select(*by, *also, *_KEYS, *_SUMS)
        .where(where(view, within))
        .group_by(*(key.name for key in keys))
    )
    lead = len(by) + len(also)
    return [(tuple(row[:lead]), Cell(*row[lead:])) for row in connection.execute(query)]
