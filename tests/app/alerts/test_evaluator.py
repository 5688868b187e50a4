"""Each instant is evaluated once, whoever evaluates, whatever stops (CASES 113 to 115, 117)."""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event, select, update
from sqlalchemy.exc import OperationalError

from app.alerts import delivery_log, evaluator, measures, store, tables
from app.alerts.rules import Rule
from app.alerts.signals import Lack
from app.alerts.states import State
from app.ledger.writer import write_rows
from tests.support.alerts import (
    MINUTE,
    begin,
    bodies,
    last_reading,
    make_evaluator,
    messages,
    minute,
    moves,
    state_of,
    write,
)
from tests.support.clock import START, ManualClock
from tests.support.rows import START_MS, unknown_usage


def test_it_fires_once_while_the_threshold_stays_crossed_and_resolves_once(engine: Engine) -> None:
    """CASES 113: crossed, then 20 more requests, then quiet: 1 firing, 1 resolved."""
    begin(engine)
    for number in range(20):
        write(engine, START_MS + number * MINUTE, bad=1)
    write(engine, START_MS + 20 * MINUTE, good=5)
    clock = ManualClock(START)
    live = make_evaluator(engine, clock)
    for _ in range(25):
        clock.advance(60)
        live.tick()
    assert messages(engine) == [("firing", "ops"), ("resolved", "ops")]
    assert moves(engine)[:2] == [(1, "inactive", "firing"), (21, "firing", "inactive")]


def test_nothing_is_due_before_the_next_instant(engine: Engine) -> None:
    begin(engine)
    live = make_evaluator(engine, minute(0.99))
    assert live.tick() == 0
    assert make_evaluator(engine, minute(1)).tick() == 1
    assert make_evaluator(engine, minute(1)).tick() == 0


def test_a_restart_while_it_fires_repeats_nothing(engine: Engine) -> None:
    """CASES 115, the first: 0 new firings."""
    begin(engine)
    write(engine, START_MS, bad=1)
    write(engine, START_MS + MINUTE, bad=1)
    make_evaluator(engine, minute(1)).tick()
    make_evaluator(engine, minute(1)).tick()
    make_evaluator(engine, minute(2)).tick()
    assert messages(engine) == [("firing", "ops")]


def test_a_restart_after_the_time_of_a_reminder_reminds_once(engine: Engine) -> None:
    """CASES 115, the second: 1 new message, which says that it is a reminder."""
    begin(engine, renotify_every="5m")
    for number in range(8):
        write(engine, START_MS + number * MINUTE, bad=1)
    make_evaluator(engine, minute(1)).tick()
    make_evaluator(engine, minute(4)).tick()
    assert messages(engine) == [("firing", "ops")]
    make_evaluator(engine, minute(7)).tick()
    make_evaluator(engine, minute(8)).tick()
    assert messages(engine) == [("firing", "ops"), ("firing", "ops")]
    assert [body["repeat"] for body in bodies(engine)] == [0, 1]
    assert [each.repeat for each in delivery_log.page(engine).deliveries] == [1, 0]


def test_a_restart_after_it_resolved_repeats_nothing(engine: Engine) -> None:
    """CASES 115, the third: 0 new firings."""
    begin(engine)
    write(engine, START_MS, bad=1)
    write(engine, START_MS + MINUTE, good=1)
    make_evaluator(engine, minute(1)).tick()
    make_evaluator(engine, minute(2)).tick()
    told = [("firing", "ops"), ("resolved", "ops")]
    assert messages(engine) == told
    make_evaluator(engine, minute(3)).tick()
    assert messages(engine) == told


@pytest.mark.parametrize(("turns", "lack"), [(0, Lack.NO_ROWS), (1, Lack.TOO_FEW)])
def test_too_little_fires_nothing_and_the_reading_says_why(
    engine: Engine, turns: int, lack: Lack
) -> None:
    """CASES 117: a window without rows, and one with a single row that is bad."""
    rule = begin(engine, min_turns=20)
    write(engine, START_MS, bad=turns)
    make_evaluator(engine, minute(1)).tick()
    assert messages(engine) == []
    assert moves(engine) == [(1, "inactive", "no_data")]
    assert last_reading(engine, rule).reading.lack is lack


