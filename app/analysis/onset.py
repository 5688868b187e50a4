"""Since when a break is frequent, and what was new then. Pure.

The rate of a break is counted per turn, and breaks of one session come together. So they count once
a session and bucket; or, where it was there before, in units of the most that one session had in
one bucket until then. An onset is the stretch of buckets whose rate differs most from all before
it, by either count. It must be ``TIMES`` as high, and so high that the rate
before gives no stretch of the view as much, but with a probability of ``CHANCE`` (Chernoff's bound
on the share of the stretch, times the number of stretches that are tried).

What then distinguishes its breaks from the turns before is told by frequency alone: a suspect, not
a proof.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.analysis.breaks import divergence
from app.ledger.rows import TurnRow

TIMES = 2
CHANCE = 1e-4
KNOWN = 10
"""Sessions by bucket that have it: so many must there be that the most in one of them tells
something, or be expected where there are none that it is over."""
SESSIONS = 3
"""An onset is of so many sessions, or of all that there are."""
FIELDS: dict[str, str] = {
    "client_version": "client version",
    "gateway_version": "version of Warmline",
    "tools_digest": "set of tools",
    "instructions_digest": "instructions",
    "model": "model",
    "reasoning_effort": "reasoning effort",
    "service_tier": "service tier",
    "prompt_cache_key": "cache key",
}
"""What may have changed, and what it is called."""
SHARE = 0.5
"""A suspect has at least this share of the breaks."""
MOST = 5
"""Suspects."""


@dataclass(frozen=True, slots=True)
class Onset:
    """Buckets ``start`` to before ``end``; from there on the rate is at most half as high."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Suspect:
    field: str
    value: str
    breaks: int
    """That have the value."""
    share: float
    """Of the breaks."""
    before: float
    """The share of the turns before that had it."""

    @property
    def sentence(self) -> str:
        had = (
            f"{_percent(self.before)} of the turns before had"
            if self.before
            else "before, none had"
        )
        what = f"{FIELDS[self.field]} {self.value}"
        return f"{_percent(self.share)} of these breaks have the {what}; {had} it."


def onset(breaks: Sequence[Mapping[str, int]], turns: Sequence[int], active: int) -> Onset | None:
    """``breaks`` by session, and all ``turns``, by bucket; ``active`` sessions in all."""
    found = _rise(breaks, turns)
    if found is None:
        return None
    affected: set[str] = set().union(*breaks[found.start : found.end])
    if len(affected) < min(SESSIONS, active):
        return None
    during, later = (
        (sum(map(len, breaks[part])), sum(turns[part]))
        for part in (slice(found.start, found.end), slice(found.end, None))
    )
    expected = during[0] * later[1] / max(1, during[1])
    is_over = expected >= KNOWN and TIMES * later[0] <= expected
    return found if is_over else Onset(found.start, len(breaks))


def _rise(breaks: Sequence[Mapping[str, int]], turns: Sequence[int]) -> Onset | None:
    """The stretch that differs most from all before it."""
    having, counts, sizes, most = [0], [0], [0], [0]
    for own, number in zip(breaks, turns, strict=True):
        having.append(having[-1] + len(own))
        counts.append(counts[-1] + sum(own.values()))
        sizes.append(sizes[-1] + max(number, sum(own.values())))
        most.append(max(most[-1], *own.values(), 0))
    buckets = len(breaks)
    best, found = 0.0, None
    for start in range(1, buckets):
        if not sizes[start] or not breaks[start]:
            continue
        units = [(having, 1)]
        if having[start] >= KNOWN:
            units.append((counts, most[start]))
        for end in range(start + 1, buckets + 1):
            if not breaks[end - 1]:
                continue
            size, length = sizes[start], sizes[end] - sizes[start]
            for sums, unit in units:
                before, inside = sums[start] / unit, (sums[end] - sums[start]) / unit
                if inside * size < TIMES * before * length:
                    continue
                whole = before + inside
                weight = whole * divergence(inside / whole, length / (size + length))
                if weight > best:
                    best, found = weight, Onset(start, end)
    tried = max(1, buckets * (buckets - 1))
    return found if best > math.log(tried / CHANCE) else None


def suspects(breaks: Sequence[TurnRow], before: Iterable[TurnRow]) -> list[Suspect]:
    """What breaks of an onset have that turns before it had much less often, the most telling
    first."""
    turns = list(before)
    found = []
    for field in FIELDS:
        now = Counter(value for row in breaks if (value := getattr(row, field)) is not None)
        then = Counter(value for row in turns if (value := getattr(row, field)) is not None)
        known = then.total()
        for value, number in now.items():
            share, usual = number / len(breaks), then[value] / known if known else 0.0
            if known and share >= SHARE and share >= TIMES * usual:
                found.append(Suspect(field, value, number, share, usual))
    found.sort(key=lambda one: (one.before - one.share, list(FIELDS).index(one.field)))
    return found[:MOST]


def _percent(share: float) -> str:
    if 0 < share < 0.01:
        return "less than 1 %"
    if 0.99 < share < 1:
        return "more than 99 %"
    return f"{100 * share:.0f} %"
