"""What rows add to the rollups: under which key, and how much of everything that is summed.

Pure. The sums are those of ``app.ledger.cells.Cell``; a property test holds the two together.
Everything here is of the finest stretches; coarser ones are their sums.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from app.ledger.cells import Cell, Continuity
from app.ledger.conditions import cache_class_of
from app.ledger.rollups.distribution import bucket_of
from app.ledger.rows import TurnRow
from engine.model import Kind, UsageState

MINUTE = 60_000
QUARTER, HOUR, BLOCK, DAY = 15 * MINUTE, 60 * MINUTE, 360 * MINUTE, 1_440 * MINUTE
"""How long stretches are, in milliseconds. Each begins at a multiple of its length since 1970.
All time zones are whole quarters of an hour away from UTC, so that every day begins with one."""
LEVELS = (QUARTER, HOUR, BLOCK)
"""Of cells and times."""
SESSION_LEVELS = (HOUR, DAY)

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
    times: Key
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
)
"""As the fields of ``Cell`` of these names."""
COUNTS = ("generation", "known", "incremental", "eligible", "breaks", "mismatches")
"""As the fields of ``Continuity`` of these names."""
SESSION_SUMS = ("turns", *COUNTS, *SUMS[1:])
"""``turns`` are all rows; the rest is of generations that came to their end."""

CellAt = tuple[int, Key]
SessionAt = tuple[int, str, Key]


class Contributions:
    """What rows add together; by start of the stretch, in milliseconds since 1970, and key."""

    __slots__ = ("cells", "session_ends", "sessions", "times")

    def __init__(self) -> None:
        self.cells: dict[CellAt, list[int]] = {}
        """``SUMS`` of quarters."""
        self.times: dict[CellAt, tuple[Counter[int], Counter[int]]] = {}
        """Of quarters: how many samples of ttft and duration are in each bucket."""
        self.sessions: dict[SessionAt, list[int]] = {}
        """``SESSION_SUMS`` of hours of sessions."""
        self.session_ends: dict[SessionAt, tuple[int, int, str | None]] = {}
        """First and last start of rows that were added, and the greatest name."""

    def add(self, rows: Iterable[TurnRow], sign: int = 1) -> None:
        """Add the rows; with ``sign`` -1, take away what they added before."""
        for row in rows:
            key = key_of(row)
            facts = facts_of(key)
            started_at = row.started_at
            quarter = started_at - started_at % QUARTER
            sums = sums_of(row)
            _add(self.cells, (quarter, key), sums, sign)
            if facts.generation:
                self._add_times(row, (quarter, facts.times), sign)
                amounts = (1, *facts.counts, *sums[1:])
            else:
                amounts = _ONLY_A_TURN
            at = (started_at - started_at % HOUR, row.session_key, facts.session)
            _add(self.sessions, at, amounts, sign)
            if sign > 0:
                self._widen(at, started_at, row.session)

    def _add_times(self, row: TurnRow, at: CellAt, sign: int) -> None:
        ttft, duration = row.ttft_ms, row.duration_ms
        if ttft is None and duration is None:
            return
        times = self.times.get(at)
        if times is None:
            times = self.times[at] = (Counter(), Counter())
        if ttft is not None:
            times[0][bucket_of(ttft)] += sign
        if duration is not None:
            times[1][bucket_of(duration)] += sign

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


_ONLY_A_TURN = (1, *(0 for _ in SESSION_SUMS[1:]))


def _add(sums: dict[tuple, list[int]], at: tuple, amounts: tuple[int, ...], sign: int) -> None:  # type: ignore[type-arg]
    known = sums.get(at)
    if known is None:
        sums[at] = list(amounts) if sign > 0 else [-amount for amount in amounts]
    elif sign > 0:
        sums[at] = [a + b for a, b in zip(known, amounts, strict=True)]
    else:
        sums[at] = [a - b for a, b in zip(known, amounts, strict=True)]


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
    one = Cell(key.kind, key.status, key.mode, key.reason, key.eligible, key.cache, 1, *(0,) * 8)
    counts = Continuity.of([one])
    return Facts(
        id=_digest(key),
        shape=_digest(key[5:]),
        generation=one.generation,
        counts=tuple(getattr(counts, name) for name in COUNTS),
        times=key.of_times(),
        session=key.of_session(),
    )


def _digest(parts: tuple[Any, ...]) -> int:
    """63 bits: the same in every process, and never the same for two of a ledger's few keys."""
    text = json.dumps(parts, separators=(",", ":"))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def sums_of(row: TurnRow) -> tuple[int, ...]:
    """``SUMS`` of one row. What depends on the usage counts only where it is known."""
    given, cached = row.input_tokens, row.cached_tokens
    output, reasoning = row.output_tokens or 0, row.reasoning_tokens or 0
    if given is None or cached is None:
        return (1, 0, 0, 0, 0, 0, 0, output, reasoning)
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
    )
