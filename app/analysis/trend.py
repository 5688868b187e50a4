"""Whether a figure is higher or lower than in the time before, or neither can be told.

A difference that chance explains is no trend, and neither is one of a few turns. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from app.analysis.continuity import Share, wilson
from app.ledger.rollups.distribution import Distribution

LEAST = 30
"""Turns of which a trend is told, in each of the two times."""
KNOWN = 0.9
"""A sum is compared where it is of at least this share of the turns, in each of the two times."""
LEVEL = 0.05
"""Sums that differ by less, of the earlier one, are about the same."""
LEVEL_POINTS = 0.01
"""The same of ratios of tokens, which a few large turns sway."""


class Direction(StrEnum):
    UP = "up"
    DOWN = "down"
    LEVEL = "level"


class Lack(StrEnum):
    """Why there is no trend."""

    FEW = "few"
    """One of the two has fewer than ``LEAST`` turns to tell of."""
    UNKNOWN = "unknown"
    """One of the two lacks too many turns to be compared."""


@dataclass(frozen=True, slots=True)
class Trend:
    now: float | None
    before: float | None
    change: float | None = None
    """Of ratios the difference; else a share of the earlier figure, None where that is 0."""
    direction: Direction | None = None
    better: bool | None = None
    """None where it is level, and of figures that are neither good nor bad."""
    lack: Lack | None = None


def of_rate(now: Share, before: Share, *, rises_well: bool) -> Trend:
    """Newcombe's interval of the difference, from two Wilson intervals, decides on level."""
    if now.rate is None or before.rate is None or min(now.whole, before.whole) < LEAST:
        return Trend(now.rate, before.rate, lack=Lack.FEW)
    change = now.rate - before.rate
    low, high = wilson(now.part, now.whole)
    low_before, high_before = wilson(before.part, before.whole)
    down, up = (
        (now.rate - low, high_before - before.rate),
        (high - now.rate, before.rate - low_before),
    )
    level = change - math.hypot(*down) <= 0 <= change + math.hypot(*up)
    return _trend(now.rate, before.rate, change, level, rises_well=rises_well)


def of_ratio(
    now: float | None, before: float | None, turns: tuple[int, int], *, rises_well: bool
) -> Trend:
    """Of ratios of tokens; ``turns`` are those they are of, now and before."""
    if now is None or before is None or min(turns) < LEAST:
        return Trend(now, before, lack=Lack.FEW)
    change = now - before
    return _trend(now, before, change, abs(change) < LEVEL_POINTS, rises_well=rises_well)


def of_sum(now: float, before: float, known: tuple[Share, Share]) -> Trend:
    """Of what is neither good nor bad; ``known`` are the turns summed of all, now and before."""
    if min(share.part for share in known) < LEAST:
        return Trend(now, before, lack=Lack.FEW)
    if any((share.rate or 0.0) < KNOWN for share in known):
        return Trend(now, before, lack=Lack.UNKNOWN)
    if not before:
        return Trend(now, before, None, Direction.UP if now else Direction.LEVEL)
    change = now / before - 1
    return _trend(now, before, change, abs(change) < LEVEL, rises_well=None)


def of_median(now: Distribution | None, before: Distribution | None) -> Trend:
    """Of times, which fall well. Level where the intervals of 95 % of the two medians meet."""
    median, earlier = _percentile(now, 50), _percentile(before, 50)
    if now is None or before is None or median is None or earlier is None:
        return Trend(median, earlier, lack=Lack.FEW)
    if min(now.samples, before.samples) < LEAST:
        return Trend(median, earlier, lack=Lack.FEW)
    change = median / earlier - 1
    rises = median > earlier
    lower, higher = (before, now) if rises else (now, before)
    # By the ranks that a binomial of one half reaches.
    top = _percentile(lower, 50 + 98 / math.sqrt(lower.samples))
    bottom = _percentile(higher, 50 - 98 / math.sqrt(higher.samples))
    level = top is not None and bottom is not None and bottom <= top
    return _trend(median, earlier, change, level, rises_well=False)


def _percentile(times: Distribution | None, percent: float) -> float | None:
    return None if times is None else times.percentile(percent)


def _trend(
    now: float, before: float, change: float, level: bool, *, rises_well: bool | None
) -> Trend:
    if level or now == before:
        return Trend(now, before, change, Direction.LEVEL)
    rises = now > before
    better = None if rises_well is None else rises == rises_well
    return Trend(now, before, change, Direction.UP if rises else Direction.DOWN, better)
