"""Rules, rows and the measures that counting them one by one gives, without any SQL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from app.alerts.groups import key_of
from app.alerts.rules import GROUPINGS, Rule
from app.alerts.signals import CATALOGUE, Measure, Signal
from app.ledger.conditions import matcher
from app.ledger.rows import TurnRow
from tests.support import ledger
from tests.support.alerts import make_rule
from tests.support.rows import START_MS

BEGIN = START_MS - START_MS % 60_000
"""An instant of every rule made here."""
LENGTH = 120_000
IMPORTED = "import:x"
_BAD = ("failed", "error", "rate_limited", "refused")

_instants = st.integers(BEGIN, BEGIN + LENGTH) | st.builds(
    lambda step, beside: BEGIN + step * 5_000 + beside,
    st.integers(0, LENGTH // 5_000),
    st.sampled_from([-1, 0, 1]),
)
rows = st.builds(
    replace,
    ledger.rows,
    recorded_at=_instants,
    source=st.sampled_from(["gateway", "gateway", "embedded", IMPORTED]),
    kind=st.sampled_from(["generation", "generation", "generation", "warmup", "compaction"]),
    status=st.sampled_from(["completed", "completed", "incomplete", *_BAD, "client_closed"]),
    reason=st.sampled_from(["prefix_mismatch", "prefix_mismatch", "ok", "no_baseline", None]),
    missed_tokens=st.none() | st.integers(0, 1_000),
    ttft_ms=st.none() | st.integers(0, 40).map(lambda n: n / 8),
)
"""Rows of two minutes, many of them at the edges of windows."""

_filters = st.sampled_from(
    [
        "",
        "",
        f"source={IMPORTED}",
        f"source={IMPORTED}&source=gateway",
        "source=!gateway",
        "model=a&model=unknown",
        "model=!b",
        "kind=warmup",
        "kind=generation&kind=compaction",
        "status=completed&status=failed",
        "mode=unknown",
        "mode=!ws_full",
        "eligible=false",
        "reason=ok",
        "q=a",
    ]
)


@st.composite
def some_rules(draw: st.DrawFn, signals: tuple[Signal, ...] = tuple(Signal)) -> Rule:
    """A rule of any signal and weight that is evaluated every 10 s."""
    signal = draw(st.sampled_from(signals))
    return make_rule(
        signal=signal.value,
        weight=draw(st.sampled_from(CATALOGUE[signal].weights)).value,
        filter=draw(_filters),
        group_by=draw(st.lists(st.sampled_from(GROUPINGS), max_size=2, unique=True)),
        window=10 * draw(st.integers(1, 7)),
        every=10,
        delay=draw(st.sampled_from([0, 1, 10, 25])),
    )


def labels_of_row(rule: Rule, row: TurnRow) -> dict[str, str]:
    return {name: getattr(row, name) or "unknown" for name in rule.group_by}


def counted(rule: Rule, found: Iterable[TurnRow], instant: int) -> dict[str, Measure]:
    """The measures at an instant, from the definitions in docs/ledger.md and docs/alerts.md."""
    end = instant - rule.delay * 1_000
    start = end - rule.window * 1_000
    belongs = matcher(rule.view(start, end))
    groups: dict[str, list[TurnRow]] = {}
    for row in found:
        if start <= row.recorded_at < end and belongs(row):
            groups.setdefault(key_of(labels_of_row(rule, row)), []).append(row)
    return {key: _measure(rule, members) for key, members in groups.items()}


def _measure(rule: Rule, members: list[TurnRow]) -> Measure:
    done = [
        r for r in members if r.kind == "generation" and r.status in ("completed", "incomplete")
    ]
    known = [row for row in done if row.mode is not None]
    eligible = [row for row in known if row.eligible]
    continued = ("ws_incremental", "http_incremental")
    total, unknown_mode = len(members), len(done) - len(known)
    match rule.signal:
        case "mismatch_rate":
            part = [row for row in eligible if row.reason == "prefix_mismatch"]
            return _rate(rule, total, part, eligible, unknown_mode)
        case "break_rate":
            part = [row for row in eligible if row.mode not in continued]
            return _rate(rule, total, part, eligible, unknown_mode)
        case "incremental_rate":
            part = [row for row in known if row.mode in continued]
            return _rate(rule, total, part, known, unknown_mode)
        case "error_rate":
            stayed = [row for row in members if row.status != "client_closed"]
            return _rate(rule, total, [r for r in stayed if r.status in _BAD], stayed, 0)
        case "cached_ratio":
            used = [row for row in done if _usage_known(row)]
            cached, given = _sum(used, "cached_tokens"), _sum(used, "input_tokens")
            return Measure(total, cached, given, len(used), len(done) - len(used))
        case "ttft_p95":
            samples = tuple(sorted(row.ttft_ms for row in done if row.ttft_ms is not None))
            return Measure(total, 0, 0, len(samples), len(done) - len(samples), samples)
        case "missed_tokens":
            judged = [row for row in done if row.missed_tokens is not None]
            missed = _sum(judged, "missed_tokens")
            return Measure(total, missed, 0, len(judged), len(done) - len(judged))
    raise AssertionError(rule.signal)


def _rate(
    rule: Rule, total: int, part: list[TurnRow], whole: list[TurnRow], unknown: int
) -> Measure:
    if rule.weight == "turns":
        return Measure(total, len(part), len(whole), len(whole), unknown)
    used = [row for row in whole if _usage_known(row)]
    given = _sum([row for row in part if _usage_known(row)], "input_tokens")
    return Measure(
        total, given, _sum(used, "input_tokens"), len(used), unknown + len(whole) - len(used)
    )


def _usage_known(row: TurnRow) -> bool:
    return row.input_tokens is not None and row.cached_tokens is not None


def _sum(members: list[TurnRow], name: str) -> Any:
    return sum(getattr(row, name) for row in members)
