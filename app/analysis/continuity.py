"""How much of the work was continued, and where it suddenly was not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SPIKE_MINIMUM = 3
"""Mismatches that a bucket needs before it can be a spike: two may be chance in any traffic."""
SPIKE_Z = 3.0
"""Standard deviations of the Wilson bound. With about 100 buckets a page, the usual 1.96 would
mark two or three buckets of a perfectly steady ledger; 3.0 marks one in seven pages."""


@dataclass(frozen=True, slots=True)
class Share:
    """``part`` of ``whole``, both counts of turns."""

    part: int
    whole: int

    @property
    def rate(self) -> float | None:
        return rate(self.part, self.whole)


@dataclass(frozen=True, slots=True)
class ResidencyBin:
    """Sessions whose incremental rate lies in ``[low, high)``; the last bin is exactly 1."""

    label: str
    low: float
    high: float
    sessions: int
    single: int
    """Those of them with only one generation turn, which had nothing to continue."""


def rate(part: int, whole: int) -> float | None:
    """``part / whole``; None, not 0, of nothing."""
    return part / whole if whole else None


def wilson(part: int, whole: int, z: float = 1.96) -> tuple[float, float]:
    """The Wilson score interval of a proportion; ``(0, 1)`` of nothing."""
    if not whole:
        return 0.0, 1.0
    p = part / whole
    scale = 1 + z * z / whole
    centre = (p + z * z / (2 * whole)) / scale
    spread = z / scale * math.sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole))
    # At the edges the two are equal, but for the rounding: 0 of 11 must not prove more than 0.
    low = max(0.0, centre - spread) if part else 0.0
    high = min(1.0, centre + spread) if part < whole else 1.0
    return low, high


def spikes(buckets: Sequence[Share]) -> list[bool]:
    """Which buckets have a mismatch rate that chance does not explain.

    A bucket is a spike when it has at least ``SPIKE_MINIMUM`` mismatches and the lower Wilson
    bound of its rate (z = ``SPIKE_Z``) lies above the rate of *all other buckets* together. The
    bucket itself is left out of the comparison, so that one huge spike does not hide behind an
    average that it has raised. Without eligible turns elsewhere there is nothing to compare with,
    and nothing is marked.
    """
    part = sum(bucket.part for bucket in buckets)
    whole = sum(bucket.whole for bucket in buckets)
    marked: list[bool] = []
    for bucket in buckets:
        elsewhere = rate(part - bucket.part, whole - bucket.whole)
        marked.append(
            elsewhere is not None
            and bucket.part >= SPIKE_MINIMUM
            and wilson(bucket.part, bucket.whole, SPIKE_Z)[0] > elsewhere
        )
    return marked


def residency(sessions: Iterable[Share]) -> list[ResidencyBin]:
    """Sessions by the share of their generation turns that was incremental.

    Bins: none at all, then tenths, then all of them. Sessions without a turn of known mode are
    left out: their rate is unknown.
    """
    bounds = [(f"{ten * 10}–{ten * 10 + 10} %", ten / 10, (ten + 1) / 10) for ten in range(10)]
    bounds = [("0 %", 0.0, 0.0), (f">{bounds[0][0]}", *bounds[0][1:]), *bounds[1:]]
    bounds.append(("100 %", 1.0, 1.0))
    counts = [0] * len(bounds)
    singles = [0] * len(bounds)
    for session in sessions:
        if not session.whole:
            continue
        if session.part >= session.whole:
            place = len(bounds) - 1
        elif not session.part:
            place = 0
        else:
            place = 1 + session.part * 10 // session.whole  # in integers: 0.3 is not 3/10
        counts[place] += 1
        singles[place] += session.whole == 1
    return [
        ResidencyBin(label, low, high, count, single)
        for (label, low, high), count, single in zip(bounds, counts, singles, strict=True)
    ]