def test_unknown_usage_fires_nothing_and_the_reading_says_why(engine: Engine) -> None:
    rule = begin(
        engine,
        signal="cached_ratio",
        threshold=0.5,
        recover=0.5,
        no_data="no_data",
    )
    write_rows(engine, [unknown_usage(recorded_at=START_MS + n) for n in range(30)])
    make_evaluator(engine, minute(1)).tick()
    assert messages(engine) == []
    found = last_reading(engine, rule).reading
    assert (None, Lack.ALL_UNKNOWN, 30) == (found.value, found.lack, found.measure.unknown)


def test_a_reading_holds_its_window(engine: Engine) -> None:
    rule = begin(engine, window="5m", delay="10s")
    make_evaluator(engine, minute(1.5)).tick()
    found = last_reading(engine, rule)
    assert found.at == START_MS + MINUTE
    assert found.window_start == START_MS - 4 * MINUTE - 10_000
    assert found.window_end == START_MS + 50_000


def test_every_instant_of_a_stop_is_caught_up(engine: Engine) -> None:
    begin(engine)
    write(engine, START_MS, bad=1)
    write(engine, START_MS + MINUTE, good=1)
    write(engine, START_MS + 2 * MINUTE, bad=1)
    assert make_evaluator(engine, minute(3)).tick() == 3
    assert [told for told, _ in messages(engine)] == ["firing", "resolved", "firing"]
    assert [(1, "inactive", "firing"), (2, "firing", "inactive"), (3, "inactive", "firing")] == (
        moves(engine)
    )


def test_instants_older_than_a_day_are_skipped_and_the_state_is_kept(engine: Engine) -> None:
    rule = begin(engine)
    write(engine, START_MS, bad=1)
    make_evaluator(engine, minute(1)).tick()
    two_days = 2 * 1_440
    write(engine, START_MS + (two_days - 1) * MINUTE, bad=1)
    assert make_evaluator(engine, minute(two_days)).tick() == 1_440
    assert moves(engine)[0] == (1, "inactive", "firing")
    assert moves(engine)[1][0] > 1_440
    assert state_of(engine, rule).memory.state is State.FIRING


def count_claims(engine: Engine) -> list[str]:
    """A list that grows with every transaction that owns an evaluation."""
    claims: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.startswith("UPDATE alert_rules"):
            claims.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    return claims


def test_waiting_begins_anew_where_instants_were_skipped(engine: Engine) -> None:
    """A threshold that was crossed two days ago has not been so ever since."""
    begin(engine, pending_for="10m")
    write(engine, START_MS, bad=1)
    make_evaluator(engine, minute(1)).tick()
    assert moves(engine) == [(1, "inactive", "pending")]
    later = 2 * 1_440
    # The window of the first instant that is made up for, and no other of the skipped ones.
    write(engine, START_MS + (later - 1_440) * MINUTE, bad=1)
    make_evaluator(engine, minute(later)).tick()
    assert "firing" not in [after for _, _, after in moves(engine)]


