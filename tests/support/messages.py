"""Messages of alerts for the tests of what receivers get."""

from __future__ import annotations

from typing import Any

from app.alerts.causes import Details, TopCause
from app.alerts.message import Links, Message
from app.alerts.signals import Confidence, Measure, Signal, read
from app.alerts.states import Cause, State, Told
from tests.support.alerts import MINUTE, make_rule
from tests.support.rows import START_MS

BASE = "http://127.0.0.1:8787"
LINKS = Links(
    alert=f"{BASE}/alerts?rule=rule-1",
    rows=f"{BASE}/requests?reason=prefix_mismatch&by=recorded",
    csv=f"{BASE}/api/requests.csv?reason=prefix_mismatch&by=recorded",
    silence=f"{BASE}/alerts?silence=rule-1",
)


def make_details(**overrides: Any) -> Details:
    given: dict[str, Any] = {
        "top_causes": (
            TopCause(
                sentence="An old tool result changed at /output/_meta.",
                reason="prefix_mismatch",
                fingerprint="0f1e2d3c4b5a6978",
                turns=28,
            ),
            TopCause(
                sentence="The instructions changed.",
                reason="prefix_mismatch",
                fingerprint=None,
                turns=1,
            ),
        ),
        "top_fingerprints": ("0f1e2d3c4b5a6978",),
        "sample_turn_ids": ("turn_1", "turn_2"),
        "rows": 30,
    }
    return Details(**(given | overrides))


def make_message(**overrides: Any) -> Message:
    """30 of 100 eligible turns broke by a mismatch; it has just begun to fire."""
    rule = overrides.pop("rule", None) or make_rule(
        confidence="wilson", threshold=0.2, recover=0.1, window="15m", min_turns=20
    )
    measure = Measure(rows=120, part=30, whole=100, turns=100)
    given: dict[str, Any] = {
        "told": Told.FIRING,
        "before": State.INACTIVE,
        "now": State.FIRING,
        "rule": rule,
        "labels": {},
        "reading": read(Signal.MISMATCH_RATE, Confidence.WILSON, 20, measure),
        "start": START_MS - 15 * MINUTE,
        "end": START_MS,
        "started_at": START_MS,
        "ended_at": None,
        "peak": 0.3,
        "cause": Cause.CROSSED,
        "details": make_details(),
        "links": LINKS,
        "dedupe_key": "d" * 64,
        "at": START_MS,
    }
    return Message(**(given | overrides))


def make_resolved(**overrides: Any) -> Message:
    """It fired for 25 minutes, up to 35 %, and recovered."""
    measure = Measure(rows=120, part=5, whole=100, turns=100)
    end = START_MS + 25 * MINUTE
    given: dict[str, Any] = {
        "told": Told.RESOLVED,
        "before": State.FIRING,
        "now": State.INACTIVE,
        "reading": read(Signal.MISMATCH_RATE, Confidence.WILSON, 20, measure),
        "start": end - 15 * MINUTE,
        "end": end,
        "ended_at": end,
        "peak": 0.35,
        "cause": Cause.CLEARED,
        "at": end,
    }
    return make_message(**(given | overrides))
