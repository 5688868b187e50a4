"""The rules of the states, one by one. ``test_states_oracle`` compares them with another reading
of the same rules; ``test_notices`` is about who is told."""

import json
from dataclasses import replace

import pytest

from app.alerts import states
from app.alerts.records import memory_from_dict, memory_to_dict
from app.alerts.signals import Confidence, Lack, Measure, Reading, read
from app.alerts.states import Cause, Memory, State, Transition
from tests.support.alerts import MINUTE, make_rule
from tests.support.verdicts import path, reading, rule_of, walk


def test_without_waits_an_alert_fires_and_ends_at_once():
    assert path(walk(rule_of(), "clear breach breach clear clear")[1]) == [
        (1, "firing", "crossed"),
        (3, "inactive", "cleared"),
    ]


def test_twenty_turns_beyond_the_threshold_fire_once():
    """Field report 113: a storm of alerts after the crossing."""
    memory, happened = walk(rule_of(), ["breach"] * 21 + ["clear"])
    assert path(happened) == [(0, "firing", "crossed"), (21, "inactive", "cleared")]
    assert (memory.started_at, memory.ended_at) == (0, 21 * MINUTE)


def test_a_crossing_has_to_hold_for_as_long_as_the_rule_asks():
    rule = rule_of(pending_for="3m")
    assert path(walk(rule, "breach breach breach breach")[1]) == [
        (0, "pending", "crossed"),
        (3, "firing", "held"),
    ]


@pytest.mark.parametrize("pause", ["clear", "between"])
def test_a_crossing_that_falls_back_waits_anew(pause):
    rule = rule_of(pending_for="2m")
    assert path(walk(rule, f"breach breach {pause} breach breach breach")[1]) == [
        (0, "pending", "crossed"),
        (2, "inactive", "fell_back"),
        (3, "pending", "crossed"),
        (5, "firing", "held"),
    ]


def test_between_the_thresholds_nothing_fires_and_nothing_resolves():
    assert path(walk(rule_of(), "between between breach between between")[1]) == [
        (2, "firing", "crossed")
    ]


def test_an_alert_goes_on_for_as_long_as_the_rule_asks():
    rule = rule_of(keep_firing_for="2m")
    memory, happened = walk(rule, "breach clear clear clear")
    assert path(happened) == [
        (0, "firing", "crossed"),
        (1, "recovering", "cleared"),
        (3, "inactive", "stayed_clear"),
    ]
    assert memory.ended_at == 3 * MINUTE


@pytest.mark.parametrize("relapse", ["breach", "between"])
def test_an_alert_that_relapses_is_the_same_alert(relapse):
    rule = rule_of(keep_firing_for="2m")
    memory, happened = walk(rule, f"breach clear clear {relapse} clear clear")
    assert path(happened) == [
        (0, "firing", "crossed"),
        (1, "recovering", "cleared"),
        (3, "firing", "relapsed"),
        (4, "recovering", "cleared"),
    ]
    assert (memory.started_at, memory.ended_at) == (0, None)


def test_few_turns_on_the_good_side_of_the_bound_are_no_recovery():
    """4 of 20 are 20 %, of which only 8 % are proven: it is not crossed, but not well either."""
    rule = make_rule(threshold=0.2, recover=0.1, confidence="wilson")
    few = read(rule.signal, Confidence.WILSON, 1, Measure(20, 4, 20, 20))
    assert few.bound < 0.1
    assert not states.crossed(rule, few)
    assert not states.recovered(rule, few)


def test_the_thresholds_themselves_are_on_the_good_side():
    rule = rule_of()
    at_threshold = read(rule.signal, rule.confidence, 20, Measure(100, 20, 100, 100))
    at_recovery = read(rule.signal, rule.confidence, 20, Measure(100, 10, 100, 100))
    assert not states.crossed(rule, at_threshold)
    assert states.recovered(rule, at_recovery)


def test_where_low_is_bad_the_rule_fires_below():
    rule = make_rule(signal="cached_ratio", threshold=0.5, recover=0.8)
    verdicts = {}
    for part in (40, 50, 60, 80):
        found = read(rule.signal, rule.confidence, 1, Measure(9, part, 100, 9))
        verdicts[part] = (states.crossed(rule, found), states.recovered(rule, found))
    assert verdicts == {
        40: (True, False),
        50: (False, False),
        60: (False, False),
        80: (False, True),
    }


