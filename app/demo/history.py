"""Some days of made-up history for the demo, marked ``source = sample``.

The same seed and the same ``now`` give the same rows. They follow the rules of the ledger:
cached tokens are part of the input, a turn that continues names the response before it and its
prefix is that turn's baseline, and ``eligible`` says what DESIGN 4.4 says. Planted in it: on one
afternoon agents of another version (``TRIED``) rewrite old tool results (``MISMATCHES``), and on
one morning the upstream refuses WebSockets, so that everything goes over HTTP (``REFUSALS``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from random import Random
from typing import Any

from app.ledger.facts import to_row
from app.ledger.rows import TurnRow
from app.version import VERSION
from engine.model import (
    NOT_ELIGIBLE,
    ColdCause,
    DivergenceClass,
    EpochReason,
    Evidence,
    Kind,
    Mode,
    Nature,
    Reason,
    Status,
    TurnFacts,
    Usage,
    UsageState,
)

HOUR, DAY = 3600.0, 86_400.0
MISMATCHES = (14, 16)
"""Hours (UTC) of the latest whole afternoon on which old tool results are rewritten."""
USUAL, TRIED = "3.57.0", "3.58.0b1"
"""Versions of the client; the other one is tried on that afternoon only."""
REFUSALS = (9, 11)
"""Hours (UTC) of the latest whole morning on which the upstream refuses upgrades with 426."""
QUIET = 90.0
"""Seconds before now in which nothing starts or ends: the live agents take over, and alerts on the
last minute are about them."""
_CACHE_SECONDS = 600.0
_BLOCK, _MINIMUM = 128, 1_024
_HABITS = ("coder", "coder", "coder", "coder", "crew", "crew", "writer", "legacy", "notes")
_SESSIONS = (4, 4, 3, 3, 3, 4, 5, 7, 9, 10, 10, 9, 8, 10, 11, 10, 9, 8, 7, 6, 5, 5, 4, 4)
"""Sessions begun per hour of the day, UTC."""


def generate(
    now: float,
    *,
    days: int = 3,
    seed: str = "sample",
    fingerprint: Callable[[Evidence], str] = lambda _: "f" * 16,
) -> Iterator[TurnRow]:
    """The rows of ``days`` days before ``now`` (epoch seconds), oldest first. ``fingerprint``: that
    of the gateway beside whose turns they are to stand."""
    random = Random(seed)  # noqa: S311  (made-up rows, no secrets)
    first = (now - days * DAY) // HOUR * HOUR + HOUR
    last = now - QUIET
    planted = _Planted(_window(last, MISMATCHES), _window(last, REFUSALS))
    facts: list[TurnFacts] = []
    hour, number = first, 0
    while hour < last:
        count = _SESSIONS[int(hour % DAY // HOUR)]
        habits = [random.choice(_HABITS) for _ in range(count)]
        if planted.mismatches[0] <= hour < planted.mismatches[1]:
            habits += ["notes"] * 6
        for habit in habits:
            number += 1
            begun = hour + random.uniform(0, HOUR)
            session = _Session(f"{seed}-{habit}-{number}", habit, random, planted, fingerprint)
            facts += [turn for turn in session.turns(begun) if turn.ended_at < last]
        hour += HOUR
    for turn in sorted(facts, key=lambda turn: (turn.started_at, turn.turn_id)):
        yield to_row(turn, gateway_version=VERSION)


def _window(last: float, hours: tuple[int, int]) -> tuple[float, float]:
    """The latest such hours of a day that have passed."""
    midnight = last // DAY * DAY
    if midnight + hours[1] * HOUR > last:
        midnight -= DAY
    return midnight + hours[0] * HOUR, midnight + hours[1] * HOUR


@dataclass(frozen=True, slots=True)
class _Planted:
    mismatches: tuple[float, float]
    refusals: tuple[float, float]


@dataclass(slots=True)
class _Session:
    """What one made-up session remembers from turn to turn."""

    name: str
    habit: str
    random: Random
    planted: _Planted
    fingerprint: Callable[[Evidence], str]
    items: int = 0
    tokens: int = 0
    seen: int = 0
    """Tokens that the provider's cache has seen."""
    seen_at: float = 0.0
    epoch: int = 1
    epoch_turn: int = 0
    chain: int = 0
    response: str | None = None
    """The response that a live connection holds, if one does."""
    baseline: str | None = None
    baseline_items: int | None = None
    version: str = USUAL
    ids: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = (_digest(self.name, str(n)) for n in range(1_000_000))

    def turns(self, begun: float) -> Iterator[TurnFacts]:
        random = self.random
        at = begun
        afternoon = self.planted.mismatches[0] <= begun < self.planted.mismatches[1]
        self.version = TRIED if self.habit == "notes" and afternoon else USUAL
        added, growth = 2 + random.randrange(2), random.randrange(2_800, 6_500)
        for number in range(random.randrange(8, 26)):
            reason = self._reason(number, at)
            if reason is Reason.EPOCH_RESET:
                self.items, self.tokens, self.epoch = 0, 2_900, self.epoch + 1
                self.epoch_turn = 0
            self.items += added
            self.tokens += growth
            turn = self._turn(number, at, reason, added)
            yield turn
            added, growth = 1 + random.randrange(3), random.randrange(250, 1_700)
            at = turn.ended_at + random.choice((1.5, 4.0, 9.0, 20.0, 45.0)) * random.uniform(0.6, 2)

    def _reason(self, number: int, at: float) -> Reason:
        refused = self.planted.refusals[0] <= at < self.planted.refusals[1]
        if self.habit == "legacy" or refused:
            return Reason.WS_REJECTED
        if self.baseline is None:
            return Reason.NO_BASELINE
        if self.habit == "writer" and number % 7 == 6:
            return Reason.EPOCH_RESET
        if self.habit == "notes" and number > 1:
            busy = self.planted.mismatches[0] <= at < self.planted.mismatches[1]
            if self.random.random() < (0.55 if busy else 0.08):
                return Reason.PREFIX_MISMATCH
        if self.response is None or self.random.random() < 0.008:
            return Reason.CONNECTION_LOST
        if self.random.random() < 0.012:
            return Reason.NON_INPUT_FIELDS_CHANGED
        return Reason.OK

    def _turn(self, number: int, at: float, reason: Reason, added: int) -> TurnFacts:
        random = self.random
        mode = Mode.WS_FULL
        if reason is Reason.OK:
            mode = Mode.WS_INCREMENTAL
        elif reason is Reason.WS_REJECTED:
            mode = Mode.HTTP_FULL
        evidence = self._evidence() if reason is Reason.PREFIX_MISMATCH else None
        usage = self._usage(at, reason)
        size = self.tokens * 4
        sent = added if mode.incremental else self.items
        connect = None if mode is not Mode.WS_FULL else random.uniform(180, 520)
        first = _first_event(random, mode, usage) + (connect or 0.0)
        ttft = first + random.uniform(40, 180)
        duration = ttft + (usage.output_tokens or 0) * random.uniform(6, 12)
        identifier = next(self.ids)
        if mode is Mode.WS_FULL:
            self.chain += 1
        self.epoch_turn += 1
        response = f"resp_{identifier}"
        before = self.baseline
        self.baseline = _digest(self.name, "baseline", str(number))
        output_items = 1 + random.randrange(2)
        turn = TurnFacts(
            turn_id=f"turn_{identifier}",
            started_at=at,
            ended_at=at + duration / 1000,
            kind=Kind.GENERATION,
            status=Status.COMPLETED,
            source="sample",
            session=self.name,
            session_key=_digest("session", self.name),
            tenant=_digest("tenant"),
            upstream="http_only" if self.habit == "legacy" else "default",
            client="AsyncOpenAI/Python",
            client_version=self.version,
            client_transport="sse",
            model="gpt-5.5" if self.habit in ("legacy", "writer") else "gpt-6-sol",
            chain=None if mode is Mode.HTTP_FULL else _digest(self.name, "c", str(self.chain))[:12],
            epoch=self.epoch,
            epoch_turn=self.epoch_turn,
            mode=mode,
            reason=reason,
            epoch_reset_reason=EpochReason.SUMMARIZE if reason is Reason.EPOCH_RESET else None,
            eligible=reason not in NOT_ELIGIBLE,
            changed_fields=("tools",) if reason is Reason.NON_INPUT_FIELDS_CHANGED else (),
            fallback_reason=self._fallback(reason),
            attempts=1,
            connection=None
            if mode is Mode.HTTP_FULL
            else _digest(self.name, "conn", str(self.chain))[:12],
            previous_response_id=self.response if mode.incremental else None,
            response_id=response,
            prompt_cache_key=self.name,
            store=False,
            items_total=self.items,
            items_sent=sent,
            baseline_items=self.baseline_items if before is not None else None,
            bytes_total=size,
            bytes_sent=size * sent // self.items,
            evidence=evidence,
            prefix_digest=before if mode.incremental else None,
            baseline_digest=self.baseline,
            usage=usage,
            ttft_ms=ttft,
            first_event_ms=first,
            queue_ms=random.uniform(0.1, 0.9),
            connect_ms=connect,
            duration_ms=duration,
            http_status=200,
        )
        self.response = None if mode is Mode.HTTP_FULL else response
        self.items += output_items
        self.baseline_items = self.items
        self.tokens += usage.output_tokens or 0
        return turn

    def _fallback(self, reason: Reason) -> str | None:
        if reason is Reason.WS_REJECTED:
            return "upgrade_426"
        if reason is Reason.CONNECTION_LOST:
            return ColdCause.HTTP if self.response is None else ColdCause.CLOSED
        return None

    def _usage(self, at: float, reason: Reason) -> Usage:
        """Cached is what the cache has seen and still holds of an unchanged prefix."""
        total = self.tokens
        held = self.seen if at - self.seen_at < _CACHE_SECONDS else 0
        if reason is Reason.EPOCH_RESET or reason is Reason.NON_INPUT_FIELDS_CHANGED:
            held = 0
        elif reason is Reason.PREFIX_MISMATCH:
            held = int(held * self.random.uniform(0.2, 0.6))
        cached = min(held, total) // _BLOCK * _BLOCK
        if cached < _MINIMUM:
            cached = 0
        self.seen, self.seen_at = total, at
        out = self.random.randrange(40, 420)
        thought = out * self.random.randrange(0, 60) // 100
        return Usage(
            input_tokens=total,
            cached_tokens=cached,
            output_tokens=out,
            reasoning_tokens=thought,
            total_tokens=total + out,
            state=UsageState.REPORTED,
        )

    def _evidence(self) -> Evidence:
        """An old tool result lost its ``_meta`` block."""
        lost = self.random.randrange(900, 2_400)
        evidence = Evidence(
            index=max(1, (self.baseline_items or 3) - 3),
            kind_before="function_call_output",
            kind_now="function_call_output",
            length_before=self.baseline_items or 0,
            length_now=self.items,
            path="/output/_meta",
            klass=DivergenceClass.EDITED,
            nature=Nature.REMOVED,
            items_gone=1,
            items_new=1,
            freezable=("_meta",),
            value_length_before=2 + lost % 4,
            digest_before=_digest(self.name, "old", str(lost)),
        )
        return replace(evidence, fingerprint=self.fingerprint(evidence))


def _first_event(random: Random, mode: Mode, usage: Usage) -> float:
    """Milliseconds: what is not cached has to be read, and HTTP pays for every request."""
    fresh = usage.non_cached_tokens or 0
    base = 560.0 if mode is Mode.HTTP_FULL else 210.0
    return (base + fresh / 14.0 + (usage.cached_tokens or 0) / 400.0) * random.uniform(0.85, 1.5)


def _digest(*parts: Any) -> str:
    return blake2b("/".join(map(str, parts)).encode(), digest_size=16).hexdigest()
