"""Done when a backtest gives the same transitions at the same times as the live evaluation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.alerts import backtest, evaluator, event_store, silences, state_store, store
from app.alerts.rules import NoData, Rule
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows
from engine.model import Mode, Reason
from tests.support.alerts import MINUTE, make_evaluator, make_rule
from tests.support.clock import ManualClock
from tests.support.rows import START_MS, make_row

BEFORE = 5 * MINUTE
"""Rows are recorded from so long before the rule was made."""
LASTING = 40 * MINUTE
END = START_MS + LASTING


@st.composite
def rows(draw: st.DrawFn) -> list[TurnRow]:
    """In a few bursts, so that windows differ: some empty, some of one row, some of many."""
    found = []
    for _ in range(draw(st.integers(0, 8))):
        burst = draw(st.integers(START_MS - BEFORE, END))
        width = draw(st.sampled_from([1, 20_000, 5 * MINUTE]))
        model = draw(st.sampled_from([st.just("a"), st.sampled_from(["a", "b", None])]))
        reason = st.sampled_from(
            draw(st.sampled_from([[Reason.PREFIX_MISMATCH], [Reason.OK, Reason.PREFIX_MISMATCH]]))
        )
        for _ in range(draw(st.integers(1, 12))):
            recorded_at = burst + draw(st.integers(0, width))
            why = draw(reason)
            found.append(
                make_row(
                    started_at=recorded_at - 2_000,
                    recorded_at=recorded_at,
                    model=draw(model),
                    reason=why.value,
                    mode=Mode.WS_INCREMENTAL if why is Reason.OK else Mode.WS_FULL,
                    eligible=draw(st.integers(0, 9)) > 0,
                    status=draw(st.sampled_from(["completed", "completed", "failed"])),
                    cached_tokens=draw(st.sampled_from([None, 0, 500, 1_000])),
                    ttft_ms=draw(st.none() | st.sampled_from([100.0, 900.0, 2_500.0])),
                )
            )
    return found


@st.composite
def made_rules(draw: st.DrawFn) -> Rule:
    every = draw(st.sampled_from([30, 60, 300]))
    signal, threshold, recover = draw(
        st.sampled_from(
            [
                ("mismatch_rate", 0.4, 0.2),
                ("break_rate", 0.4, 0.4),
                ("incremental_rate", 0.5, 0.8),
                ("error_rate", 0.2, 0.1),
                ("cached_ratio", 0.4, 0.6),
                ("ttft_p95", 800, 800),
            ]
        )
    )
    rates = ("mismatch_rate", "break_rate", "incremental_rate", "error_rate")
    return make_rule(
        signal=signal,
        threshold=threshold,
        recover=recover,
        confidence=draw(st.sampled_from(["raw", "wilson"])) if signal in rates else "raw",
        every=every,
        window=every * draw(st.integers(1, 5)),
        delay=draw(st.sampled_from([0, 10, 90])),
        min_turns=draw(st.integers(1, 3)),
        pending_for=draw(st.sampled_from([0, every, 2 * every])),
        keep_firing_for=draw(st.sampled_from([0, every, 150])),
        no_data=draw(st.sampled_from(list(NoData))),
        group_by=draw(st.sampled_from([[], ["model"]])),
        renotify_every=draw(st.sampled_from([0, 60])),
    )


@dataclass(frozen=True)
class Tick:
    at: int
    """Epoch milliseconds, at any time."""
    who: int
    """Which of the two evaluators."""
    restarted: bool


@st.composite
def ticks(draw: st.DrawFn) -> list[Tick]:
    """Often late, sometimes twice at once, with the last one when all is over."""
    times = draw(st.lists(st.integers(START_MS, END), max_size=12))
    return [Tick(at, draw(st.integers(0, 1)), draw(st.booleans())) for at in sorted(times)] + [
        Tick(END + 3 * MINUTE, 0, restarted=False)
    ]


def live(
    engine: Engine,
    rule: Rule,
    recorded: Sequence[TurnRow],
    when: Sequence[Tick],
) -> None:
    """Evaluate as time goes by; a row is in the ledger from the moment of its recording."""
    waiting = sorted(recorded, key=lambda row: row.recorded_at)
    clock = ManualClock(START_MS / 1_000)
    store.create_rule(engine, rule, START_MS)
    both = [make_evaluator(engine, clock) for _ in range(2)]
    for tick in when:
        arrived = [row for row in waiting if row.recorded_at < tick.at]
        write_rows(engine, arrived)
        waiting = waiting[len(arrived) :]
        clock.set_now(tick.at / 1_000)
        if tick.restarted:
            both[tick.who] = make_evaluator(engine, clock)
        both[tick.who].tick()


def transitions(engine: Engine) -> list[Any]:
    """Of the live evaluation, in the order of their writing."""
    found: list[event_store.Event] = []
    cursor = None
    while True:
        page = event_store.page(engine, limit=event_store.MOST, cursor=cursor)
        found += page.events
        cursor = page.next_cursor
        if cursor is None:
            break
    found.sort(key=lambda one: one.id)
    return [(one.group_key, one.at, one.before, one.after, one.cause) for one in found]


@settings(max_examples=40, deadline=None)
@given(
    recorded=rows(),
    rule=made_rules(),
    when=ticks(),
    silence=st.none() | st.integers(1, LASTING),
    chunk=st.sampled_from([1, 3, 1_440]),
)
def test_a_backtest_gives_the_transitions_of_the_live_evaluation(
    holding: Callable[..., Engine],
    recorded: list[TurnRow],
    rule: Rule,
    when: list[Tick],
    silence: int | None,
    chunk: int,
) -> None:
    """Whenever the evaluators tick, whoever of them does, and whoever is to be left in peace."""
    engine = holding([])
    if silence is not None:
        silences.create(
            engine,
            id="silence-1",
            rule_id=None,
            matchers={},
            ends_at=START_MS + silence,
            now=START_MS,
        )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(evaluator, "CHUNK", chunk)
        live(engine, rule, recorded, when)
    tested = backtest.run(engine, rule, START_MS + 1, when[-1].at)
    expected = [
        (key, moved.at, moved.before, moved.after, moved.cause) for key, moved in tested.transitions
    ]
    event(f"transitions: {min(len(expected), 5)}")
    assert store.get_rule(engine, rule.id).failure is None
    assert transitions(engine) == expected
    with engine.connect() as connection:
        now = state_store.load(connection, rule.id)
    assert {
        key: (state.memory.started_at, state.memory.peak)
        for key, state in now.items()
        if state.memory.fires
    } == {
        firing.group: (firing.started_at, firing.peak)
        for firing in tested.firings
        if firing.ended_at is None
    }
