"""What became of the prompt cache in each turn, told from counters alone.

A turn is held against the one before it in its chain: what an append-only conversation should have
read again, less what was read. The steps are tried in order, and the first that matches names the
verdict; what nobody can know from the figures stays ``possible`` or ``unknown``. The provider's own
word comes before the client's proof, and that before any inference.

The thresholds are of measured traffic (docs/verdicts.md): dips of up to a thousand tokens are
common and mean nothing; a second cold read right after a cold start is publication lag; a dip that
is read again by the next turn was no change of the prefix that stayed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.ledger.rows import TurnRow
from engine.model import Kind, Mode, Reason, Status, UsageState

SLACK = 1_024
"""Tokens: a shorter miss is no miss."""
MINIMUM = 1_024
"""Tokens of the shortest input that providers cache at all."""
BLOCK = 128
"""Tokens that caches grow by, unless a chain shows that its does not."""
LAG_MS = 30_000
"""So long after a cold start a second cold read tells nothing yet."""
PINNED = 3
"""Turns in a row that read one and the same amount, so that it is taken for a floor."""


class Verdict(StrEnum):
    UNUSABLE = "unusable"
    """No answer, no usage, or too short to be cached."""
    COLD_START = "cold_start"
    COLD_CONTINUATION = "cold_continuation"
    """Nothing read right after a cold start: the cache was not there yet."""
    SHARED_PREFIX = "shared_prefix"
    """The first of its chain, and yet it read something: what other conversations share."""
    HIT = "hit"
    SHORTFALL = "shortfall"
    """All that is proven to have been there was read; what came since was not there yet."""
    PREFIX_CHANGED = "prefix_changed"
    HISTORY_REWRITE = "history_rewrite"
    IDENTITY_CHANGE = "identity_change"
    IDLE = "idle"
    PINNED_FLOOR = "pinned_floor"
    ONE_OFF_FULL = "one_off_full"
    ONE_OFF_PARTIAL = "one_off_partial"
    PERSISTENT = "persistent"
    UNKNOWN = "unknown"


class Grade(StrEnum):
    """How sure a verdict is, the surest first."""

    REPORTED = "reported"
    PROVEN = "proven"
    LIKELY = "likely"
    POSSIBLE = "possible"
    UNKNOWN = "unknown"


LOSSES = frozenset(
    {
        Verdict.PREFIX_CHANGED,
        Verdict.IDENTITY_CHANGE,
        Verdict.IDLE,
        Verdict.PINNED_FLOOR,
        Verdict.ONE_OFF_FULL,
        Verdict.ONE_OFF_PARTIAL,
        Verdict.PERSISTENT,
        Verdict.UNKNOWN,
    }
)
"""Verdicts that missed tokens are counted with. A rewritten history is not waste."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a cache outlives its last use, in milliseconds."""

    soft: int
    """It may be gone after this; before it, it is not."""
    hard: int
    """It is gone after this."""


MINUTE, HOUR = 60_000, 3_600_000
IN_MEMORY = Retention(5 * MINUTE, HOUR)
SINCE_5_6 = Retention(30 * MINUTE, 24 * HOUR)
FIVE_MINUTES = Retention(5 * MINUTE, 5 * MINUTE)
ONE_HOUR = Retention(HOUR, HOUR)


@dataclass(frozen=True, slots=True)
class Judged:
    verdict: Verdict
    grade: Grade
    missed: int | None
    """Tokens that could have been read and were not; None where that cannot be told."""


_PREFIX_FIELDS = frozenset({"tools", "instructions", "input"})
_IDENTITY_FIELDS = frozenset({"model", "service_tier", "prompt_cache_key", "reasoning"})
_PREFIX_REASONS = frozenset(
    {"tools_changed", "input_changed", "instructions_changed", "system_changed", "messages_changed"}
)
_IDENTITY_REASONS = frozenset({"model_changed", "prompt_cache_key_changed", "service_tier_changed"})
_NO_DIAGNOSIS = frozenset(
    {
        "cache_hit",
        "comparison_response_not_found",
        "previous_message_not_found",
        "unavailable",
    }
)
_NO_REWRITE = frozenset({"turn_count", "connection_age", "manual"})
"""Resets that leave the history as it is; all other words are of one that was rewritten."""
_INCREMENTAL = frozenset({Mode.WS_INCREMENTAL, Mode.HTTP_INCREMENTAL})


