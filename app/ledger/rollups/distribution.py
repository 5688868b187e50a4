"""How long things took, in so few numbers that those of a month add up in an instant.

A distribution counts its samples in buckets whose bounds grow by the factor ``GAMMA``, so that any
percentile is known to within one per cent of itself. Distributions add and subtract exactly: that
of a window is that of its parts together, in whatever order they came.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter
from collections.abc import Iterable

GAMMA = 1.02
_PER_BUCKET = math.log(GAMMA)
_LEAST_MS = 1.0
"""Samples up to this long share the bucket 0; so short a time is not worth telling apart."""
_MOST = 2_000
"""The last bucket; it begins beyond any number of milliseconds that a turn could take."""
_ENTRY = "I"
"""Two of these per bucket that has samples: its number, and how many. Four bytes each, as stored:
little-endian."""


class Distribution:
    """Counts of samples, in milliseconds."""

    __slots__ = ("_counts",)

    def __init__(self, samples: Iterable[float] = ()) -> None:
        self._counts: Counter[int] = Counter(map(_bucket, samples))

    @classmethod
    def read(cls, stored: bytes) -> Distribution:
        entries = array(_ENTRY)
        entries.frombytes(stored)
        if sys.byteorder == "big":
            entries.byteswap()
        made = cls()
        made._counts.update(dict(zip(entries[::2], entries[1::2], strict=True)))
        return made

    def stored(self) -> bytes:
        entries = array(_ENTRY)
        for bucket, count in sorted(self._counts.items()):
            entries.extend((bucket, count))
        if sys.byteorder == "big":
            entries.byteswap()
        return entries.tobytes()

    def add(self, other: Distribution) -> None:
        self._counts.update(other._counts)

    def subtract(self, other: Distribution) -> None:
        """Take away samples that were added before. Raises ``ValueError`` for others."""
        for bucket, count in other._counts.items():
            left = self._counts[bucket] - count
            if left < 0:
                raise ValueError("samples are taken away that were never added")
            if left:
                self._counts[bucket] = left
            else:
                del self._counts[bucket]

    @property
    def samples(self) -> int:
        return self._counts.total()

    def percentile(self, percent: float) -> float | None:
        """The value that ``percent`` of all samples do not exceed (nearest rank), in milliseconds.

        None without samples; within one per cent of the exact value above one millisecond.
        """
        if not self._counts:
            return None
        # Rounded first: 0.95 * 20 is 19.000000000000004 in floating point.
        rank = max(1, math.ceil(round(self.samples * percent / 100, 9)))
        passed = 0
        for bucket in sorted(self._counts):
            passed += self._counts[bucket]
            if passed >= rank:
                return _value(bucket)
        raise AssertionError("a rank beyond all samples")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribution) and self._counts == other._counts

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Distribution({dict(sorted(self._counts.items()))})"


def _bucket(sample: float) -> int:
    if sample <= _LEAST_MS:
        return 0
    return min(_MOST, max(1, math.ceil(math.log(sample) / _PER_BUCKET)))


def _value(bucket: int) -> float:
    """The value from which no sample of the bucket is further away, in proportion, than another."""
    if bucket == 0:
        return _LEAST_MS
    return 2 * GAMMA**bucket / (GAMMA + 1)
