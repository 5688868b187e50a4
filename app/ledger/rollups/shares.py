"""How much of each session was continued, in a string of eight bytes per session.

The upper half of an entry is how many turns of known mode there were, the lower half how many of
them were continued. Strings one after the other are the sessions together.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable

Share = tuple[int, int]
"""Turns that were continued, and turns of known mode."""
_ENTRY = "Q"
_LOWER = 0xFFFFFFFF


def stored_shares(shares: Iterable[Share]) -> bytes:
    """The same for the same shares, in whatever order they come."""
    entries = array(_ENTRY, sorted(known << 32 | incremental for incremental, known in shares))
    if sys.byteorder == "big":
        entries.byteswap()
    return entries.tobytes()


def count_shares(stored: bytes) -> Counter[Share]:
    """How many sessions have each share."""
    entries = array(_ENTRY)
    entries.frombytes(stored)
    if sys.byteorder == "big":
        entries.byteswap()
    return Counter(
        {(entry & _LOWER, entry >> 32): number for entry, number in Counter(entries).items()}
    )
