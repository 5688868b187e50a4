"""A history of 100,000 tokens that was condensed to 20,000, and what that costs at list prices: see
tests/app/analysis/test_compaction.py for the calculation."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

_numbers = itertools.count(1)
AT = 1_793_577_600_000
PAID, SAVES = 119_000_000, 32_000_000


def turn(given: int | None, cached: int | None, written: int = 0, **more: Any) -> SimpleNamespace:
    values: dict[str, Any] = {
        "turn_id": f"t{next(_numbers)}", "session_key": "k", "session": "s", "started_at": AT, "ended_at": AT,
        "source": "gateway", "chain": None, "mode": None, "reason": None, "shadow_reason": None, "items_total": None,
        "previous_response_id": None, "response_id": None,
        "kind": "generation", "status": "completed", "model": "gpt-5.6-sol", "upstream": "default",
        "service_tier": None, "epoch_reset_reason": None, "cache_verdict": "hit",
        "usage_state": "reported", "input_tokens": given, "cached_tokens": cached,
        "cache_write_tokens": written, "cache_write_long_tokens": 0, "output_tokens": 0,
        "selected": True,
    }  # fmt: skip
    return SimpleNamespace(**(values | more))


def request(**more: Any) -> SimpleNamespace:
    return turn(100_000, 100_000, kind="compaction", output_tokens=500, **more)


def condensed(turns: int = 1, **more: Any) -> list[SimpleNamespace]:
    """A turn of 100,000 tokens, the reset, and some turns after it."""
    after = [turn(20_000 + 1_000 * n, 19_000 + 1_000 * n, **more) for n in range(1, turns)]
    first = turn(20_000, 5_000, 15_000, epoch_reset_reason="compaction", **more)
    return [turn(100_000, 99_000, **more), request(**more), first, *after]
