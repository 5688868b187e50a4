"""What became of the prompt cache in each turn, told from counters alone.

A turn is held against the one before it in its chain: what an append-only conversation should have
read again, less what was read. The steps are tried in order, and the first that matches names the
verdict; what nobody can know from the figures stays ``possible`` or ``unknown``. The provider's own
word comes before the client's proof, and that before any inference.

The thresholds are of measured traffic (docs/verdicts.md): dips of up to a thousand tokens are
common and mean nothing; a second cold read right after a cold start is publication lag; a dip that
is read again by the next turn was no change of the prefix that stayed.

``follow`` goes on from a place in a chain by one row, with what it has to know of the rows before:
a session of any length is judged row by row. What a verdict waits for is at most two turns away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from app.analysis import testimony
from app.analysis.cache_life import Retention, retention
from app.analysis.testimony import Change
from app.ledger.conditions import SUCCEEDED
from app.ledger.rows import TurnRow
from engine.model import Kind, UsageState

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
class Judged:
    verdict: Verdict
    grade: Grade
    missed: int | None
    """Tokens that could have been read and were not; None where that cannot be told."""


_ANOTHER_ACCOUNT = "codex_account_switch"
"""A reset after which another account, which has its own cache, reads the history as it is."""
NO_REWRITE = frozenset(
    {
        "turn_count",
        "connection_age",
        "manual",
        "codex_token_refresh",
        "provider_recovery_terminal",
        _ANOTHER_ACCOUNT,
    }
)
"""Resets that leave the history as it is; all other words are of one that was rewritten."""
STARTS = frozenset({Verdict.COLD_START, Verdict.SHARED_PREFIX})
_WAITING = frozenset(
    {
        Verdict.SHORTFALL,
        Verdict.PINNED_FLOOR,
        Verdict.ONE_OFF_FULL,
        Verdict.ONE_OFF_PARTIAL,
        Verdict.PERSISTENT,
        Verdict.UNKNOWN,
    }
)
"""Verdicts that may become another one by what comes after."""
_BACK = 4
"""Turns before one that its verdict, and those that waited for it, may depend on."""


def rewrites(reset: str | None) -> bool:
    """Whether a reset of this word is of a history that was rewritten."""
    return reset is not None and reset not in NO_REWRITE


def stored(row: TurnRow) -> Judged | None:
    """The verdict that a row has."""
    if row.cache_verdict is None or row.cache_grade is None:
        return None
    try:
        return Judged(Verdict(row.cache_verdict), Grade(row.cache_grade), row.missed_tokens)
    except ValueError:  # of another version
        return None


def judge(chain: Iterable[TurnRow]) -> dict[str, Judged]:
    """The verdicts on the generation turns of one chain, in their order; by ``turn_id``."""
    found: dict[str, Judged] = {}
    place = Place()
    for row in chain:
        place, judged = follow(place, row)
        found |= judged
    return found


class Turn:
    """What is remembered of a turn that tells something."""

    __slots__ = (
        "after", "before", "block", "cached", "cold_until", "ended_at", "followed", "given", "id",
        "identity", "is_long", "model", "moved", "proven", "rewritten", "said", "shared", "start",
        "started_at", "told", "written",
    )  # fmt: skip

    def __init__(self, row: TurnRow, before: Turn | None, start: Judged | None) -> None:
        """``start``: the verdict on a first turn, if it is known."""
        assert row.input_tokens is not None
        assert row.cached_tokens is not None
        self.id = row.turn_id
        self.given = row.input_tokens
        self.cached = row.cached_tokens
        self.written = row.cache_write_tokens or 0
        self.started_at, self.ended_at = row.started_at, row.ended_at
        self.identity = _identity(row)
        self.told = _told(row)
        self.proven = testimony.proven_same(row)
        self.model = row.model
        self.is_long = bool(row.cache_write_long_tokens)
        """The cache that it leaves was written with the longer lifetime; who writes none keeps
        alive what was there."""
        if before is not None and not row.cache_write_tokens and not self.is_long:
            self.is_long = before.is_long
        self.rewritten = self.moved = False
        """Since the turn before; whoever knows it says so."""
        self.before = before
        self.after: Turn | None = None
        self.followed = False
        self.said: Judged | None = None
        self.start = start
        self.cold_until: int | None
        """Until then it tells nothing yet if nothing is read, as nothing was so far."""
        if before is None:
            self.block = BLOCK
            if start is None:
                word = Verdict.SHARED_PREFIX if self.cached else Verdict.COLD_START
                self.start = Judged(word, Grade.PROVEN, 0)
            self.shared = self.cached if start is None or start.verdict in STARTS else 0
            cold = self.start is not None and self.start.verdict == Verdict.COLD_START
            self.cold_until = self.ended_at + LAG_MS if cold else None
        else:
            self.block, self.shared = before.block, before.shared
            waits = before.cold_until is not None and self.started_at < before.cold_until
            self.cold_until = before.cold_until if waits and not self.cached else None
        if self.cached % BLOCK:
            self.block = 1

    @property
    def gap(self) -> int:
        """Milliseconds since the turn before. Never below zero: logs may be out of order."""
        return 0 if self.before is None else max(0, self.started_at - self.before.ended_at)

    @property
    def life(self) -> Retention:
        """Of the cache that the turn before it left."""
        return retention(self.model, is_long=self.before is not None and self.before.is_long)

    @property
    def expected(self) -> int:
        """Tokens that a conversation which only grows should read again."""
        if self.before is None:
            return 0
        shorter = min(self.before.given, self.given)
        return shorter - shorter % self.block


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a chain that a row can go on from."""

    turn: Turn | None = None
    """The last one that tells something."""
    rewritten: bool = False
    """The history was rewritten since."""
    moved: bool = False
    """The history went to another account since."""


