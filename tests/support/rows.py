"""Rows and facts for tests: everything plausible by default, each test names what matters to it."""

from __future__ import annotations

import itertools
from typing import Any

from app.ledger.journal.records import Begun
from app.ledger.rows import COLUMNS, TurnRow, to_ms
from engine.model import Kind, Mode, Reason, Status, TurnFacts, Usage, UsageState
from tests.support.clock import START

_numbers = itertools.count(1)
"""Of turns; their ids sort as they were made, however many there were before."""

START_MS = to_ms(START)

_UNKNOWN: dict[str, Any] = dict.fromkeys(COLUMNS)


def make_row(**changes: Any) -> TurnRow:
    """A completed, incremental generation turn of 1,000 tokens, 900 of them cached.

    ``non_cached_tokens`` and ``total_tokens`` follow from the tokens that are given, and
    ``session_key`` from ``session``, unless they are given too.
    """
    values: dict[str, Any] = {
        "turn_id": f"turn-{next(_numbers):07}",
        "started_at": START_MS,
        "source": "gateway",
        "kind": "generation",
        "status": "completed",
        "session": "session-a",
        "tenant": "tenant-1",
        "client_transport": "sse",
        "upstream": "default",
        "model": "gpt-5.6-sol",
        "mode": "ws_incremental",
        "reason": "ok",
        "eligible": True,
        "attempts": 1,
        "input_tokens": 1_000,
        "cached_tokens": 900,
        "output_tokens": 50,
        "usage_state": "reported",
        "ttft_ms": 420.0,
        "duration_ms": 1_800.0,
    }
    values |= changes
    values.setdefault("ended_at", values["started_at"] + 1_800)
    values.setdefault("recorded_at", values["ended_at"] + 10)
    values.setdefault("session_key", f"key-{values['session']}")
    given, cached, out = (
        values[name] for name in ("input_tokens", "cached_tokens", "output_tokens")
    )
    values.setdefault(
        "non_cached_tokens", None if given is None or cached is None else max(0, given - cached)
    )
    values.setdefault("total_tokens", None if given is None or out is None else given + out)
    return TurnRow(**(_UNKNOWN | values))


def unknown_usage(**changes: Any) -> TurnRow:
    """A row whose provider said nothing about tokens."""
    missing = dict.fromkeys(("input_tokens", "cached_tokens", "output_tokens"))
    return make_row(**(missing | {"usage_state": "missing"} | changes))


def make_facts(**changes: Any) -> TurnFacts:
    """What the engine knows of a turn like that of ``make_row``."""
    values: dict[str, Any] = {
        "turn_id": f"turn-{next(_numbers):07}",
        "started_at": START,
        "ended_at": START + 1.8,
        "kind": Kind.GENERATION,
        "status": Status.COMPLETED,
        "session": "session-a",
        "session_key": "key-session-a",
        "tenant": "tenant-1",
        "upstream": "default",
        "client_transport": "sse",
        "model": "gpt-5.6-sol",
        "mode": Mode.WS_INCREMENTAL,
        "reason": Reason.OK,
        "eligible": True,
        "attempts": 1,
        "usage": make_usage(),
        "ttft_ms": 420.0,
        "duration_ms": 1_800.0,
    }
    return TurnFacts(**(values | changes))


def make_usage(**changes: Any) -> Usage:
    values: dict[str, Any] = {
        "input_tokens": 1_000,
        "cached_tokens": 900,
        "output_tokens": 50,
        "total_tokens": 1_050,
        "state": UsageState.REPORTED,
    }
    return Usage(**(values | changes))


def make_begun(**changes: Any) -> Begun:
    """What is known of a turn when its request has come in."""
    known: dict[str, Any] = {
        "turn_id": "turn_1",
        "started_at": 1_000,
        "source": "gateway",
        "kind": "generation",
        "session": "s",
        "session_key": "k",
        "root_session": None,
        "turn_group": "t",
        "tenant": "te",
        "client": "codex",
        "client_version": "1",
        "client_transport": "ws",
        "gateway_version": "0",
        "upstream": "default",
        "model": "gpt",
    }
    return Begun(**{**known, **changes})
