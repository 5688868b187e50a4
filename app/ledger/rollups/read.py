"""Figures of a filter from the rollups, as far as they know what it asks for, else from the rows.

The figures are the same either way; which filters are served by what, docs/ledger.md tells.
All functions read several times and want one snapshot: ``database.reading``.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Label,
    Select,
    Table,
    and_,
    cast,
    false,
    func,
    or_,
    select,
)

from app.ledger import cells as row_cells
from app.ledger.cells import Cell
from app.ledger.conditions import (
    SUCCEEDED,
    cache_class,
    dimensions_of,
    generation,
    time_column,
    where,
)
from app.ledger.filters import UNKNOWN, Filter
from app.ledger.models import turns
from app.ledger.rollups import plan as plans
from app.ledger.rollups import state as states
from app.ledger.rollups import tables
from app.ledger.rollups.among import among
from app.ledger.rollups.contribution import LEVELS, SUMS
from app.ledger.rollups.distribution import Distribution
from app.ledger.rollups.plan import Plan, Span
from app.ledger.rollups.reaching import reach
from app.ledger.rollups.state import RollupState
from engine.model import Kind, Reason, Status

c = turns.c
CELLS = frozenset(
    {
        "model",
        "upstream",
        "tenant",
        "client",
        "mode",
        "reason",
        "eligible",
        "status",
        "kind",
        "source",
        "cache",
    }
)
"""The dimensions by which cells are told apart."""
TIMES = CELLS - {"reason", "eligible", "status"}
SESSIONS = frozenset({"model", "upstream", "tenant", "client", "source"})

FEW = 4
"""Up to so many spans are asked for each by itself, more as a list of starts."""
MANY = 1_000
"""A span of more stretches is always asked for by itself: one without end is no list."""


def serves(view: Filter, known: frozenset[str]) -> bool:
    """Whether rollups that tell these dimensions apart know what a filter asks for."""
    return view.by == "started" and view.q is None and {*view.include, *view.exclude} <= known


def planned(
    connection: Connection,
    view: Filter,
    edges: Sequence[int],
    known: frozenset[str],
    levels: Sequence[int],
    *,
    state: RollupState | None = None,
) -> Plan:
    """Where the figures of a filter come from; ``state`` is given by who has read it."""
    if not serves(view, known):
        return plans.only_rows(view.start, view.end, edges)
    state = state or states.read(connection)
    if state.missing:
        return plans.only_rows(view.start, view.end, edges)
    end = reach(connection, view, levels[0])
    edges = [end if view.end <= edge < end else edge for edge in edges]
    return plans.plan(view.start, end, edges, levels, state)


@dataclass(frozen=True, slots=True)
class Fold:
    """What of cells is wanted: the less, the fewer come from the database."""

    by: tuple[Label[Any], ...]
    sums: tuple[str, ...]
    where: tuple[ColumnElement[bool], ...]
    first: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    """From the values of ``by`` to the fields of ``Cell`` before ``turns``."""

    def cell(self, by: tuple[Any, ...], sums: Sequence[int]) -> Cell:
        known = dict(zip(self.sums, sums, strict=True))
        return Cell(*self.first(by), *(known.get(name, 0) for name in SUMS))


_k = tables.keys.c
_generation = (_k.kind == Kind.GENERATION.value, _k.status.in_(SUCCEEDED))


def _is_generation(
    mode: str | None, eligible: bool = False, reason: str | None = None
) -> tuple[Any, ...]:
    return (Kind.GENERATION.value, Status.COMPLETED.value, mode, reason, eligible, UNKNOWN)


ALL = Fold(
    by=(
        _k.kind.label("cell_kind"),
        _k.status.label("cell_status"),
        _k.mode.label("cell_mode"),
        _k.reason.label("cell_reason"),
        _k.eligible.label("cell_eligible"),
        _k.cache.label("cell_cache"),
    ),
    sums=SUMS,
    where=(),
    first=lambda by: by,
)
MODES = Fold(
    by=(_k.mode.label("cell_mode"),),
    sums=("turns",),
    where=_generation,
    first=lambda by: _is_generation(by[0]),
)
"""How many generation turns there are by mode."""
CONTINUITY = Fold(
    by=(
        _k.mode.label("cell_mode"),
        _k.eligible.label("cell_eligible"),
        func.coalesce(_k.reason == Reason.PREFIX_MISMATCH.value, false()).label("cell_parted"),
    ),
    sums=("turns",),
    where=_generation,
    first=lambda by: _is_generation(
        by[0], bool(by[1]), Reason.PREFIX_MISMATCH.value if by[2] else None
    ),
)
"""What ``Continuity`` counts."""
TOKENS = Fold(by=(), sums=SUMS, where=_generation, first=lambda _by: _is_generation(None))
"""What ``TokenTotals`` adds up."""


def cells(
    connection: Connection, view: Filter, edges: Sequence[int], fold: Fold = ALL
) -> list[tuple[int, Cell]]:
    """Cells by number of the bucket between two edges; one bucket may have several alike.

    They know what ``fold`` wants, and may know more.
    """
    made = planned(connection, view, edges, CELLS, LEVELS)
    found: list[tuple[int, Cell]] = []
    if made.rows:
        grid = Grid.of(time_column(view.by), made.edges)
        by = [grid.value.label("cell_grid")]
        rows = row_cells.read_cells(connection, view, by=by, within=made.rows)
        found += [(grid.bucket(place), cell) for (place,), cell in rows]
    grid = Grid.of(tables.cells.c.start, made.edges)
    width = len(fold.by) + 1
    for query in _cell_queries(connection, view, made, grid, fold):
        for row in connection.execute(query).all():
            found.append((grid.bucket(row[0]), fold.cell(row[1:width], row[width:])))
    return found


def _cell_queries(
    connection: Connection, view: Filter, made: Plan, grid: Grid, fold: Fold
) -> Iterable[Select[Any]]:
    s = tables.cells.c
    place = grid.value.label("cell_grid")
    sums = [cast(func.sum(s[name]), BigInteger) for name in fold.sums]
    detail = _detail(view, CELLS - SESSIONS)
    # Keys of the lesser detail have one name each for what all cells are told apart by.
    by = [_k.id] if fold is ALL and detail == 0 else [label.name for label in fold.by]
    for within in in_stretches(connection, tables.cells, made, s.detail == detail):
        yield (
            select(place, *fold.by, *sums)
            .join_from(tables.cells, tables.keys, s.key == _k.id)
            .where(within, *fold.where, *dimensions_of(view, key_column))
            .group_by("cell_grid", *by)
        )


def ttft(
    connection: Connection, view: Filter, edges: Sequence[int]
) -> list[dict[str | None, Distribution]]:
    """Times to first token of generation turns by mode, for each bucket between two edges."""
    result: list[dict[str | None, Distribution]] = [{} for _ in edges[1:]]
    for (bucket, mode), times in _ttft(connection, view, edges, ("mode",)).items():
        result[bucket][mode] = times
    return result


def ttft_by_cache(
    connection: Connection, view: Filter
) -> dict[tuple[str | None, str], Distribution]:
    """The same by mode and class of the cached share, for the window as a whole."""
    found = _ttft(connection, view, [view.start, view.end], ("mode", "cache"))
    return {(mode, cache): times for (_, mode, cache), times in found.items()}


_TOLD_APART = {"mode": c.mode, "cache": cache_class}


def _ttft(
    connection: Connection, view: Filter, edges: Sequence[int], by: tuple[str, ...]
) -> dict[tuple[Any, ...], Distribution]:
    """By number of the bucket and the dimensions of ``by``."""
    state = states.read(connection)
    made = planned(connection, view, edges, TIMES, LEVELS, state=state)
    samples: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    if made.rows:
        time = time_column(view.by)
        query = select(time, c.ttft_ms, *(_TOLD_APART[name] for name in by)).where(
            where(view, made.rows), generation, c.ttft_ms.is_not(None)
        )
        for instant, sample, *of in connection.execute(query).all():
            samples[_bucket(made.edges, instant), *of].append(sample)
    stored: dict[tuple[Any, ...], list[bytes]] = defaultdict(list)
    less: dict[tuple[Any, ...], list[bytes]] = defaultdict(list)
    near, far = plans.apart(made, LEVELS, state)
    uses = plans.uses(near, lambda start: _bucket(made.edges, start), LEVELS, state)
    read = plans.within(uses, far)
    t = tables.times.c
    detail = 1 if "cache" in by else _detail(view, frozenset({"mode", "kind"}))
    for within in in_stretches(connection, tables.times, read, t.detail == detail):
        found = (
            select(t.level, t.start, t.ttft, *(_k[name] for name in by))
            .join_from(tables.times, tables.keys, t.key == _k.id)
            .where(within, *dimensions_of(view, key_column))
        )
        for level, start, times, *of in connection.execute(found).all():
            for bucket, sign in uses.get((level, start)) or [(_bucket(made.edges, start), 1)]:
                (stored if sign > 0 else less)[bucket, *of].append(times)
    result: dict[tuple[Any, ...], Distribution] = {}
    for place in {*samples, *stored}:
        whole = Distribution.read(b"".join(stored.get(place, ())), b"".join(less.get(place, ())))
        if place in samples:
            whole.add(Distribution(samples[place]))
        if whole:
            result[place] = whole
    return result


def in_stretches(
    connection: Connection,
    table: Table,
    made: Plan,
    *further: ColumnElement[bool],
    few: bool = False,
) -> Iterable[ColumnElement[bool]]:
    """Conditions that select the stretches of a plan, each once; ``further`` apply to all.

    With ``few``, these leave so few that they are to be looked up by them: without statistics
    SQLite would read whole stretches, but not by an expression.
    """
    level: ColumnElement[int] = table.c.level + 0 if few else table.c.level
    start = table.c.start
    # With all conditions in each: so SQLite looks up each by the key.
    shared = () if few else further
    together = []
    for length, alone, starts in by_level(made):
        for first, end in alone:
            together.append(and_(*shared, level == length, start >= first, start < end))
        if starts:
            yield and_(*further, level == length, among(connection, start, starts))
    if together:
        yield and_(*further, or_(*together)) if few else or_(*together)


def by_level(made: Plan) -> Iterator[tuple[int, list[Span], list[int]]]:
    """Of each level of a plan, the spans to ask for each by itself, and the starts of what is in
    the others."""
    for level, spans in made.stretches.items():
        alone: list[Span] = []
        starts: list[int] = []
        for first, end in spans:
            if len(spans) <= FEW or end - first > MANY * level:
                alone.append((first, end))
            else:
                starts += range(first, end, level)
        yield level, alone, starts


def _detail(view: Filter, told_apart: frozenset[str]) -> int:
    """The lesser detail where it tells apart what a filter asks for."""
    return 0 if {*view.include, *view.exclude} <= told_apart else 1


def key_column(name: str) -> ColumnElement[Any]:
    """The column of a dimension that keys tell apart."""
    return _k[name]


def _bucket(edges: Sequence[int], instant: int) -> int:
    return min(max(bisect_right(edges, instant) - 1, 0), len(edges) - 2)


@dataclass(frozen=True)
class Grid:
    """A regular grid none of whose lines is crossed by an edge: grouping by it is one division,
    and each of its fields lies in one bucket."""

    value: ColumnElement[Any]
    base: int
    distance: int
    edges: Sequence[int]
    _known: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, time: ColumnElement[int], edges: Sequence[int]) -> Grid:
        """Its distance is the greatest that fits all edges but the outermost, which the window
        cuts anyway."""
        inner = edges[1:-1] or edges[:1]
        distance = math.gcd(*(right - left for left, right in pairwise(inner))) or (
            max(1, edges[-1] - edges[0])
        )
        # Begin a good deal before the first edge: division of negative numbers differs between
        # databases, and stretches may begin before it.
        base = inner[0] - (-(-(inner[0] - edges[0] + _SPARE) // distance)) * distance
        return cls((time - base) // distance, base, distance, edges)

    def bucket(self, place: int) -> int:
        """Which bucket a value of the grid lies in."""
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = self._bucket(place)
        return known

    def _bucket(self, place: int) -> int:
        # Any instant of the field will do that is within the edges.
        return _bucket(self.edges, max(self.base + place * self.distance, self.edges[0]))


_SPARE = 1_440 * 60_000
