"""What verdicts and prices stand on: the columns, and which changes of rows take it from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from app.ledger.rows import TurnRow
from engine.model import Kind

JUDGED_BY = (
    "turn_id", "started_at", "ended_at", "source", "kind", "status", "tenant", "chain", "epoch",
    "epoch_turn", "upstream", "model", "reasoning_effort", "service_tier", "mode", "reason",
    "epoch_reset_reason", "changed_fields", "previous_response_id", "response_id",
    "prompt_cache_key", "items_total", "input_tokens", "cached_tokens", "cache_write_tokens",
    "cache_write_long_tokens", "usage_state", "provider_miss_reason", "shadow_reason",
)  # fmt: skip
"""All that a verdict depends on, beside the session."""
PRICED_BY = (
    "started_at", "source", "upstream", "model", "service_tier", "input_tokens", "cached_tokens",
    "cache_write_tokens", "cache_write_long_tokens", "output_tokens", "usage_state",
)  # fmt: skip
"""All that a price depends on."""


def with_ground(old: TurnRow, new: TurnRow) -> TurnRow:
    """``new`` in the place of ``old``: without a verdict or a price that it has of it, where the
    ground of that is another one now."""
    if not _same_ground(old, new) and new.cache_verdict == old.cache_verdict:
        new = replace(new, cache_verdict=None, cache_grade=None, missed_tokens=None)
    same_price = (new.cost_usd, new.price_note) == (old.cost_usd, old.price_note)
    if same_price and not _same(PRICED_BY, old, new):
        new = replace(new, cost_usd=None, price_note=None)
    return new


def _same_ground(old: TurnRow, new: TurnRow) -> bool:
    return _same(("session_key", *JUDGED_BY), old, new)


def _same(names: Iterable[str], old: TurnRow, new: TurnRow) -> bool:
    return all(getattr(old, name) == getattr(new, name) for name in names)


def shaken(changes: Iterable[tuple[TurnRow, TurnRow]]) -> set[str]:
    """Sessions where something changed, and no turn waits for that reason."""
    sessions = set()
    for old, new in changes:
        if old.session_key != new.session_key:
            sessions.add(old.session_key)
        if new.kind != Kind.GENERATION and not _same_ground(old, new):
            sessions.add(new.session_key)
    return sessions


def moved(changes: Iterable[tuple[TurnRow, TurnRow]]) -> set[str]:
    """Sessions that something changed in on which verdicts stand."""
    return {
        row.session_key for old, new in changes if not _same_ground(old, new) for row in (old, new)
    }
