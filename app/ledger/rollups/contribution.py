"""What rows add to the rollups: under which key, and how much of everything that is summed.

Pure. The sums are those of ``app.ledger.cells.Cell``; a property test holds the two together.
Everything here is of the finest stretches; coarser ones are their sums.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from operator import add, sub
from typing import Any, NamedTuple

from app.ledger.cells import Cell, Continuity
from app.ledger.conditions import cache_class_of
from app.ledger.rollups.distribution import bucket_of
from app.ledger.rows import TurnRow, nano
from engine.model import Kind, UsageState

MINUTE = 60_000
FIVE, QUARTER, HOUR, BLOCK, DAY = (n * MINUTE for n in (5, 15, 60, 360, 1_440))
"""How long stretches are, in milliseconds. Each begins at a multiple of its length since 1970.
All time zones are whole quarters of an hour away from UTC, so that every day begins with one."""
LEVELS = (FIVE, HOUR, BLOCK, DAY)
"""Of cells and times."""
SESSION_LEVELS = (QUARTER, HOUR, DAY)

ANY = "*"
"""In a key of less detail, what it does not tell apart."""


class Key(NamedTuple):
    """All that rows of one cell have in common."""

    source: str
    tenant: str
    upstream: str
    model: str | None
    client: str | None
    kind: str
    mode: str | None
    reason: str | None
    eligible: bool
    status: str
    cache: str

    @property
    def detail(self) -> int:
        """Whether it tells apart whose rows they are; ``tables``."""
        return 0 if self.source == ANY else 1

    def of_all(self) -> Key:
        """Not told apart by whose rows they are."""
        return Key(ANY, ANY, ANY, ANY, ANY, *self[5:])

    def of_times(self) -> Key:
        """The key of the distributions, which are of generations that came to their end."""
        return self._replace(kind=Kind.GENERATION.value, reason=ANY, eligible=False, status=ANY)

    def of_session(self) -> Key:
        return Key(*self[:5], kind=ANY, mode=ANY, reason=ANY, eligible=False, status=ANY, cache=ANY)


class Facts(NamedTuple):
    """What follows from a key alone."""

    id: int
    shape: int
    generation: bool
    counts: tuple[int, ...]
    """One turn's part in ``Continuity``."""
    detail: int
    all: Key
    times: Key
    all_times: Key
    session: Key


SUMS = (
    "turns",
    "usage_turns",
    "inconsistent",
    "input",
    "cached",
    "write_turns",
    "cache_write",
    "output",
    "reasoning",
    "priced",
    "cost",
)
"""As the fields of ``Cell`` of these names."""
_COSTS = 2
"""The last of them, which count turns of any kind and end in sessions, too."""
COUNTS = ("generation", "known", "incremental", "eligible", "breaks", "mismatches")
"""As the fields of ``Continuity`` of these names."""
SESSION_SUMS = ("turns", *COUNTS, *SUMS[1:])
"""``turns``, ``priced`` and ``cost`` are of all rows; the rest is of generations that came to their
end."""

CellAt = tuple[int, Key]
SessionAt = tuple[int, str, Key]
Counts = dict[int, int]
"""How many samples are in each bucket of a distribution."""


