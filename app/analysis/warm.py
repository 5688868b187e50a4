"""How long a session waits for its first token while its cache is warm, and how sure that is.

The interval of the median is distribution-free: between two of the sorted samples, as far from both
ends as leaves a chance of at least 95 % that the true median lies between them, whatever the
distribution. Five samples are too few for any two of them to do so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

AT_LEAST = 6
"""Samples."""
_MOST_EXACT = 1_000


class Warm(NamedTuple):
    """Milliseconds."""

    median: float
    low: float
    high: float


def warm_of(ordered: Sequence[float]) -> Warm | None:
    """Of ascending samples; None of too few."""
    number = len(ordered)
    if number < AT_LEAST:
        return None
    middle = (ordered[(number - 1) // 2] + ordered[number // 2]) / 2
    rank = rank_of(number)
    return Warm(middle, ordered[rank - 1], ordered[-rank])


@lru_cache(maxsize=4096)
def rank_of(number: int) -> int:
    """The rank, from both ends, of the samples that bound the interval (1 is the smallest)."""
    if number > _MOST_EXACT:
        return math.floor((number - 1.96 * math.sqrt(number)) / 2)
    rank, below, most = 0, 1, 2**number
    term = 1
    while below * 40 <= most:  # twice the tail is at most 5 %
        rank += 1
        term = term * (number - rank + 1) // rank
        below += term
    return rank
