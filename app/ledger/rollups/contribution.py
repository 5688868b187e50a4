"""What one row adds to the rollups: under which key, and how much of everything that is summed.

Pure. The sums are those of ``app.ledger.cells.Cell``; a property test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from app.ledger.conditions import SUCCEEDED, cache_class_of
from app.ledger.rollups.distribution import Distribution
from app.ledger.rows import TurnRow
from engine.model import Kind, UsageState

MINUTE = 60_000
QUARTER, HOUR, BLOCK = 15 * MINUTE, 60 * MINUTE, 360 * MINUTE
LEVELS = (QUARTER, HOUR, BLOCK)
"""How long the stretches are, in milliseconds. Each begins at a multiple of its length since 1970.
All time zones are whole quarters of an hour away from UTC, so that every day begins with one."""


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


class LatencyKey(NamedTuple):
    """All that the samples of one distribution have in common."""

    source: str
    tenant: str
    upstream: str
    model: str | None
    client: str | None
    mode: str | None
    cache: str


class Sums(NamedTuple):
    """As ``Cell``: all but the first and the last two are over turns of known usage."""

    turns: int = 0
    usage_turns: int = 0
    inconsistent: int = 0
    input: int = 0
    cached: int = 0
    write_turns: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    def plus(self, other: Sums) -> Sums:
        return Sums(*map(int.__add__, self, other))

    def minus(self, other: Sums) -> Sums:
        return Sums(*map(int.__sub__, self, other))


@dataclass(slots=True)
class Times:
    """Distributions of generation turns, in milliseconds."""

    ttft: Distribution = field(default_factory=Distribution)
    duration: Distribution = field(default_factory=Distribution)


class Session(NamedTuple):
    """An hour of a session, in one cell."""

    hour: int
    session_key: str
    key: Key


@dataclass(slots=True)
class SessionPart:
    sums: Sums
    first_at: int
    last_at: int
    session: str | None
    root_session: str | None


@dataclass(slots=True)
class Contributions:
    """What rows add together. Starts are milliseconds since 1970."""

    cells: dict[tuple[int, int, Key], Sums] = field(default_factory=dict)
    """By level and start."""
    times: dict[tuple[int, int, LatencyKey], Times] = field(default_factory=dict)
    sessions: dict[Session, SessionPart] = field(default_factory=dict)


def of(rows: Iterable[TurnRow]) -> Contributions:
    """The contributions of these rows together."""
    whole = Contributions()
    for row in rows:
        key, sums = key_of(row), sums_of(row)
        for level in LEVELS:
            at = (level, start_of(level, row.started_at), key)
            whole.cells[at] = whole.cells.get(at, _NOTHING).plus(sums)
        if is_timed(row):
            _add_times(whole, row, key)
        _add_session(whole, row, key, sums)
    return whole


_NOTHING = Sums()


def start_of(level: int, instant: int) -> int:
    """Where the stretch begins that an instant lies in."""
    return instant - instant % level


def key_of(row: TurnRow) -> Key:
    return Key(
        source=row.source,
        tenant=row.tenant,
        upstream=row.upstream,
        model=row.model,
        client=row.client,
        kind=row.kind,
        mode=row.mode,
        reason=row.reason,
        eligible=row.eligible,
        status=row.status,
        cache=cache_class_of(row),
    )


def sums_of(row: TurnRow) -> Sums:
    given, cached = row.input_tokens, row.cached_tokens
    output, reasoning = row.output_tokens or 0, row.reasoning_tokens or 0
    if given is None or cached is None:
        return Sums(turns=1, output=output, reasoning=reasoning)
    return Sums(
        turns=1,
        usage_turns=1,
        inconsistent=int(row.usage_state == UsageState.INCONSISTENT),
        input=given,
        cached=cached,
        write_turns=int(row.cache_write_tokens is not None),
        cache_write=row.cache_write_tokens or 0,
        output=output,
        reasoning=reasoning,
    )


def is_timed(row: TurnRow) -> bool:
    """Only generations that came to their end are in the distributions."""
    return row.kind == Kind.GENERATION and row.status in SUCCEEDED


def _add_times(whole: Contributions, row: TurnRow, key: Key) -> None:
    if row.ttft_ms is None and row.duration_ms is None:
        return
    timed = LatencyKey(*key[:5], key.mode, key.cache)
    ttft = Distribution(() if row.ttft_ms is None else (row.ttft_ms,))
    duration = Distribution(() if row.duration_ms is None else (row.duration_ms,))
    for level in LEVELS:
        at = (level, start_of(level, row.started_at), timed)
        times = whole.times.setdefault(at, Times())
        times.ttft.add(ttft)
        times.duration.add(duration)


def _add_session(whole: Contributions, row: TurnRow, key: Key, sums: Sums) -> None:
    at = Session(start_of(HOUR, row.started_at), row.session_key, key)
    part = whole.sessions.get(at)
    if part is None:
        whole.sessions[at] = SessionPart(
            sums, row.started_at, row.started_at, row.session, row.root_session
        )
        return
    part.sums = part.sums.plus(sums)
    part.first_at = min(part.first_at, row.started_at)
    part.last_at = max(part.last_at, row.started_at)
    part.session = _greater(part.session, row.session)
    part.root_session = _greater(part.root_session, row.root_session)


def _greater(one: str | None, other: str | None) -> str | None:
    """Of two names a session went by, always the same one."""
    return max((name for name in (one, other) if name is not None), default=None)
