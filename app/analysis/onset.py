"""Since when a break is frequent, and what was new then. Pure.

The rate of a break is counted in sessions that have it, bucket by bucket, per turn of all kinds:
breaks of one session come together and count once a bucket. An onset is the stretch of buckets
whose rate differs most from all before it. It must be ``TIMES`` as high, and so high that the rate
before gives no stretch of the view as much, but with a probability of ``CHANCE`` (Chernoff's bound
on the share of the stretch, times the number of stretches that are tried).

What then distinguishes its breaks from the turns before is told by frequency alone: a suspect, not
a proof.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from app.analysis.breaks import divergence
from app.ledger.rows import TurnRow

TIMES = 2
CHANCE = 1e-4
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
    """Buckets ``start`` to before ``end``."""

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


def onset(sessions: Sequence[AbstractSet[str]], turns: Sequence[int], active: int) -> Onset | None:
    """``sessions`` with the break and all ``turns`` by bucket; ``active`` sessions in all."""
    start = _rise(sessions, turns)
    if start is None:
        return None
    # Backwards it rises where it ends.
    over = _rise(sessions[: start - 1 : -1], turns[: start - 1 : -1])
    found = Onset(start, len(sessions) - (over or 0))
    affected: set[str] = set().union(*sessions[found.start : found.end])
    return found if len(affected) >= min(SESSIONS, active) else None


def _rise(sessions: Sequence[AbstractSet[str]], turns: Sequence[int]) -> int | None:
    """Where the stretch begins that differs most from all before it."""
    counts, sizes = [0], [0]
    for having, number in zip(sessions, turns, strict=True):
        counts.append(counts[-1] + len(having))
        sizes.append(sizes[-1] + max(number, len(having)))
    buckets = len(sessions)
    best, found = 0.0, None
    for start in range(1, buckets):
        before, size = counts[start], sizes[start]
        if not size or not sessions[start]:
            continue
        for end in range(start + 1, buckets + 1):
            inside, length = counts[end] - before, sizes[end] - size
            if not sessions[end - 1] or inside * size < TIMES * before * length:
                continue
            whole = before + inside
            weight = whole * divergence(inside / whole, length / (size + length))
            if weight > best:
                best, found = weight, start
    return found if best > math.log(max(1, buckets * (buckets - 1) / 2) / CHANCE) else None


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
    return f"{100 * share:.0f} %"
