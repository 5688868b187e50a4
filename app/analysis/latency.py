"""Time to first token: percentiles of the samples at hand.

Percentiles are nearest-rank: the smallest sample that at least ``q`` of all samples do not
exceed. Those of few samples, as alerts have them, are exact; those of a ``Distribution`` are within
one per cent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.ledger.rollups.distribution import Distribution

FEW_SAMPLES = 20
"""Below this many samples the 95th percentile is just the largest of them; pages say so."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds."""

    samples: int
    median_ms: float
    p95_ms: float
    p99_ms: float

    @property
    def few(self) -> bool:
        return self.samples < FEW_SAMPLES


def percentile(ordered: Sequence[float], q: float) -> float | None:
    """The nearest-rank percentile of ascending samples, 0 < q ≤ 1; None without samples."""
    if not 0 < q <= 1:
        raise ValueError(f"a percentile lies above 0 and at most at 1, not at {q}")
    if not ordered:
        return None
    # q * n is rounded first: 0.95 * 20 is 19.000000000000004 in floating point.
    rank = math.ceil(round(q * len(ordered), 9))
    return ordered[max(rank, 1) - 1]


def summarize(times: Distribution) -> Latency | None:
    """Median, 95th and 99th percentile, or None where nothing was measured."""
    median, p95, p99 = map(times.percentile, (50, 95, 99))
    if median is None or p95 is None or p99 is None:
        return None
    # More digits than a distribution knows would only look exact.
    return Latency(times.samples, *(round(value, 3) for value in (median, p95, p99)))


def by_mode(times: Mapping[str | None, Distribution]) -> dict[str | None, Latency]:
    """One ``Latency`` per mode that has samples; the mode None is unknown."""
    found = {mode: summarize(values) for mode, values in times.items()}
    return {mode: latency for mode, latency in found.items() if latency is not None}
