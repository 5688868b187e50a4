"""Since when a break is frequent, and what was new then. Pure.

The rate of a break is counted per turn, and breaks of one session come together. So what a session
has of it in one bucket counts as one, however much it is; or only where it is much, which is half
the size that half of all breaks come in. An onset is the stretch of buckets whose rate differs most
from all before it, by either count. It must be ``TIMES`` as high, of several sessions, and so high
that the rate before gives no stretch as much, but with a probability of ``CHANCE`` (Chernoff's
bound on the share of the stretch, times the number of stretches that are tried).

The more is known of the time before, the smaller a change is found: the buckets may begin earlier
than those in which an onset is looked for.

What then distinguishes its breaks from the turns before is told by frequency alone: a suspect, not
a proof.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from app.analysis.breaks import divergence
from app.ledger.rows import TurnRow

TIMES = 2
CHANCE = 3e-4
EXPECTED = 10
"""So much must be expected after an onset, and not be there, that it counts as over."""
SESSIONS = 3
"""An onset is of more sessions than these, or of all that there are. Those with little of it count
for less (Kish's effective number): two that have nearly all are two."""
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


def onset(
    breaks: Sequence[Mapping[str, int]], turns: Sequence[int], active: int, since: int = 0
) -> Onset | None:
    """``breaks`` by session, and all ``turns``, by bucket; it is looked for from the bucket
    ``since`` on, in which there are ``active`` sessions."""
    sizes = [max(number, sum(own.values())) for number, own in zip(turns, breaks, strict=True)]
    much = max(1, _usual(breaks) // 2)
    by_any, by_much = (
        [sum(number >= least for number in own.values()) for own in breaks] for least in (1, much)
    )
    found, counts = max(
        ((_rise(counts, sizes, since), counts) for counts in (by_any, by_much)),
        key=lambda each: each[0].weight,
    )
    tried = 2 * (len(breaks) - since) * len(_lengths(len(breaks) - since))
    if found.weight <= math.log(max(1, tried) / CHANCE):
        return None
    during, later = slice(found.start, found.end), slice(found.end, None)
    if not _is_of_several(breaks[during], 2 * much, active):
        return None
    expected = sum(counts[during]) * sum(sizes[later]) / sum(sizes[during])
    is_over = expected >= EXPECTED and TIMES * sum(counts[later]) <= expected
    return Onset(found.start, found.end if is_over else len(breaks))


def _usual(breaks: Iterable[Mapping[str, int]]) -> int:
    """How many a session has in a bucket: half of all breaks are of those with no more."""
    numbers = sorted(number for own in breaks for number in own.values())
    half = sum(numbers) / 2
    return next(
        (one for one, so_far in zip(numbers, accumulate(numbers), strict=True) if so_far >= half), 1
    )


def _is_of_several(breaks: Iterable[Mapping[str, int]], most: int, active: int) -> bool:
    by_session: Counter[str] = Counter()
    for own in breaks:
        by_session.update({name: min(number, most) for name, number in own.items()})
    squares = sum(number * number for number in by_session.values())
    return by_session.total() ** 2 > min(SESSIONS, active - 1) * squares


class _Rise(NamedTuple):
    weight: float
    """The logarithm of how improbable it is, with its sign turned."""
    start: int
    end: int


def _rise(events: Sequence[int], sizes: Sequence[int], since: int) -> _Rise:
    """The stretch that differs most from all before it."""
    having, turns = ([0, *accumulate(numbers)] for numbers in (events, sizes))
    buckets = len(events)
    lengths = _lengths(buckets - since)
    best = _Rise(0.0, 0, 0)
    for start in range(max(1, since), buckets):
        if not turns[start] or not events[start]:
            continue
        for length in lengths:
            end = min(start + length, buckets)
            size, inner = turns[start], turns[end] - turns[start]
            before, inside = having[start], having[end] - having[start]
            if events[end - 1] and inside * size >= TIMES * before * inner:
                whole = before + inside
                weight = whole * divergence(inside / whole, inner / (size + inner))
                best = max(best, _Rise(weight, start, end))
            if end == buckets:
                break
    return best


def _lengths(longest: int) -> list[int]:
    """Lengths that are tried, each a quarter more than the one before: of nearly equal ones one
    finds what the other does, and each that is tried makes chance find something."""
    found = [1]
    while found[-1] < longest:
        found.append(found[-1] + max(1, found[-1] // 4))
    return found


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
