"""Random rows and filters for property tests that compare SQL with plain Python."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from app.ledger.filters import DIMENSIONS, Filter
from app.ledger.rows import TurnRow
from engine.model import Kind, Mode, Reason, Status, UsageState
from tests.support.rows import START_MS, make_row

HOUR = 3_600_000
names = st.sampled_from(["a", "B", "b", "a%b", "a_b", "!x", "\\x", "é", "É", "unknown", "x,y"])
maybe_names = st.none() | names
counts = st.none() | st.integers(0, 100)


def _row(values: dict[str, Any]) -> TurnRow:
    given, cached = values["input_tokens"], values["cached_tokens"]
    if given is not None and cached is not None:
        values["cached_tokens"] = min(given, cached)
    return make_row(**values)


rows = st.fixed_dictionaries(
    {
        "started_at": st.integers(START_MS, START_MS + 6 * HOUR),
        "recorded_at": st.integers(START_MS, START_MS + 6 * HOUR),
        "kind": st.sampled_from([kind.value for kind in Kind]),
        "status": st.sampled_from([status.value for status in Status]),
        "mode": st.none() | st.sampled_from([mode.value for mode in Mode]),
        "reason": st.none() | st.sampled_from([reason.value for reason in Reason]),
        "eligible": st.booleans(),
        "source": names,
        "session": maybe_names,
        "session_key": names,
        "root_session": maybe_names,
        "tenant": names,
        "chain": maybe_names,
        "client": maybe_names,
        "upstream": names,
        "model": maybe_names,
        "fingerprint": maybe_names,
        "changed_fields": maybe_names,
        "fallback_reason": maybe_names,
        "cache_verdict": maybe_names,
        "error_code": maybe_names,
        "input_tokens": counts,
        "cached_tokens": counts,
        "cache_write_tokens": counts,
        "output_tokens": counts,
        "reasoning_tokens": counts,
        "cost_usd": st.none() | st.integers(0, 3 * 10**9).map(lambda nano: Decimal(nano) / 10**9),
        "ttft_ms": st.none() | st.floats(0, 1e6, allow_nan=False),
        "usage_state": st.sampled_from([state.value for state in UsageState]),
    }
).map(_row)

_closed = {
    "mode": st.sampled_from([*Mode, "unknown"]).map(str),
    "eligible": st.sampled_from(["true", "false"]),
    "status": st.sampled_from(list(Status)).map(str),
    "kind": st.sampled_from(list(Kind)).map(str),
    "cache": st.sampled_from(["hit", "partial", "miss", "unknown"]),
    "reason": st.sampled_from([*Reason, "unknown"]).map(str),
    "verdict": names | st.just("unjudged"),
    "break": names
    | st.sampled_from(
        ["reason:prefix_mismatch", "reason:connection_lost:a", "reason:unknown", "verdict:unknown"]
    ),
}


@st.composite
def filters(draw: st.DrawFn, *, most: int = 3) -> Filter:
    """A filter with a few dimensions; often one that leaves some rows and not others."""
    start = draw(st.integers(START_MS - HOUR, START_MS + 5 * HOUR))
    include: dict[str, tuple[str, ...]] = {}
    exclude: dict[str, tuple[str, ...]] = {}
    for name in draw(st.lists(st.sampled_from(DIMENSIONS), max_size=most, unique=True)):
        values = draw(st.lists(_closed.get(name, names), min_size=1, max_size=3, unique=True))
        (exclude if draw(st.booleans()) else include)[name] = tuple(values)
    return Filter(
        start=start,
        end=start + draw(st.integers(1, 7 * HOUR)),
        by=draw(st.sampled_from(["started", "recorded"])),
        include=include,
        exclude=exclude,
        q=draw(st.none() | st.sampled_from(["a", "B", "%", "_", "\\", "turn-", "é", "É", "!"])),
    )


def everything(by: str = "started") -> Filter:
    """A window around all random rows."""
    return Filter(
        start=START_MS - HOUR,
        end=START_MS + 8 * HOUR,
        by="recorded" if by == "recorded" else "started",
    )
