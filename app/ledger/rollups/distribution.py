"""How long things took, in so few numbers that those of a month add up in an instant.

A distribution counts its samples in buckets whose bounds grow by the factor ``GAMMA``, so that any
percentile is known to within one per cent of itself. Distributions add and subtract exactly: that
of a window is that of its parts together, in whatever order they came.

Stored, it is a string of changes: a bucket, and by how much its count grew or shrank. Two stored
distributions one after the other are their sum, so that a database adds by appending.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

GAMMA = 1.02
_PER_BUCKET = math.log(GAMMA)
_LEAST_MS = 1.0
"""Samples up to this long share the bucket 0; so short a time is not worth telling apart."""
_MOST = 2_000
"""The last bucket; it begins beyond any number of milliseconds that a turn could take."""
_ENTRY = "i"
"""One change, four bytes, little-endian as stored: the bucket in the lower half, and in the upper
one the growth, from -32,768 to 32,767."""
_HALF = "h"
_GREATEST = 32_767
_MANY = 2_000
"""Bytes of changes."""


class Distribution:
    """Counts of samples, in milliseconds."""

    __slots__ = ("_counts",)

    def __init__(self, samples: Iterable[float] = ()) -> None:
        self._counts: dict[int, int] = dict(Counter(map(bucket_of, samples)))

    @classmethod
    def read(cls, stored: bytes, less: bytes = b"") -> Distribution:
        """What is stored without what is in ``less``, which is stored alike.

        Raises ``ValueError`` where a count is below zero.
        """
        made = cls()
        made._counts = _counts_of(stored, less)
        return made

    def stored(self) -> bytes:
        return stored_counts(self._counts)

    def add(self, other: Distribution) -> None:
        counts = self._counts
        for bucket, count in other._counts.items():
            counts[bucket] = counts.get(bucket, 0) + count

    @classmethod
    def whole(cls, parts: Iterable[Distribution]) -> Distribution:
        """All parts together."""
        made = cls()
        for part in parts:
            made.add(part)
        return made

    @property
    def samples(self) -> int:
        return sum(self._counts.values())

    def percentile(self, percent: float) -> float | None:
        """The value that ``percent`` of all samples do not exceed (nearest rank), in milliseconds.

        None without samples; within one per cent of the exact value above one millisecond.
        """
        if not 0 < percent <= 100:
            raise ValueError(f"a percentile lies above 0 and at most at 100, not at {percent}")
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

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribution) and self._counts == other._counts

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Distribution({dict(sorted(self._counts.items()))})"


def bucket_of(sample: float) -> int:
    """The bucket of a time in milliseconds."""
    if sample <= _LEAST_MS:
        return 0
    bucket = math.ceil(math.log(sample) / _PER_BUCKET) or 1
    return min(_MOST, bucket)


def stored_counts(counts: Mapping[int, int]) -> bytes:
    """Changes of counts by bucket, as they are stored; they may be below zero."""
    changes = [(bucket, count) for bucket, count in sorted(counts.items()) if count]
    try:
        entries = array(_ENTRY, [bucket | count << 16 for bucket, count in changes])
    except OverflowError:
        entries = array(_ENTRY, [bucket | count << 16 for bucket, count in _cut(changes)])
    if sys.byteorder == "big":
        entries.byteswap()
    return entries.tobytes()


def _cut(changes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same changes, in steps that can be stored."""
    steps = []
    for bucket, count in changes:
        left = count
        while left:
            step = max(-_GREATEST, min(_GREATEST, left))
            steps.append((bucket, step))
            left -= step
    return steps


def read_counts(stored: bytes) -> Counter[int]:
    """What all the changes amount to; buckets whose count is zero are left out."""
    return Counter(_counts_of(stored))


def _counts_of(stored: bytes, less: bytes = b"") -> dict[int, int]:
    changes, taken = _changes(stored), _changes(less)
    counts: Any = defaultdict(int)
    if many := len(stored) >= _MANY:
        # A list, from which zeros are left out in one go, is quicker then.
        counts = [0] * (max(max(part, default=-1) for part in (changes[0], taken[0])) + 1)
    for bucket, growth in zip(*changes, strict=True):
        counts[bucket] += growth
    for bucket, growth in zip(*taken, strict=True):
        counts[bucket] -= growth
    if min(counts if many else counts.values(), default=0) < 0:
        raise ValueError("samples were taken away that were never added")
    if many:
        return dict(zip(compress(range(len(counts)), counts), filter(None, counts), strict=True))
    return {bucket: count for bucket, count in counts.items() if count}


def _changes(stored: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Buckets, and by how much each grew."""
    halves = array(_HALF)
    halves.frombytes(stored)
    if sys.byteorder == "big":
        halves.byteswap()
    return halves[::2], halves[1::2]


def _value(bucket: int) -> float:
    """The value from which no sample of the bucket is further away, in proportion, than another."""
    if bucket == 0:
        return _LEAST_MS
    return 2 * GAMMA**bucket / (GAMMA + 1)
