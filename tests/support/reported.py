"""Turns with verdicts, and the figures that they come to."""

from __future__ import annotations

import itertools
from typing import Any

from app.ledger.rows import TurnRow
from tests.support.rows import START_MS, make_row

MINUTE = 60_000

SILENT: dict[str, Any] = {"mode": None, "reason": None, "eligible": False, "ttft_ms": None}
"""What a log does not tell that knows no more than usage."""


def judged(verdict: str, grade: str, missed: int | None, cached: int, **changes: Any) -> TurnRow:
    """A turn that is judged already."""
    values: dict[str, Any] = {
        "input_tokens": 20_000,
        "cached_tokens": cached,
        "cache_verdict": verdict,
        "cache_grade": grade,
        "missed_tokens": missed,
    }
    return make_row(**(values | changes))


def some_turns(**changes: Any) -> list[TurnRow]:
    """Of 40,000 tokens to be read again, 10,000 are missed: 7,000, 2,000 and 1,000 of them by three
    causes, most of them in ``session-b``. Each begins a minute after the one before it."""
    moved = {
        "mode": "ws_full",
        "reason": "prefix_mismatch",
        "diverged_class": "edited",
        "diverged_kind": "function_call_output",
        "diverged_path": "/output/_meta/elapsed",
        "evidence": '{"index": 3, "kind_before": "function_call_output",'
        ' "kind_now": "function_call_output", "path": "/output/_meta/elapsed",'
        ' "offset": 112, "class": "edited"}',
    }
    minutes = itertools.count()

    def turn(*verdict: Any, **own: Any) -> TurnRow:
        begun = {"started_at": START_MS + next(minutes) * MINUTE}
        return judged(*verdict, **(begun | own | changes))

    return [
        turn("cold_start", "proven", 0, 0),
        turn("hit", "proven", 0, 16_000),
        turn("shortfall", "proven", 0, 6_000),
        turn("one_off_partial", "possible", 7_000, 4_000, session="session-b"),
        turn("idle", "likely", 1_000, 0, session="session-b"),
        turn("prefix_changed", "proven", 2_000, 4_000, **moved),
        turn("history_rewrite", "proven", None, 5_000),
        turn("unusable", "unknown", None, 0, status="failed"),
    ]
