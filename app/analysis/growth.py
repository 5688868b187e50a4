"""Why more input was read anew than in the time before, or less. Pure.

What no cache served is the turns, times the input of a turn, times the share that was not cached.
So its growth is the product of theirs, and the greatest of the three says what to look at.
"""

from __future__ import annotations

from typing import NamedTuple

from app.analysis.trend import KNOWN, LEAST
from app.ledger.cells import TokenTotals


class Growth(NamedTuple):
    """So many times what it was before: 1 is the same, 2 twice as much."""

    non_cached: float
    turns: float
    """Turns whose usage is known."""
    input_per_turn: float
    non_cached_share: float


def growth(now: TokenTotals, before: TokenTotals) -> Growth | None:
    """None where one of the two has too few turns to tell of, knows the usage of too few of them,
    or had nothing to read anew."""
    for one in (now, before):
        if one.turns < max(LEAST, KNOWN * (one.turns + one.unknown)) or one.non_cached <= 0:
            return None
    whole = now.non_cached / before.non_cached
    turns, tokens = now.turns / before.turns, now.input / before.input
    return Growth(whole, turns, tokens / turns, whole / tokens)
