"""The figures of the time before a view, as long as the view and with the same filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, Engine, func, select

from app.ledger.cells import Continuity, Cost, TokenTotals
from app.ledger.conditions import time_column
from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.rollups import read
from app.ledger.rollups import state as states
from app.ledger.rollups.contribution import HOUR
from app.ledger.rollups.distribution import Distribution

LONG = 6 * HOUR
"""Windows whose rows were deleted are widened by up to five minutes at each end: from here on that
does not matter to a comparison."""


class Gap(StrEnum):
    """Why the time before cannot be compared."""

    OPEN = "open"
    """The view itself is not over."""
    NOT_YET = "not_yet"
    """The ledger began within it, or after it."""
    DELETED = "deleted"
    """Rows of it were deleted, and their sums do not know the filter, or are gone, too."""


@dataclass(frozen=True, slots=True)
class Before:
    """Counts as in ``summary.Summary``; empty where there is a gap."""

    view: Filter
    gap: Gap | None
    continuity: Continuity
    tokens: TokenTotals
    cost: Cost
    ttft: Mapping[str | None, Distribution]


def before(engine: Engine, view: Filter, now: int) -> Before:
    """``now`` in epoch milliseconds."""
    earlier = view.before()
    edges = [earlier.start, earlier.end]
    with reading(engine) as connection:
        gap = Gap.OPEN if view.end > now else _gap(connection, earlier)
        cells = [] if gap else [cell for _, cell in read.cells(connection, earlier, edges)]
        (ttft,) = ({},) if gap else read.ttft(connection, earlier, edges)
    return Before(earlier, gap, Continuity.of(cells), TokenTotals.of(cells), Cost.of(cells), ttft)


def _gap(connection: Connection, earlier: Filter) -> Gap | None:
    state = states.read(connection)
    if state.rows_from is None:
        time = time_column(earlier.by)
        begin = connection.execute(select(func.min(time)).select_from(turns)).scalar()
        return Gap.NOT_YET if begin is None or begin > earlier.start else None
    if earlier.start >= state.rows_from:
        return None
    summed = read.serves(earlier, read.CELLS) and not state.missing
    kept = state.rollups_from is None or earlier.start >= state.rollups_from
    long = earlier.end - earlier.start >= LONG
    return None if summed and kept and long else Gap.DELETED