class Contributions:
    """What rows add together; by start of the stretch, in milliseconds since 1970, and key."""

    __slots__ = ("_both", "_cells", "_times", "session_ends", "sessions")

    def __init__(self) -> None:
        self._both: tuple[dict[CellAt, Sequence[int]], dict[CellAt, tuple[Counts, Counts]]] | None
        self._both = None
        self._cells: dict[CellAt, Sequence[int]] = {}
        self._times: dict[CellAt, tuple[Counts, Counts]] = {}
        self.sessions: dict[SessionAt, Sequence[int]] = {}
        """``SESSION_SUMS`` of quarters of sessions."""
        self.session_ends: dict[SessionAt, tuple[int, int, str | None]] = {}
        """First and last start of rows that were added, and the greatest name."""

    def cells(self) -> dict[CellAt, Sequence[int]]:
        """``SUMS`` of five minutes, in both details."""
        return self._details()[0]

    def times(self) -> dict[CellAt, tuple[Counts, Counts]]:
        """Of five minutes, in both details: ttft and duration."""
        return self._details()[1]

    def _details(
        self,
    ) -> tuple[dict[CellAt, Sequence[int]], dict[CellAt, tuple[Counts, Counts]]]:
        if self._both is None:
            self._both = self._both_cells(), self._both_times()
        return self._both

    def _both_cells(self) -> dict[CellAt, Sequence[int]]:
        both = dict(self._cells)
        for (start, key), sums in self._cells.items():
            at = (start, facts_of(key).all)
            known = both.get(at)
            both[at] = sums if known is None else tuple(map(add, known, sums))
        return both

    def _both_times(self) -> dict[CellAt, tuple[Counts, Counts]]:
        both = dict(self._times)
        for (start, key), counts in self._times.items():
            at = (start, facts_of(key).all_times)
            if at not in both:
                both[at] = ({}, {})
            add_counts(both[at], counts)
        return both

    def add(self, rows: Iterable[TurnRow], sign: int = 1) -> None:
        """Add the rows; with ``sign`` -1, take away what they added before."""
        self._both = None
        plus = add if sign > 0 else sub
        for row in rows:
            key = key_of(row)
            facts = facts_of(key)
            started_at = row.started_at
            start = started_at - started_at % FIVE
            sums = sums_of(row)
            cell = (start, key)
            self._cells[cell] = tuple(map(plus, self._cells.get(cell, _NONE), sums))
            at = (started_at - started_at % QUARTER, row.session_key, facts.session)
            known = self.sessions.get(at, _NO_SESSION)
            if facts.generation:
                self._add_times(row, (start, facts.times), sign)
                amounts = (1, *facts.counts, *sums[1:])
                self.sessions[at] = tuple(map(plus, known, amounts))
            else:
                self.sessions[at] = tuple(map(plus, known, (1, *_NO_RATE, *sums[-_COSTS:])))
            if sign > 0:
                self._widen(at, started_at, row.session)

    def add_prices(self, rows: Iterable[tuple[TurnRow, Decimal]]) -> None:
        """Add what rows cost that had no price before, and are counted otherwise."""
        self._both = None
        for row, usd in rows:
            key, costs = key_of(row), (1, nano(usd))
            cell = (start_of(FIVE, row.started_at), key)
            sums = (*_NONE[:-_COSTS], *costs)
            self._cells[cell] = tuple(map(add, self._cells.get(cell, _NONE), sums))
            at = (start_of(QUARTER, row.started_at), row.session_key, facts_of(key).session)
            amounts = (0, *_NO_RATE, *costs)
            self.sessions[at] = tuple(map(add, self.sessions.get(at, _NO_SESSION), amounts))

    def _add_times(self, row: TurnRow, at: CellAt, sign: int) -> None:
        ttft, duration = row.ttft_ms, row.duration_ms
        if ttft is None and duration is None:
            return
        times = self._times.get(at)
        if times is None:
            times = self._times[at] = ({}, {})
        for counts, sample in zip(times, (ttft, duration), strict=True):
            if sample is not None:
                bucket = bucket_of(sample)
                counts[bucket] = counts.get(bucket, 0) + sign

    def _widen(self, at: SessionAt, instant: int, name: str | None) -> None:
        ends = self.session_ends.get(at)
        if ends is None:
            self.session_ends[at] = (instant, instant, name)
            return
        first, last, known = ends
        self.session_ends[at] = (
            min(first, instant),
            max(last, instant),
            name if known is None or (name is not None and name > known) else known,
        )


_NONE = (0,) * len(SUMS)
_NO_SESSION = (0,) * len(SESSION_SUMS)
_NO_RATE = (0,) * (len(SESSION_SUMS) - 1 - _COSTS)


def add_counts(whole: tuple[Counts, Counts], part: tuple[Counts, Counts]) -> None:
    """Add the counts of ttft and duration to others."""
    for into, counts in zip(whole, part, strict=True):
        for bucket, count in counts.items():
            into[bucket] = into.get(bucket, 0) + count


def start_of(level: int, instant: int) -> int:
    """Where the stretch begins that an instant lies in."""
    return instant - instant % level


def key_of(row: TurnRow) -> Key:
    return Key(
        row.source,
        row.tenant,
        row.upstream,
        row.model,
        row.client,
        row.kind,
        row.mode,
        row.reason,
        row.eligible,
        row.status,
        cache_class_of(row),
    )


@lru_cache(maxsize=10_000)
def facts_of(key: Key) -> Facts:
    one = Cell(key.kind, key.status, key.mode, key.reason, key.eligible, key.cache, 1, *_NONE[1:])
    counts = Continuity.of([one])
    return Facts(
        id=digest(key),
        shape=digest(key[5:]),
        generation=one.generation,
        counts=tuple(getattr(counts, name) for name in COUNTS),
        detail=key.detail,
        all=key.of_all(),
        times=key.of_times(),
        all_times=key.of_all().of_times()._replace(cache=ANY),
        session=key.of_session(),
    )


def digest(parts: tuple[Any, ...]) -> int:
    """63 bits: the same in every process, and never the same for two of a ledger's few keys."""
    text = json.dumps(parts, separators=(",", ":"))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def sums_of(row: TurnRow) -> tuple[int, ...]:
    """``SUMS`` of one row. What depends on the usage counts only where it is known."""
    given, cached = row.input_tokens, row.cached_tokens
    output, reasoning = row.output_tokens or 0, row.reasoning_tokens or 0
    cost = row.cost_usd
    costs = (0, 0) if cost is None else (1, nano(cost))
    if given is None or cached is None:
        return (1, 0, 0, 0, 0, 0, 0, output, reasoning, *costs)
    written = row.cache_write_tokens
    return (
        1,
        1,
        1 if row.usage_state == UsageState.INCONSISTENT else 0,
        given,
        cached,
        0 if written is None else 1,
        written or 0,
        output,
        reasoning,
        *costs,
    )