def retention_of(row: TurnRow) -> Retention:
    """What is known of a cache's life: by the kind of writes that are reported, else the model."""
    if row.cache_write_long_tokens:
        return ONE_HOUR
    model = row.model or ""
    if model.startswith("claude"):
        return FIVE_MINUTES
    found = re.search(r"gpt-(\d+)(?:\.(\d+))?", model)
    since = found is not None and (int(found[1]), int(found[2] or 0)) >= (5, 6)
    return SINCE_5_6 if since else IN_MEMORY


def judge(chain: Sequence[TurnRow], retention: Retention | None = None) -> dict[str, Judged]:
    """The verdicts on the generation turns of one chain, in their order; by ``turn_id``.

    ``retention`` is what is known better than by the model's name.
    """
    return _Chain(chain, retention).judged()


class _Chain:
    def __init__(self, rows: Sequence[TurnRow], retention: Retention | None) -> None:
        self._rows = rows
        self._retention = retention
        usable = [row for row in rows if _usable(row)]
        known = [row.cached_tokens for row in usable if row.cached_tokens]
        self._block = BLOCK if known and all(cached % BLOCK == 0 for cached in known) else 1
        self._usable = usable
        first = usable[0].cached_tokens if usable else 0
        self._shared = first or 0

    def judged(self) -> dict[str, Judged]:
        found: dict[str, Judged] = {}
        for row in self._rows:
            if row.kind == Kind.GENERATION and not _usable(row):
                found[row.turn_id] = Judged(Verdict.UNUSABLE, Grade.UNKNOWN, None)
        rewritten = self._rewritten()
        before: Verdict | None = None
        for place, row in enumerate(self._usable):
            judged = self._one(place, rewritten=row.turn_id in rewritten, before=before)
            found[row.turn_id] = judged
            before = judged.verdict
        return found

    def _rewritten(self) -> set[str]:
        """Usable turns that are the first after their history was rewritten."""
        found, pending = set(), False
        for row in self._rows:
            reset = row.epoch_reset_reason
            pending = pending or (reset is not None and reset not in _NO_REWRITE)
            if row.kind == Kind.COMPACTION:
                pending = True
            elif pending and _usable(row):
                found.add(row.turn_id)
                pending = False
        return found

    def _one(self, place: int, *, rewritten: bool, before: Verdict | None) -> Judged:
        row = self._usable[place]
        cached = _cached(row)
        if place == 0:
            start = Verdict.SHARED_PREFIX if cached else Verdict.COLD_START
            return Judged(start, Grade.PROVEN, 0)
        last = self._usable[place - 1]
        gap = max(0, row.started_at - last.ended_at)
        cold = before in (Verdict.COLD_START, Verdict.COLD_CONTINUATION)
        if cold and not cached and gap < LAG_MS:
            return Judged(Verdict.COLD_CONTINUATION, Grade.LIKELY, 0)
        expected = self._expected(place)
        if expected - cached <= SLACK:
            return Judged(Verdict.HIT, Grade.PROVEN, 0)
        missed = expected - cached
        told = self._told(row)
        if told is not None:
            return Judged(*told, missed)
        if rewritten:
            return Judged(Verdict.HISTORY_REWRITE, Grade.PROVEN, None)
        if _input(row) < _input(last) / 2:
            return Judged(Verdict.HISTORY_REWRITE, Grade.LIKELY, None)
        if _identity(row) != _identity(last):
            return Judged(Verdict.IDENTITY_CHANGE, Grade.LIKELY, missed)
        readable = min(_cached(last) + (last.cache_write_tokens or 0), _input(row))
        all_read = readable - cached <= SLACK
        if not (cached and all_read):
            idle = self._idle(row, gap)
            if idle is not None:
                return Judged(Verdict.IDLE, idle, missed)
        if self._pinned(place):
            return Judged(Verdict.PINNED_FLOOR, Grade.LIKELY, missed)
        if all_read:
            return Judged(Verdict.SHORTFALL, Grade.PROVEN, 0)
        return Judged(*self._by_the_next(place), missed)

    def _told(self, row: TurnRow) -> tuple[Verdict, Grade] | None:
        """What the provider says, else what the client has proven."""
        word = row.provider_miss_reason
        if word is not None and word not in _NO_DIAGNOSIS:
            if word in _PREFIX_REASONS:
                return Verdict.PREFIX_CHANGED, Grade.REPORTED
            if word in _IDENTITY_REASONS:
                return Verdict.IDENTITY_CHANGE, Grade.REPORTED
            return Verdict.UNKNOWN, Grade.REPORTED
        if row.reason == Reason.PREFIX_MISMATCH:
            return Verdict.PREFIX_CHANGED, Grade.PROVEN
        if row.reason == Reason.NON_INPUT_FIELDS_CHANGED:
            names = set(row.changed_field_names)
            if names & _PREFIX_FIELDS:
                return Verdict.PREFIX_CHANGED, Grade.PROVEN
            if names & _IDENTITY_FIELDS:
                return Verdict.IDENTITY_CHANGE, Grade.PROVEN
        return None

    def _idle(self, row: TurnRow, gap: int) -> Grade | None:
        kept = self._retention or retention_of(row)
        if gap >= kept.hard:
            return Grade.LIKELY
        return Grade.POSSIBLE if gap >= kept.soft else None

    def _pinned(self, place: int) -> bool:
        """Whether this turn is one of several in a row that read the same, far too short, part."""
        run = 1
        for step in (-1, 1):
            at = place
            while 0 <= at + step < len(self._usable) and self._same_floor(at, at + step):
                at += step
                run += 1
        return run >= PINNED

    def _same_floor(self, one: int, other: int) -> bool:
        a, b = self._usable[one], self._usable[other]
        near = abs(_cached(a) - _cached(b)) <= self._block
        return near and all(
            _cached(row) and _input(row) - _cached(row) > 2 * SLACK for row in (a, b)
        )

    def _by_the_next(self, place: int) -> tuple[Verdict, Grade]:
        if place + 1 == len(self._usable):
            return Verdict.UNKNOWN, Grade.UNKNOWN
        row, following = self._usable[place], self._usable[place + 1]
        if self._expected(place) - _cached(following) > SLACK:
            return Verdict.PERSISTENT, Grade.POSSIBLE
        proven = row.mode in _INCREMENTAL and row.reason == Reason.OK
        full = _cached(row) < MINIMUM or _cached(row) <= self._shared
        return (
            Verdict.ONE_OFF_FULL if full else Verdict.ONE_OFF_PARTIAL,
            Grade.PROVEN if proven else Grade.POSSIBLE,
        )

    def _expected(self, place: int) -> int:
        """Tokens that a conversation which only grows should read again."""
        shorter = min(_input(self._usable[place - 1]), _input(self._usable[place]))
        return shorter - shorter % self._block


def _usable(row: TurnRow) -> bool:
    return (
        row.kind == Kind.GENERATION
        and row.status in (Status.COMPLETED, Status.INCOMPLETE)
        and row.usage_state == UsageState.REPORTED
        and row.cached_tokens is not None
        and row.input_tokens is not None
        and row.input_tokens >= MINIMUM
    )


def _input(row: TurnRow) -> int:
    assert row.input_tokens is not None
    return row.input_tokens


def _cached(row: TurnRow) -> int:
    assert row.cached_tokens is not None
    return row.cached_tokens


def _identity(row: TurnRow) -> tuple[str | None, ...]:
    """What a cache belongs to. What one of the two does not tell is compared all the same: a log
    that tells it at all tells it for each turn."""
    return (
        row.model,
        row.prompt_cache_key,
        row.tenant,
        row.upstream,
        row.service_tier,
        row.reasoning_effort,
    )
