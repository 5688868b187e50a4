"""What a filter form offers: the values that occur in a window, with how many rows have them.

Those that sums tell apart are counted from sums and the rows at the edges, as figures are; of
verdicts only rows know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, cast, func, select

from app.ledger.conditions import COLUMN_OF, cache_class, where
from app.ledger.filters import Filter, none_of
from app.ledger.models import turns
from app.ledger.rollups import sessions, tables
from app.ledger.rollups.contribution import LEVELS, Key
from app.ledger.rollups.plan import Span
from app.ledger.rollups.read import CELLS, in_stretches, planned

c, k, s = turns.c, tables.keys.c, tables.cells.c
LISTED = (
    "model",
    "upstream",
    "client",
    "session",
    "mode",
    "reason",
    "status",
    "kind",
    "source",
    "tenant",
    "cache",
    "verdict",
)
"""The dimensions that a filter form offers values of."""
_SUMMED = tuple(name for name in LISTED if name in Key._fields)


@dataclass(frozen=True, slots=True)
class DimensionValue:
    value: str
    """As it goes into a filter; ``unknown`` for rows without one."""
    label: str | None
    """The name behind a session's key."""
    turns: int


def dimensions(
    connection: Connection, view: Filter, *, limit: int = 100
) -> dict[str, tuple[DimensionValue, ...]]:
    """The values that occur in the window of a view, most frequent first, whatever else the view
    asks for: a form offers what could be chosen instead."""
    window = Filter(start=view.start, end=view.end, by=view.by)
    counted = _counted(connection, window)
    of_verdict = _grouped(connection, window, [c.cache_verdict])
    counted["verdict"] = Counter({value: number for (value,), number in of_verdict.items()})
    result: dict[str, tuple[DimensionValue, ...]] = {}
    for name in LISTED:
        if name == "session":
            result[name] = tuple(
                DimensionValue(one.session_key, one.session, one.sums[0])
                for one in sessions.sums(connection, window, limit)
            )
            continue
        found: Counter[str] = Counter()
        for value, number in counted[name].items():
            found[none_of(name) if value is None else value] += number
        first = sorted(found.items(), key=lambda one: (-one[1], one[0]))[:limit]
        result[name] = tuple(DimensionValue(value, None, number) for value, number in first)
    return result


def _counted(connection: Connection, window: Filter) -> dict[str, Counter[str | None]]:
    """How many rows have each value of what sums tell apart."""
    made = planned(connection, window, (), CELLS, LEVELS)
    of_row = [cache_class if name == "cache" else c[COLUMN_OF[name]] for name in _SUMMED]
    cells = _grouped(connection, window, of_row, made.rows)
    number = cast(func.sum(s.turns), BigInteger)
    for within in in_stretches(connection, tables.cells, made, s.detail == 1):
        query = (
            select(*(k[name] for name in _SUMMED), number)
            .join_from(tables.cells, tables.keys, s.key == k.id)
            .where(within)
            .group_by(k.id)
        )
        for *of_key, turns_ in connection.execute(query):
            cells[tuple(of_key)] += turns_
    found: dict[str, Counter[str | None]] = {name: Counter() for name in _SUMMED}
    for values, turns_ in cells.items():
        for name, value in zip(_SUMMED, values, strict=True):
            found[name][value] += turns_
    return found


def _grouped(
    connection: Connection,
    window: Filter,
    values: Sequence[ColumnElement[Any]],
    within: Sequence[Span] | None = None,
) -> Counter[tuple[str | None, ...]]:
    """How many rows of a window, or of some spans of time, have the same values."""
    if within is not None and not within:
        return Counter()
    labels = [value.label(f"listed_{number}") for number, value in enumerate(values)]
    query = (
        select(*labels, func.count())
        .where(where(window, within))
        .group_by(*(label.name for label in labels))
    )
    return Counter({tuple(found): number for *found, number in connection.execute(query)})
