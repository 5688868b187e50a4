"""A backtest gives what the live evaluation gave, over the same rows: the same transitions, of the
same groups, for the same causes, at the same times."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.alerts import backtest, event_store, store
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows
from tests.support.alerts import MINUTE, bad_row, make_evaluator, make_rule
from tests.support.clock import ManualClock
from tests.support.measuring import rows
from tests.support.rows import START_MS

BEGIN = START_MS - START_MS % (60 * MINUTE)
LENGTH = 16
"""Minutes."""

RULES: dict[str, dict[str, Any]] = {
    "mismatches": {"pending_for": "1m", "keep_firing_for": "2m"},
    "by model and client": {"group_by": ["model", "client"], "delay": "20s", "window": "2m"},
    "want of rows": {"no_data": "alerting", "group_by": ["model"]},
    "errors": {"signal": "error_rate", "min_turns": 2, "window": "3m", "delay": "45s"},
    "times": {"signal": "ttft_p95", "threshold": 2.0, "window": "4m", "group_by": ["upstream"]},
    "cached": {"signal": "cached_ratio", "threshold": 0.5, "recover": 0.7, "no_data": "ok"},
    "missed": {"signal": "missed_tokens", "threshold": 300, "every": "30s", "window": "1m"},
    "imports": {"filter": "source=import:x", "no_data": "keep_last", "window": "2m"},
}
minutes = st.integers(0, LENGTH * 60_000 - 1)
turns = st.lists(st.tuples(minutes, rows), max_size=40)


def recorded(row: TurnRow) -> int:
    return row.recorded_at


def test_the_same_rows_give_the_same_transitions_live_and_in_a_backtest(
    holding: Callable[..., Engine],
) -> None:
    """Live, turns are written as they end, and the evaluator runs at any quarter of a minute, as
    if it had been stopped in between."""
    compared = 0

    @settings(max_examples=40, deadline=None)
    @example("mismatches", [(minute * MINUTE, bad_row()) for minute in range(5)], {3, 7, 30})
    @given(
        name=st.sampled_from(sorted(RULES)),
        turns=turns,
        ticks=st.sets(st.integers(1, LENGTH * 4), max_size=20),
    )
    def compare(name: str, turns: list[tuple[int, TurnRow]], ticks: set[int]) -> None:
        nonlocal compared
        engine = holding([])
        rule = make_rule(**RULES[name])
        store.create_rule(engine, rule, BEGIN)
        waiting = sorted((replace(row, recorded_at=BEGIN + at) for at, row in turns), key=recorded)
        clock = ManualClock(BEGIN / 1_000)
        live = make_evaluator(engine, clock)
        for quarter in sorted({*ticks, LENGTH * 4}):
            now = BEGIN + quarter * MINUTE // 4
            clock.set_now(now / 1_000)
            due = bisect_left(waiting, now, key=recorded)
            write_rows(engine, waiting[:due])
            del waiting[:due]
            live.tick()
        events = event_store.page(engine, limit=event_store.MOST).events
        happened = [(e.at, e.group_key, e.before, e.after, e.cause) for e in reversed(events)]

        found = backtest.run(engine, rule, BEGIN + 1, BEGIN + LENGTH * MINUTE)
        expected = [(t.at, key, t.before, t.after, t.cause) for key, t in found.transitions]
        assert happened == expected
        compared += len(happened)

    compare()
    assert compared >= 4, "that nothing happens at all would prove nothing"
