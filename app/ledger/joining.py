"""What two readings of one record know together.

A log is read while it is written: a request may stand in it before what is told of it later, the
time to its first token say. Read again, it is known, and yet more is known of it. Of two readings
each column takes what one of them knows; where both do, it is decided in a way that does not hang
on which came first. So a file that was imported while it grew, a shorter copy of it, and both in
any order make the row that the whole file makes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.ledger.rows import CLIENT_NAMES, COLUMNS, TurnRow
from engine.model import UsageState

_OURS = frozenset(
    {
        "turn_id",
        "recorded_at",
        "source",
        "tenant",
        "session_key",
        "cache_verdict",
        "cache_grade",
        "missed_tokens",
        "cost_usd",
        "price_note",
        "import_id",
    }
)
"""Columns that say nothing of the record, or that are concluded from the others."""
_LEAST = frozenset({"started_at", "kind", "usage_state"})
"""Where both know, the smaller one stands: the earlier time, ``compaction`` before ``generation``,
and ``inconsistent`` before ``missing`` before ``reported``; else the greater one."""
_JOINED = tuple(name for name in COLUMNS if name not in _OURS)


def joined(one: TurnRow, other: TurnRow) -> TurnRow:
    """``one`` with what ``other`` knows beside it; ``one`` itself where that is nothing."""
    changes: dict[str, Any] = {}
    for name in _JOINED:
        a, b = getattr(one, name), getattr(other, name)
        if a == b or b is None:
            continue
        if a is not None and name in CLIENT_NAMES:
            continue  # they may be hashed in one reading only: the first one stands
        better = b if a is None else min(a, b) if name in _LEAST else max(a, b)
        if better != a:
            changes[name] = better
    if not changes:
        return one
    row = replace(one, **changes)
    if row.usage_state == UsageState.MISSING and row.input_tokens is not None:
        row = replace(row, usage_state=max(one.usage_state, other.usage_state))
    if row.input_tokens is not None and row.output_tokens is not None:
        row = replace(row, total_tokens=row.input_tokens + row.output_tokens)
    if row.input_tokens is not None and row.cached_tokens is not None:
        row = replace(row, non_cached_tokens=max(0, row.input_tokens - row.cached_tokens))
    return row