def follow(
    place: Place,
    row: TurnRow,
    *,
    start: Judged | None = None,
) -> tuple[Place, dict[str, Judged]]:
    """Go on by one row. Returns the place after it, and the verdicts that are new or another now.

    ``start`` is the verdict on the first turn where it is known better: its chain began with rows
    that are gone. The first row that follows a place is the one that turns before it wait for; any
    further one is of a branch.
    """
    reset = row.epoch_reset_reason
    moved = place.moved or reset == _ANOTHER_ACCOUNT
    rewritten = place.rewritten or rewrites(reset)
    if row.kind == Kind.COMPACTION:
        return Place(place.turn, rewritten or row.status in SUCCEEDED, moved), {}
    if not _usable(row):
        unusable = {row.turn_id: Judged(Verdict.UNUSABLE, Grade.UNKNOWN, None)}
        return Place(place.turn, rewritten, moved), unusable if row.kind == Kind.GENERATION else {}
    before = place.turn
    turn = Turn(row, before, start if before is None else None)
    turn.rewritten, turn.moved = rewritten, moved
    waiting = []
    if before is not None and not before.followed:
        before.followed, before.after = True, turn
        waiting = [before]
        if before.before is not None and before.before.after is before:
            waiting.append(before.before)
    changed = {}
    for one in (turn, *waiting):
        if one.said is None or one.said.verdict in _WAITING:
            judged = _judged(one)
            if judged != one.said:
                one.said = changed[one.id] = judged
    _let_go(turn)
    return Place(turn), changed


def _let_go(turn: Turn) -> None:
    """Keep no more of a chain than what verdicts depend on; where it branches, both ways stay."""
    far = turn
    for _ in range(_BACK):
        if far.before is None or far.before.after is not far:
            return
        far = far.before
    far.before = far.after = None


def _judged(turn: Turn) -> Judged:
    if turn.start is not None:
        return turn.start
    last, cached = turn.before, turn.cached
    assert last is not None
    if turn.cold_until is not None:
        return Judged(Verdict.COLD_CONTINUATION, Grade.LIKELY, 0)
    missed = turn.expected - cached
    if missed <= SLACK:
        return Judged(Verdict.HIT, Grade.PROVEN, 0)
    if turn.told is not None:
        return Judged(*turn.told, missed)
    if turn.rewritten:
        return Judged(Verdict.HISTORY_REWRITE, Grade.PROVEN, None)
    if turn.given < last.given / 2:
        return Judged(Verdict.HISTORY_REWRITE, Grade.LIKELY, None)
    if turn.moved or turn.identity != last.identity:
        return Judged(Verdict.IDENTITY_CHANGE, Grade.LIKELY, missed)
    readable = min(last.cached + last.written, turn.given)
    # Who reads nothing turn after turn has no shortfall: what was sent was there to be read.
    all_read = cached > 0 and readable - cached <= SLACK
    if not all_read:
        if turn.gap >= turn.life.hard:
            return Judged(Verdict.IDLE, Grade.LIKELY, missed)
        if turn.gap >= turn.life.soft:
            return Judged(Verdict.IDLE, Grade.POSSIBLE, missed)
    if _pinned(turn):
        return Judged(Verdict.PINNED_FLOOR, Grade.LIKELY, missed)
    if all_read:
        return Judged(Verdict.SHORTFALL, Grade.PROVEN, 0)
    return Judged(*_by_the_next(turn), missed)


def _by_the_next(turn: Turn) -> tuple[Verdict, Grade]:
    if turn.after is None:
        return Verdict.UNKNOWN, Grade.UNKNOWN
    if turn.expected - turn.after.cached > SLACK:
        return Verdict.PERSISTENT, Grade.POSSIBLE
    full = turn.cached < MINIMUM or turn.cached <= turn.shared
    return (
        Verdict.ONE_OFF_FULL if full else Verdict.ONE_OFF_PARTIAL,
        Grade.PROVEN if turn.proven else Grade.POSSIBLE,
    )


def _pinned(turn: Turn) -> bool:
    """Whether this turn is one of several in a row that read the same, far too short, part."""
    run, one, other = 1, turn, turn.before
    while run < PINNED and other is not None and _same_floor(one, other):
        run, one, other = run + 1, other, other.before
    one, other = turn, turn.after
    while run < PINNED and other is not None and _same_floor(one, other):
        run, one, other = run + 1, other, other.after
    return run >= PINNED


def _same_floor(one: Turn, other: Turn) -> bool:
    near = abs(one.cached - other.cached) <= max(one.block, other.block)
    return near and all(
        turn.cached and turn.given - turn.cached > 2 * SLACK for turn in (one, other)
    )


def _told(row: TurnRow) -> tuple[Verdict, Grade] | None:
    """What the provider says, else what the client has proven."""
    change = testimony.reported_change(row)
    if change is not None:
        return _OF_A_CHANGE[change], Grade.REPORTED
    change = testimony.proven_change(row)
    return None if change is None else (_OF_A_CHANGE[change], Grade.PROVEN)


_OF_A_CHANGE = {
    Change.PREFIX: Verdict.PREFIX_CHANGED,
    Change.IDENTITY: Verdict.IDENTITY_CHANGE,
    Change.OTHER: Verdict.UNKNOWN,
}


def _usable(row: TurnRow) -> bool:
    return (
        row.kind == Kind.GENERATION
        and row.status in SUCCEEDED
        and row.usage_state == UsageState.REPORTED
        and row.cached_tokens is not None
        and row.input_tokens is not None
        and row.input_tokens >= MINIMUM
    )


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