def test_a_daily_rule_waits_over_its_instants(engine: Engine) -> None:
    """A tick comes some seconds after its instant: the one before is then more than a day ago,
    but nothing between the two was left out."""
    begin(engine, every="1d", window="1d", pending_for="2d")
    late = 3_000 / MINUTE
    midnight = 16 * 60  # START is 08:00
    write(engine, START_MS, bad=1)
    for day in range(4):
        write(engine, START_MS + (midnight + day * 1_440 + 60) * MINUTE, bad=1)
        make_evaluator(engine, minute(midnight + day * 1_440 + late)).tick()
    assert [(0, "pending"), (2, "firing")] == [
        ((at - midnight) // 1_440, after) for at, _, after in moves(engine)
    ]


def test_a_clock_that_was_ahead_and_is_set_back_mutes_no_rule(engine: Engine) -> None:
    begin(engine)
    make_evaluator(engine, minute(600)).tick()
    write(engine, START_MS + 4 * MINUTE, bad=1)
    clock = minute(3)
    live = make_evaluator(engine, clock)
    assert [live.tick(), clock.advance(119), live.tick()] == [0, None, 0]
    clock.advance(1)
    assert live.tick() == 1
    assert messages(engine) == [("firing", "ops")]
    assert live.tick() == 0


def test_two_whose_clocks_differ_by_minutes_do_not_evaluate_in_turn(engine: Engine) -> None:
    """To the one that is ahead, the turns of the other come late: the two never agree."""
    begin(engine)
    clock, ahead = minute(0), minute(10)
    live, other = make_evaluator(engine, clock), make_evaluator(engine, ahead)
    for number in range(20):
        write(engine, START_MS + number * MINUTE, bad=1)
        write(engine, START_MS + (10 + number) * MINUTE, good=5)
        for each in (clock, ahead):
            each.advance(60)
        other.tick()
        live.tick()
    assert messages(engine).count(("firing", "ops")) <= 1


def test_a_clock_that_is_a_little_ahead_makes_nobody_evaluate_twice(engine: Engine) -> None:
    begin(engine)
    make_evaluator(engine, minute(3)).tick()
    assert make_evaluator(engine, minute(2)).tick() == 0


def test_a_long_catch_up_is_written_in_parts(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluator, "CHUNK", 4)
    begin(engine)
    for number in range(10):
        write(engine, START_MS + number * MINUTE, bad=1)
    claims = count_claims(engine)
    assert make_evaluator(engine, minute(10)).tick() == 10
    assert len(claims) == 3
    assert messages(engine) == [("firing", "ops")]


def test_who_has_much_to_make_up_for_holds_up_no_other_rule(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluator, "CHUNK", 4)
    begin(engine, id="long", name="A")
    begin(engine, id="short", name="B", every="5m", window="5m")
    order: list[tuple[str, int]] = []
    read = measures.windows

    def windows(engine: Engine, rule: Rule, first: int, last: int) -> Any:
        order.append((rule.id, (last - first) // (rule.every * 1_000) + 1))
        return read(engine, rule, first, last)

    monkeypatch.setattr(measures, "windows", windows)
    assert make_evaluator(engine, minute(10)).tick() == 12
    assert order == [("long", 4), ("short", 2), ("long", 4), ("long", 2)]


@pytest.mark.parametrize("bound", ["CHUNK_LETTERS", "CHUNK_TRANSITIONS"])
def test_a_part_ends_early_when_it_has_much_to_write(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(evaluator, bound, 2)
    begin(engine)
    write(engine, START_MS, bad=1)
    write(engine, START_MS + MINUTE, good=1)
    write(engine, START_MS + 2 * MINUTE, bad=1)
    claims = count_claims(engine)
    assert make_evaluator(engine, minute(3)).tick() == 3
    assert len(claims) == 2
    assert [told for told, _ in messages(engine)] == ["firing", "resolved", "firing"]


def test_a_rule_that_cannot_be_read_is_shown_and_stops_no_other(engine: Engine) -> None:
    broken = begin(engine)
    begin(engine, id="rule-2", name="Zebra")
    spoil(engine, broken, '{"name": "Mismatches", "signal": "no such"}')
    write(engine, START_MS, bad=1)
    assert make_evaluator(engine, minute(1)).tick() == 1
    assert [(1, "inactive", "error"), (1, "inactive", "firing")] == moves(engine)
    failure = store.get_rule(engine, broken.id).failure
    assert failure is not None
    assert failure.startswith("BadRuleError")
    assert "no such" not in failure
    assert store.get_rule(engine, "rule-2").failure is None


def test_a_grouped_rule_without_groups_fails_and_works_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no group to be in error; one that does not fit its grouping would stay for ever."""
    rule = begin(engine, group_by=["model"])
    with monkeypatch.context() as patched:
        patched.setattr(measures, "windows", failing(ValueError()))
        make_evaluator(engine, minute(1)).tick()
    assert moves(engine) == []
    assert store.get_rule(engine, rule.id).failure is not None
    write(engine, START_MS + MINUTE, bad=1, model="a")
    make_evaluator(engine, minute(2)).tick()
    assert moves(engine) == [(2, "inactive", "firing")]
    assert store.get_rule(engine, rule.id).failure is None


def test_a_rule_that_works_again_says_so_and_has_no_failure(engine: Engine) -> None:
    rule = begin(engine)
    right = store.get_rule(engine, rule.id).definition
    spoil(engine, rule, "{}")
    make_evaluator(engine, minute(1)).tick()
    spoil(engine, rule, right)
    write(engine, START_MS + MINUTE, good=1)
    make_evaluator(engine, minute(2)).tick()
    assert moves(engine) == [(1, "inactive", "error"), (2, "error", "inactive")]
    assert store.get_rule(engine, rule.id).failure is None


def test_an_error_while_it_fires_tells_nobody_anything(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = begin(engine)
    for number in range(3):
        write(engine, START_MS + number * MINUTE, bad=1)
    make_evaluator(engine, minute(1)).tick()
    with monkeypatch.context() as patched:
        patched.setattr(measures, "windows", failing(ValueError("the text of an error")))
        make_evaluator(engine, minute(2)).tick()
        assert state_of(engine, rule).memory.state is State.ERROR
    make_evaluator(engine, minute(3)).tick()
    assert messages(engine) == [("firing", "ops")]
    assert [move[1:] for move in moves(engine)] == [
        ("inactive", "firing"),
        ("firing", "error"),
        ("error", "firing"),
    ]


def test_the_text_of_an_error_is_nowhere(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rule = begin(engine)
    monkeypatch.setattr(measures, "windows", failing(ValueError("sk-secret")))
    make_evaluator(engine, minute(1)).tick()
    assert "sk-secret" not in caplog.text
    assert "ValueError" in caplog.text
    failure = store.get_rule(engine, rule.id).failure
    assert failure is not None
    assert "sk-secret" not in failure


def test_a_locked_database_changes_nothing_and_the_next_tick_goes_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = begin(engine)
    write(engine, START_MS, bad=1)
    live = make_evaluator(engine, minute(1))
    with monkeypatch.context() as patched:
        locked = OperationalError("", {}, sqlite3.OperationalError("locked"))
        patched.setattr(measures, "windows", failing(locked))
        assert live.tick() == 0
    assert moves(engine) == []
    assert store.get_rule(engine, rule.id).evaluated_until == START_MS
    assert live.tick() == 1
    assert messages(engine) == [("firing", "ops")]


def test_a_database_that_stays_locked_is_logged_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begin(engine)
    live = make_evaluator(engine, minute(1))
    locked = OperationalError("", {}, sqlite3.OperationalError("locked"))
    with monkeypatch.context() as patched:
        patched.setattr(measures, "windows", failing(locked))
        live.tick()
        live.tick()
    assert len([record for record in caplog.records if "later" in record.message]) == 1
    assert live.tick() == 1


def test_a_closed_evaluator_ends_a_long_catch_up_after_the_part_it_is_at(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = begin(engine)
    live = make_evaluator(engine, minute(10))
    monkeypatch.setattr(evaluator, "CHUNK", 4)
    read = measures.windows

    def windows(*given: Any) -> Any:
        live.close()
        return read(*given)

    monkeypatch.setattr(measures, "windows", windows)
    assert live.tick() == 4
    assert live.tick() == 0
    assert store.get_rule(engine, rule.id).evaluated_until == START_MS + 4 * MINUTE


def test_states_that_cannot_be_read_are_left_alone(engine: Engine) -> None:
    """An alert that was told must not be forgotten because a program was older."""
    rule = begin(engine)
    write(engine, START_MS, bad=1)
    make_evaluator(engine, minute(1)).tick()
    with engine.begin() as connection:
        connection.execute(update(tables.states).values(memory='{"state": "of the future"}'))
    make_evaluator(engine, minute(2)).tick()
    with engine.connect() as connection:
        kept = connection.execute(select(tables.states.c.memory)).scalar_one()
    assert kept == '{"state": "of the future"}'
    stored = store.get_rule(engine, rule.id)
    assert stored.evaluated_until == START_MS + 2 * MINUTE
    assert stored.failure is not None


def test_an_alert_is_told_though_its_causes_cannot_be(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(engine)
    write(engine, START_MS, bad=1)
    monkeypatch.setattr("app.alerts.causes.details", failing(KeyError("x")))
    make_evaluator(engine, minute(1)).tick()
    assert messages(engine) == [("firing", "ops")]


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_given: Any) -> Any:
        raise error

    return fail


def spoil(engine: Engine, rule: Rule, definition: str) -> None:
    table = tables.rules
    with engine.begin() as connection:
        connection.execute(update(table).where(table.c.id == rule.id).values(definition=definition))


def test_a_paused_rule_is_not_evaluated(engine: Engine) -> None:
    begin(engine, enabled=False)
    write(engine, START_MS, bad=1)
    assert make_evaluator(engine, minute(1)).tick() == 0
