"""Affinity drift: what decides whose cache a turn meets changed inside a session. Pure.

A turn is held against the one before it in its chain, as verdicts do it. A value that is not known
is no change: the last one that is known counts. Accounts and upstreams are held against those of
the same source: logs and gateways name them each in their own way. What is chosen on purpose
(model, effort) is listed too: it costs as much.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.analysis.chains import Before, order_of
from app.ledger.filters import note
from app.ledger.rows import TurnRow

KINDS: dict[str, str] = {
    "prompt_cache_key": "The cache key",
    "service_tier": "The service tier",
    "tenant": "The account",
    "upstream": "The upstream",
    "connection": "The connection",
    "model": "The model",
    "reasoning_effort": "The reasoning effort",
}
"""Columns of the ledger, and what they are called."""
_NAMED_BY_THE_SOURCE = frozenset({"tenant", "upstream"})
COLUMNS = (
    "turn_id", "started_at", "ended_at", "source", "session", "session_key", "chain", "epoch",
    "epoch_turn", "mode", "reason", "shadow_reason", "previous_response_id", "response_id",
    "items_total", "input_tokens", "missed_tokens", *KINDS,
)  # fmt: skip
"""All that is asked of a row."""


@dataclass(slots=True)
class Drift:
    """One kind of change in one session."""

    kind: str
    session: str | None
    session_key: str
    """Of the example; a session that went to another account or upstream has several."""
    first_at: int
    last_at: int
    example: str
    """The turn with a change that missed most."""
    before: str
    now: str
    """Values of the example."""
    changes: int = 0
    missed: int = 0
    """Tokens that the turns with a change missed."""
    worst: int = -1
    turns: list[str] = field(default_factory=list, compare=False)
    """Those with a change, as long as they may be named one by one."""

    @property
    def sentence(self) -> str:
        times = "once" if self.changes == 1 else f"{self.changes:,} times"
        missed = f"; these turns missed {self.missed:,} tokens" if self.missed else ""
        return f"{KINDS[self.kind]} changed {times} inside the session{missed}."


def drifts(rows: Iterable[TurnRow]) -> list[Drift]:
    """What changed inside one session; one finding of a kind."""
    found: dict[str, Drift] = {}
    before: Before[dict[tuple[str, str], str]] = Before()
    for row in sorted(rows, key=order_of):
        known = before.of(row) or {}
        own = {
            (kind, row.source if kind in _NAMED_BY_THE_SOURCE else ""): value
            for kind in KINDS
            if (value := getattr(row, kind)) is not None
        }
        for key, value in own.items():
            if known.get(key, value) != value:
                _add(found, key[0], row, known[key], value)
        before.push(row, known | own)
    return list(found.values())


def _add(found: dict[str, Drift], kind: str, row: TurnRow, before: str, now: str) -> None:
    at, missed = row.started_at, row.missed_tokens or 0
    one = found.get(kind)
    if one is None:
        one = found[kind] = Drift(
            kind, row.session, row.session_key, at, at, row.turn_id, before, now
        )
    one.changes += 1
    note(one.turns, row.turn_id)
    one.missed += missed
    one.first_at, one.last_at = min(one.first_at, at), max(one.last_at, at)
    if missed > one.worst:
        one.worst, one.example, one.session_key = missed, row.turn_id, row.session_key
        one.before, one.now = before, now