def test_the_peak_is_the_worst_value_of_this_alert():
    memory, _ = walk(rule_of(), "worse clear breach lacking between")
    assert memory.peak == 0.3
    memory, _ = walk(rule_of(), "breach worse breach clear")
    assert memory.peak == 0.6
    low = make_rule(signal="cached_ratio", threshold=0.5, recover=0.8)
    memory = Memory()
    for part in (40, 20, 60, 90):
        found = read(low.signal, low.confidence, 1, Measure(9, part, 100, 9))
        memory, _ = states.step(low, memory, found, part)
    assert memory.peak == 0.2


# No data


def test_a_window_with_too_little_neither_fires_nor_resolves():
    assert path(walk(rule_of(), "lacking lacking")[1]) == [(0, "no_data", "lacking")]
    for keep in ("0s", "5m"):
        memory, happened = walk(rule_of(keep_firing_for=keep), ["breach"] + ["lacking"] * 50)
        assert path(happened) == [(0, "firing", "crossed")]
        assert memory.ended_at is None


def test_no_rows_one_row_and_unknown_usage_fire_nothing():
    """Field report 117."""
    rule = make_rule(signal="cached_ratio", threshold=0.5, min_turns=20)
    windows = {
        Lack.NO_ROWS: Measure(),
        Lack.TOO_FEW: Measure(1, 0, 1_000, 1),
        Lack.ALL_UNKNOWN: Measure(50, unknown=50),
    }
    for lack, measure in windows.items():
        found = read(rule.signal, rule.confidence, rule.min_turns, measure)
        memory, happened = states.step(rule, Memory(), found, 0)
        assert found.lack is lack
        assert path(happened) == [(0, "no_data", "lacking")]
        text = json.dumps([memory_to_dict(memory), found.value], allow_nan=False)
        assert "NaN" not in text


def test_no_data_ends_when_the_window_can_be_judged():
    assert path(walk(rule_of(), "absent clear absent breach")[1]) == [
        (0, "no_data", "lacking"),
        (1, "inactive", "judged"),
        (2, "no_data", "lacking"),
        (3, "firing", "crossed"),
    ]


def test_an_alert_without_rows_ends_with_the_third_evaluation():
    memory, happened = walk(rule_of(), "breach absent absent clear breach absent absent absent")
    assert path(happened)[2:] == [(4, "firing", "crossed"), (7, "no_data", "gone")]
    assert memory.ended_at == 7 * MINUTE


def test_a_single_row_between_starts_the_count_of_absences_anew():
    memory, _ = walk(rule_of(), "breach absent absent lacking absent absent")
    assert memory.fires


def test_a_group_that_is_gone_ends_inactive_and_is_forgotten():
    rule = rule_of(group_by=["model"])
    memory, happened = walk(rule, "breach absent absent absent")
    assert path(happened) == [(0, "firing", "crossed"), (3, "inactive", "gone")]
    assert states.forgotten(rule, memory)
    quiet, _ = walk(rule, "clear absent absent")
    assert not states.forgotten(rule, quiet)
    assert not states.forgotten(rule_of(), walk(rule_of(), "absent absent absent absent")[0])


def test_a_group_that_could_not_be_judged_shows_it_until_it_is_gone():
    rule = rule_of(group_by=["model"])
    assert path(walk(rule, "lacking absent absent absent")[1]) == [
        (0, "no_data", "lacking"),
        (3, "inactive", "gone"),
    ]


def test_a_group_that_comes_back_before_its_end_was_told_begins_anew():
    rule = rule_of(group_by=["model"])
    told, _ = states.notify(rule, walk(rule, "breach")[0], 0, silenced=False)
    gone, _ = walk(rule, "absent absent absent", told, start=1)
    back = states.come_back(replace(gone, state=State.NO_DATA))
    assert (back.state, back.since, back.absent) == (State.INACTIVE, None, 0)
    assert (back.told, back.started_at, back.ended_at) == (told.told, 0, 3 * MINUTE)


@pytest.mark.parametrize("policy", ["no_data", "ok", "keep_last"])
def test_a_gone_group_that_never_could_be_judged_is_forgotten_too(policy):
    rule = rule_of(group_by=["model"], no_data=policy)
    assert states.forgotten(rule, walk(rule, "lacking absent absent absent")[0])
    shown = Memory(state=State.NO_DATA)
    assert states.forgotten(rule, walk(rule, "absent absent absent", shown)[0])


def test_a_group_whose_end_was_not_told_is_not_forgotten():
    rule = rule_of(group_by=["model"])
    memory, _ = states.notify(rule, walk(rule, "breach")[0], 0, silenced=False)
    memory, _ = walk(rule, "absent absent absent", memory, start=1)
    assert states.gone(rule, memory)
    assert not states.forgotten(rule, memory)


