"""Whether an agent's history, converted after a turn, holds what the provider holds.

Pure. A history that lost or changed something of the answer cannot be continued; it is better known
right after the turn than with the next one (DESIGN 9).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Raw

from engine.chain import HeldItem


class Recorded(NamedTuple):
    """One item of the recorded history. ``placeholder``: it fills in for an output to come."""

    raw: Raw
    placeholder: bool = False


def accounts_for(recorded: Iterable[Recorded], held: Sequence[HeldItem]) -> bool:
    """Whether the record begins with all held items, each of them the same.

    Placeholders that the provider does not hold are passed over: they stand for calls of the
    answer itself. What follows the last held item is the next turn's.
    """
    expected = iter(held)
    now = next(expected, None)
    for item in recorded:
        if now is None:
            break
        if now.difference(item.raw) is None:
            now = next(expected, None)
        elif not item.placeholder:
            return False
    return now is None
