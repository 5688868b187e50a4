"""Where two transcripts that have parted meet again: what is gone, and what stands in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from operator import ne

from msgspec import Raw

from engine import freezing, items
from engine.baseline import Behind
from engine.chain import HeldItem
from engine.freezing import Keys
from engine.held import Digested

LOOK_AHEAD = 256
"""How many items are searched where each has to be read to be known again in another spelling."""
_LONGEST = 1 << 18
"""Bytes of an item that is read for that."""
_CANDIDATES = 32
_OUTPUT = b"_output"
_NOTHING, _UNREAD = b"", b"-"
"""Keys that equal none of the other side: of the request, and of the baseline."""


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


def align(before: Sequence[HeldItem], now: Sequence[Raw], freeze: Keys = ()) -> Alignment:
    """Both begin with the first item that differs; neither is empty."""
    if not freeze and _goes_on_behind(before, now):
        return Alignment(1, 1)
    found = _spelled_alike(before, now, freeze) or _spelled_anew(before, now, freeze)
    if found is not None:
        return found
    return Alignment(len(before), 0, met=False)


def _goes_on_behind(before: Sequence[HeldItem], now: Sequence[Raw]) -> bool:
    """Whether all but the first item are there: it is what was edited, or replaced.

    No meeting is nearer; and the new one stands nowhere else, so that this is no other order.
    """
    echoes = (before if isinstance(before, Behind) else Behind(before, 0)).echoes()
    if echoes is None or not 1 < len(before) <= len(now):
        return False
    sent = now[: len(before)]
    others = [i for i, is_other in enumerate(map(ne, echoes, sent)) if is_other and i > 0]
    return sent[0] not in echoes and all(before[i].difference(sent[i]) is None for i in others)


def _spelled_alike(
    before: Sequence[HeldItem], now: Sequence[Raw], freeze: Keys
) -> Alignment | None:
    """By the bytes, which costs no reading: most clients send an item again as they sent it.

    Only what a policy ignores in outputs has to be taken out of them first.
    """
    held: list[Hashable]
    sent: list[Hashable]
    digested = next((item for item in before if isinstance(item, Digested)), None)
    if digested is None:
        held = [_spelling(item.echo, freeze, n) for n, item in enumerate(before)]
        sent = [_spelling(raw, freeze, n) for n, raw in enumerate(now)]
    else:
        of = digested.digest_of
        held = [i.digest if isinstance(i, Digested) else of(i.echo) for i in before]
        sent = [of(raw) for raw in now]
    return _Sides(before, now, held, sent, freeze).alignment()


def _spelling(raw: Raw, freeze: Keys, place: int) -> Hashable:
    text = bytes(raw)
    if freeze and place < LOOK_AHEAD and _OUTPUT in text and (seen := _digest(raw, freeze)):
        return seen
    return hash(text)


def _spelled_anew(before: Sequence[HeldItem], now: Sequence[Raw], freeze: Keys) -> Alignment | None:
    first, second = before[:LOOK_AHEAD], now[:LOOK_AHEAD]
    held = [_UNREAD if _is_unread(item) else _key_of(item, freeze) for item in first]
    sent = [_digest(raw, freeze) for raw in second]
    return _Sides(before, now, held, sent, freeze).alignment()


def _is_unread(item: HeldItem) -> bool:
    return not item.is_whole or _is_long(item.held)


def _key_of(item: HeldItem, freeze: Keys) -> bytes:
    # What the item knows of itself takes no account of a policy.
    return _digest(item.held, freeze) or _UNREAD if freeze else item.echo_key[0]


def _is_long(raw: Raw) -> bool:
    return len(raw) > _LONGEST


def _digest(raw: Raw, freeze: Keys) -> bytes:
    if _is_long(raw):
        return _NOTHING
    try:
        return items.echo_key(freezing.seen(items.parse(raw), freeze))[0]
    except (ValueError, RecursionError):
        return _NOTHING


@dataclass(frozen=True, slots=True)
class _Sides:
    before: Sequence[HeldItem]
    now: Sequence[Raw]
    held: Sequence[Hashable]
    """What each item of the baseline is looked up by; of the first ones at least."""
    sent: Sequence[Hashable]
    freeze: Keys

    def alignment(self) -> Alignment | None:
        """None where no item is found on the other side."""
        if (block := self._permuted()) is not None:
            further = not self._goes_on(block, block)
            return Alignment(block, block, further=further, reordered=True)
        meeting = self._meeting()
        if meeting is None:
            return None
        i, j = meeting
        further = not self._goes_on(i, j)
        return Alignment(i, j, further=further, reordered=further and self._swapped())

    def _equal(self, i: int, j: int) -> bool:
        return self.before[i].difference(self.now[j], self.freeze) is None

    def _goes_on(self, i: int, j: int) -> bool:
        """Whether from here on the request repeats the baseline to its end."""
        rest = len(self.before) - i
        return rest <= len(self.now) - j and all(self._equal(i + k, j + k) for k in range(rest))

    def _permuted(self) -> int | None:
        """Length of the shortest block that holds the same items on both sides."""
        balance: Counter[Hashable] = Counter()
        open_ = 0
        pairs = zip(self.held, self.sent, strict=False)
        for length, (one, other) in enumerate(pairs, start=1):
            for key, step in ((one, 1), (other, -1)):
                open_ += abs(balance[key] + step) - abs(balance[key])
                balance[key] += step
            if open_ == 0:
                # One item that only its key calls equal (it has another id) is no order.
                return length if length > 1 else None
        return None

    def _meeting(self) -> tuple[int, int] | None:
        """The nearest pair of equal items; one that stands but once on a side is believed first."""
        near = [(i, j) for i, j in ((1, 1), (1, 0), (0, 1)) if self._is_within(i, j)]
        for i, j in near:
            if self._equal(i, j) and self._goes_on(i, j):
                return i, j
        found = next((pair for pair in self._candidates() if self._equal(*pair)), None)
        if found is None:
            return next((pair for pair in near if self._equal(*pair)), None)
        i, j = found
        # Those before it may be equal too, in another spelling.
        while min(i, j) > 0 and i + j > 2 and self._equal(i - 1, j - 1):
            i, j = i - 1, j - 1
        return i, j

    def _candidates(self) -> list[tuple[int, int]]:
        counts, others = Counter(self.held), Counter(self.sent)
        places: dict[Hashable, list[int]] = {}
        for j, key in enumerate(self.sent):
            places.setdefault(key, []).append(j)
        pairs = sorted(
            (counts[key] > 1 or others[key] > 1, i + j, abs(i - j), i, j)
            for i, key in enumerate(self.held)
            for j in places.get(key, ())[:_CANDIDATES]
            if i + j > 0
        )
        return [(i, j) for *_, i, j in pairs[:_CANDIDATES]]

    def _is_within(self, i: int, j: int) -> bool:
        return i < len(self.before) and j < len(self.now)

    def _swapped(self) -> bool:
        """What came first comes later now, and what comes first now came later."""
        returns = self.sent[0] in self.held[1:] and self.sent[0] != _NOTHING
        return returns and self.held[0] in self.sent[1:]