def test_under_ok_no_rows_are_as_good_as_a_good_window():
    rule = rule_of(no_data="ok", keep_firing_for="2m")
    assert path(walk(rule, "absent lacking breach absent absent absent")[1]) == [
        (2, "firing", "crossed"),
        (3, "recovering", "absent"),
        (5, "inactive", "stayed_clear"),
    ]


def test_under_alerting_no_rows_are_a_fault():
    rule = rule_of(no_data="alerting", pending_for="1m")
    memory, happened = walk(rule, "clear absent absent absent absent")
    assert path(happened) == [(1, "pending", "absent"), (2, "firing", "held")]
    assert memory.absence
    assert memory.peak is None


def test_too_few_turns_are_no_absence():
    rule = rule_of(no_data="alerting")
    assert path(walk(rule, "lacking lacking lacking lacking")[1]) == [(0, "no_data", "lacking")]


def test_an_alert_for_want_of_rows_becomes_one_of_the_rate_when_rows_cross():
    rule = rule_of(no_data="alerting", keep_firing_for="5m")
    for verdicts in ("absent breach", "absent clear breach"):
        memory, _ = walk(rule, verdicts)
        assert (memory.state, memory.absence, memory.peak) == (State.FIRING, False, 0.3)
    assert not walk(rule, "breach absent")[0].absence


@pytest.mark.parametrize("rows", ["lacking", "between", "clear"])
def test_any_row_ends_an_alert_for_want_of_rows(rows):
    """Few rows, or a rate between the thresholds, would keep it saying what is no longer so."""
    rule = rule_of(no_data="alerting", keep_firing_for="1m")
    assert path(walk(rule, f"absent {rows} {rows}")[1])[:3] == [
        (0, "firing", "absent"),
        (1, "recovering", "cleared"),
        (2, "inactive", "stayed_clear"),
    ]
    waiting = rule_of(no_data="alerting", pending_for="2m")
    assert path(walk(waiting, f"absent {rows} absent absent")[1])[:3] == [
        (0, "pending", "absent"),
        (1, "inactive", "fell_back"),
        (2, "pending", "absent"),
    ]


def test_an_alert_for_want_of_rows_that_is_over_has_no_say_any_more():
    assert path(walk(rule_of(no_data="alerting"), "absent lacking lacking lacking clear")[1]) == [
        (0, "firing", "absent"),
        (1, "inactive", "cleared"),
        (2, "no_data", "lacking"),
        (4, "inactive", "judged"),
    ]


@pytest.mark.parametrize("rows", ["lacking", "between"])
def test_an_alert_of_the_rate_does_not_end_because_an_absence_did(rows):
    rule = rule_of(no_data="alerting")
    assert walk(rule, f"breach absent {rows} {rows}")[0].state is State.FIRING
    assert walk(rule, f"absent breach absent {rows}")[0].state is State.FIRING


def test_under_keep_last_nothing_changes_without_data():
    rule = rule_of(no_data="keep_last", pending_for="9m")
    assert walk(rule, "absent lacking absent")[1] == []
    assert path(walk(rule_of(no_data="keep_last"), ["breach"] + ["absent"] * 9)[1]) == [
        (0, "firing", "crossed")
    ]


# Failure, edits, pauses, restarts


def failing(memory, minute):
    return states.fail(memory, minute * MINUTE)[0]


def test_a_failure_and_its_end_keep_an_alert_going():
    rule = rule_of()
    memory, _ = walk(rule, "breach")
    memory, moved = states.fail(memory, MINUTE)
    assert path(moved) == [(1, "error", "failed")]
    assert states.fail(memory, 2 * MINUTE) == (memory, ())
    memory, happened = walk(rule, "breach", memory, start=3)
    assert path(happened) == [(3, "firing", "works_again")]
    assert (memory.started_at, memory.ended_at, memory.resume) == (0, None, None)


def test_an_alert_that_is_over_after_a_failure_ends_then():
    rule = rule_of()
    memory, happened = walk(rule, "clear", failing(walk(rule, "breach")[0], 1), start=2)
    assert path(happened) == [(2, "firing", "works_again"), (2, "inactive", "cleared")]
    assert memory.ended_at == 2 * MINUTE


