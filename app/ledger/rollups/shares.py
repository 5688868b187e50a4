"""How much of each session was continued, in a string.

It has pairs of eight bytes: a share (in its upper half how many turns of known mode there were, in
the lower one how many of them were continued), and how many sessions have it. Strings one after
the other are the sessions together.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping

Share = tuple[int, int]
"""Turns that were continued, and turns of known mode."""
_ENTRY = "Q"
_LOWER = 0xFFFFFFFF


def stored_shares(shares: Mapping[Share, int]) -> bytes:
    """Of each share, how many sessions have it."""
    entries = array(_ENTRY)
    for (incremental, known), number in sorted(shares.items()):
        entries.append(known << 32 | incremental)
        entries.append(number)
    if sys.byteorder == "big":
        entries.byteswap()
    return entries.tobytes()


def count_shares(stored: bytes) -> Counter[Share]:
    """How many sessions have each share."""
    entries = array(_ENTRY)
    entries.frombytes(stored)
    if sys.byteorder == "big":
        entries.byteswap()
    counts: defaultdict[int, int] = defaultdict(int)
    for share, number in zip(entries[::2], entries[1::2], strict=True):
        counts[share] += number
    return Counter({(share & _LOWER, share >> 32): number for share, number in counts.items()})
