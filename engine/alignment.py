"""Where two transcripts that have parted meet again: what is gone, and what stands in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Raw

from engine import items
from engine.chain import HeldItem

LOOK_AHEAD = 256
"""How many items of either side are searched; evidence may cost no more than a reading."""
_CANDIDATES = 32
_NOTHING = b""


@dataclass(frozen=True, slots=True)
class Alignment:
    """``gone`` items of the baseline make way for ``new`` ones of the request; then both go on."""

    gone: int
    new: int
    met: bool = True
    """They meet again; if not, ``gone`` is all the rest, and ``new`` is not known (0)."""
    further: bool = False
    """They part once more after that."""
    reordered: bool = False
    """What stands there are the same items in another order."""


class _Sides:
    def __init__(self, before: Sequence[HeldItem], now: Sequence[Raw]) -> None:
        self.before, self.now = before[:LOOK_AHEAD], now[:LOOK_AHEAD]
        self.held = [item.echo_key[0] for item in self.before]
        self.sent = [_digest(raw) for raw in self.now]
        self.complete = len(self.before) == len(before)

    def equal(self, i: int, j: int) -> bool:
        return self.before[i].difference(self.now[j]) is None

    def ends_equal(self, i: int, j: int) -> bool:
        """Whether from here on the request repeats the baseline, as far as one looks."""
        rest = len(self.before) - i
        sent = len(self.now) - j
        if rest > sent and self.complete:
            return False
        return all(self.equal(i + k, j + k) for k in range(min(rest, sent)))


def align(before: Sequence[HeldItem], now: Sequence[Raw]) -> Alignment:
    """Both begin with the first item that differs; neither is empty."""
    sides = _Sides(before, now)
    if (block := _permuted(sides)) is not None:
        return Alignment(block, block, further=not sides.ends_equal(block, block), reordered=True)
    meeting = _meeting(sides)
    if meeting is None:
        return Alignment(len(before), 0, met=False)
    i, j = meeting
    further = not sides.ends_equal(i, j)
    if further and _swapped(sides):
        return Alignment(i, j, further=True, reordered=True)
    return Alignment(i, j, further=further)


def _digest(raw: Raw) -> bytes:
    try:
        return items.echo_key(items.parse(raw))[0]
    except (ValueError, RecursionError):
        return _NOTHING


def _permuted(sides: _Sides) -> int | None:
    """Length of the shortest block that holds the same items on both sides."""
    balance: Counter[bytes] = Counter()
    open_ = 0
    pairs = zip(sides.held, sides.sent, strict=False)
    for length, (one, other) in enumerate(pairs, start=1):
        for digest, step in ((one, 1), (other, -1)):
            open_ += abs(balance[digest] + step) - abs(balance[digest])
            balance[digest] += step
        if open_ == 0:
            # One item that only its digest calls equal (an id, a field of no type) is no order.
            return length if length > 1 else None
    return None


def _meeting(sides: _Sides) -> tuple[int, int] | None:
    """The nearest pair of equal items; one that stands only once on each side is believed first."""
    near = [(i, j) for i, j in ((1, 1), (1, 0), (0, 1)) if _within(sides, i, j)]
    for i, j in near:
        if sides.equal(i, j) and sides.ends_equal(i, j):
            return i, j
    counts, others = Counter(sides.held), Counter(sides.sent)
    places: dict[bytes, list[int]] = {}
    for j, digest in enumerate(sides.sent):
        places.setdefault(digest, []).append(j)
    pairs = sorted(
        (
            counts[digest] > 1 or others[digest] > 1,
            i + j,
            abs(i - j),
            i,
            j,
        )
        for i, digest in enumerate(sides.held)
        for j in places.get(digest, ())[:_CANDIDATES]
        if i + j > 0
    )
    found = next(((i, j) for *_, i, j in pairs[:_CANDIDATES] if sides.equal(i, j)), None)
    return found or next(((i, j) for i, j in near if sides.equal(i, j)), None)


def _within(sides: _Sides, i: int, j: int) -> bool:
    return i < len(sides.before) and j < len(sides.now)


def _swapped(sides: _Sides) -> bool:
    """What came first comes later now, and what comes first now came later."""
    returns = sides.sent[0] in sides.held[1:] and sides.sent[0] is not _NOTHING
    return returns and sides.held[0] in sides.sent[1:]