def test_a_wait_that_a_failure_interrupted_begins_anew():
    rule = rule_of(pending_for="2m", keep_firing_for="2m")
    memory, happened = walk(rule, "breach", failing(walk(rule, "breach breach")[0], 2), start=9)
    assert path(happened) == [(9, "inactive", "works_again"), (9, "pending", "crossed")]
    recovering, _ = walk(rule, "breach breach breach clear")
    memory, happened = walk(rule, "clear clear clear", failing(recovering, 4), start=9)
    assert path(happened) == [
        (9, "firing", "works_again"),
        (9, "recovering", "cleared"),
        (11, "inactive", "stayed_clear"),
    ]
    assert memory.started_at == 2 * MINUTE


def test_the_end_of_an_older_alert_is_not_moved_by_a_failure():
    rule = rule_of(pending_for="2m")
    memory, _ = walk(rule, "breach breach breach clear breach")
    memory, _ = walk(rule, "clear", failing(memory, 5), start=6)
    assert memory.ended_at == 3 * MINUTE


def test_an_edit_resets_the_waiting_and_nothing_else():
    rule = rule_of(pending_for="3m", keep_firing_for="3m")
    pending, _ = walk(rule, "breach breach")
    edited, moved = states.edit(pending, 2 * MINUTE)
    assert path(moved) == [(2, "inactive", "edited")]
    assert edited.pending_since is None
    for verdicts in ("clear", "absent", "breach breach breach breach", "breach " * 4 + "clear"):
        memory, _ = walk(rule, verdicts)
        assert memory.state is not State.PENDING
        assert states.edit(memory, 9 * MINUTE) == (memory, ())


@pytest.mark.parametrize(
    ("cause", "after"),
    [
        (Cause.PAUSED, State.PAUSED),
        (Cause.DELETED, State.INACTIVE),
        (Cause.EDITED, State.INACTIVE),
    ],
)
@pytest.mark.parametrize("verdicts", ["breach", "breach clear"])
def test_the_alert_of_a_rule_that_nobody_follows_any_more_ends(cause, after, verdicts):
    rule = rule_of(keep_firing_for="5m")
    memory, _ = walk(rule, verdicts)
    ended, moved = states.end(memory, 7 * MINUTE, cause)
    assert moved == (Transition(7 * MINUTE, memory.state, after, cause),)
    assert (ended.started_at, ended.ended_at) == (0, 7 * MINUTE)
    assert states.end(ended, 8 * MINUTE, cause) == (ended, ())


def test_a_pause_ends_an_alert_that_could_not_be_evaluated():
    memory = failing(walk(rule_of(), "breach")[0], 1)
    ended, _ = states.end(memory, 2 * MINUTE, Cause.PAUSED)
    assert (ended.state, ended.ended_at, ended.resume) == (State.PAUSED, 2 * MINUTE, None)
    assert states.fail(ended, 3 * MINUTE) == (ended, ())


def test_a_rule_that_is_resumed_begins_anew():
    rule = rule_of(pending_for="1m")
    memory, _ = states.end(walk(rule, "breach breach")[0], 2 * MINUTE, Cause.PAUSED)
    assert path(walk(rule, "breach breach", memory, start=5)[1]) == [
        (5, "inactive", "resumed"),
        (5, "pending", "crossed"),
        (6, "firing", "held"),
    ]


@pytest.mark.parametrize("restart", range(1, 12))
def test_a_restart_changes_nothing(restart):
    """Field report 115: the memory goes through the database between any two evaluations."""
    rule = rule_of(pending_for="1m", keep_firing_for="2m")
    verdicts = "breach breach breach lacking clear absent clear clear absent breach breach clear"
    words = verdicts.split()
    memory, happened = walk(rule, words[:restart])
    kept = memory_from_dict(json.loads(json.dumps(memory_to_dict(memory))))
    after, more = walk(rule, words[restart:], kept, start=restart)
    assert (after, happened + more) == walk(rule, words)


def test_a_reading_without_a_bound_crosses_nothing():
    nothing = Reading(Measure(rows=1), None, None, None)
    assert not states.crossed(rule_of(), nothing)
    assert not states.recovered(rule_of(), nothing)
    assert reading(rule_of(), "breach").lack is None


@pytest.mark.parametrize("turns", [6, 11, 21, 22, 26, 31])
def test_a_rate_that_is_as_good_as_can_be_never_fires(turns):
    """Not even with the strictest threshold, which any fault would cross."""
    for signal, good, threshold in (("mismatch_rate", 0, 0), ("incremental_rate", turns, 1)):
        rule = make_rule(signal=signal, confidence="wilson", threshold=threshold)
        seen = read(rule.signal, rule.confidence, 1, Measure(turns, good, turns, turns))
        assert not states.crossed(rule, seen)
