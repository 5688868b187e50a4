"""How much of each session was continued, in a string.

It has pairs of eight bytes: a share (in its upper half how many turns of known mode there were, in
the lower one how many of them were continued), and how many sessions have it. Strings one after
the other are the sessions together.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

Share = tuple[int, int]
"""Turns that were continued, and turns of known mode."""
_ENTRY = "Q"
_LOWER = 0xFFFFFFFF


def stored_shares(shares: Mapping[Share, int]) -> bytes:
    """Of each share, how many sessions have it."""
    return _stored({known << 32 | part: number for (part, known), number in shares.items()})


def count_shares(stored: bytes) -> Counter[Share]:
    """How many sessions have each share."""
    return Counter({split(share): number for share, number in _counts(stored).items()})


def split(share: int) -> Share:
    """A share as it stands in a string."""
    return share & _LOWER, share >> 32


def summed_shares(parts: Sequence[bytes]) -> bytes:
    """Strings together, as one that is no longer than need be."""
    return _stored(_counts(b"".join(parts))) if len(parts) > 1 else b"".join(parts)


def _stored(counts: Mapping[int, int]) -> bytes:
    entries = array(_ENTRY, chain.from_iterable(sorted(counts.items())))
    if sys.byteorder == "big":
        entries.byteswap()
    return entries.tobytes()


def _counts(stored: bytes) -> Mapping[int, int]:
    entries = array(_ENTRY)
    entries.frombytes(stored)
    if sys.byteorder == "big":
        entries.byteswap()
    counts: defaultdict[int, int] = defaultdict(int)
    for share, number in zip(entries[::2], entries[1::2], strict=True):
        counts[share] += number
    return counts
