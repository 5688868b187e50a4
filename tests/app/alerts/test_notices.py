"""Who is told what, and how often. The states themselves are tested in ``test_states``."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.alerts import states
from app.alerts.states import Cause, Memory, Notice, State, Told
from tests.support.alerts import MINUTE
from tests.support.verdicts import MEASURES, reading, rule_of, walk

many = settings(suppress_health_check=list(HealthCheck), deadline=None)


def play(rule, words, memory=None, *, start=0):
    """An evaluation each minute; ``breach/s`` is one under a silence, ``failed`` one that failed.

    Returns the memory and what was told: minute, type, and number of the reminder.
    """
    memory = memory or Memory()
    told = []
    for minute, word in enumerate(words.split() if isinstance(words, str) else words, start):
        verdict, _, silence = word.partition("/")
        at = minute * MINUTE
        if verdict == "failed":
            memory, _ = states.fail(memory, at)
        else:
            memory, _ = states.step(rule, memory, reading(rule, verdict), at)
        memory, notice = states.notify(rule, memory, at, silenced=silence == "s")
        if notice is not None:
            assert notice.at == at
            told.append((minute, notice.told.value, notice.repeat))
    return memory, told


def test_an_alert_is_told_once_and_its_end_once():
    _, told = play(rule_of(), ["clear", *["breach"] * 30, *["clear"] * 30])
    assert told == [(1, "firing", 0), (31, "resolved", 0)]


def test_a_wait_is_told_to_nobody():
    rule = rule_of(pending_for="5m", keep_firing_for="5m")
    assert play(rule, "breach breach clear absent breach lacking")[1] == []


def test_relapses_within_the_time_it_keeps_firing_are_told_to_nobody():
    rule = rule_of(keep_firing_for="5m")
    assert play(rule, "breach clear breach clear between breach")[1] == [(0, "firing", 0)]


def test_each_of_two_alerts_is_told():
    assert play(rule_of(), "breach clear breach clear")[1] == [
        (0, "firing", 0),
        (1, "resolved", 0),
        (2, "firing", 0),
        (3, "resolved", 0),
    ]


def test_asking_twice_at_one_instant_tells_once():
    rule = rule_of()
    memory, _ = walk(rule, "breach")
    memory, first = states.notify(rule, memory, 0, silenced=False)
    assert first == Notice(Told.FIRING, 0)
    assert states.notify(rule, memory, 0, silenced=False) == (memory, None)


# Silences


def test_what_fires_and_ends_within_a_silence_is_told_to_nobody():
    assert play(rule_of(), "breach/s breach/s clear/s clear clear")[1] == []


def test_what_still_fires_when_a_silence_ends_is_told_then_and_once():
    assert play(rule_of(), "breach/s breach/s breach breach breach")[1] == [(2, "firing", 0)]


def test_what_was_told_before_a_silence_and_still_fires_after_it_is_told_once_more():
    """Who silences an alert for two hours wants to hear of it when they are over."""
    told = play(rule_of(), "breach breach/s breach/s breach breach clear")[1]
    assert told == [(0, "firing", 0), (3, "firing", 1), (5, "resolved", 0)]


def test_an_alert_that_ends_within_a_silence_is_told_to_have_ended_after_it():
    assert play(rule_of(), "breach breach/s clear/s clear/s clear clear")[1] == [
        (0, "firing", 0),
        (4, "resolved", 0),
    ]


def test_an_alert_that_ended_and_began_anew_within_a_silence_is_told_as_going_on():
    memory, told = play(rule_of(), "breach clear/s breach/s breach breach")
    assert told == [(0, "firing", 0), (3, "firing", 1)]
    assert memory.started_at == 2 * MINUTE


def test_a_silence_over_a_quiet_group_leaves_nothing_to_tell():
    assert play(rule_of(), "clear/s absent/s clear breach clear")[1] == [
        (3, "firing", 0),
        (4, "resolved", 0),
    ]


def test_a_silence_changes_no_state():
    rule = rule_of(pending_for="1m", keep_firing_for="1m")
    words = "breach breach clear lacking clear breach absent absent absent"
    loud, _ = play(rule, words)
    quiet, told = play(rule, [f"{word}/s" for word in words.split()])
    assert told == []
    assert (quiet.state, quiet.since, quiet.started_at, quiet.ended_at, quiet.peak) == (
        (loud.state, loud.since, loud.started_at, loud.ended_at, loud.peak)
    )


# Reminders


def test_reminders_come_at_their_time_and_end_at_their_number():
    rule = rule_of(renotify_every="3m", renotify_max=2)
    assert play(rule, ["breach"] * 20)[1] == [(0, "firing", 0), (3, "firing", 1), (6, "firing", 2)]


def test_without_reminders_there_is_none():
    assert play(rule_of(renotify_every="0s"), ["breach"] * 500)[1] == [(0, "firing", 0)]


def test_reminders_begin_anew_with_the_next_alert():
    rule = rule_of(renotify_every="1m", renotify_max=1)
    assert play(rule, "breach breach breach clear breach breach breach")[1] == [
        (0, "firing", 0),
        (1, "firing", 1),
        (3, "resolved", 0),
        (4, "firing", 0),
        (5, "firing", 1),
    ]


def test_a_silence_that_ends_does_not_bring_the_reminders_it_held_back():
    rule = rule_of(renotify_every="2m")
    words = ["breach", *["breach/s"] * 8, "breach", "breach", "breach"]
    assert play(rule, words)[1] == [(0, "firing", 0), (9, "firing", 1), (11, "firing", 2)]


# Want of rows


def test_an_alert_for_want_of_rows_is_told_as_such():
    rule = rule_of(no_data="alerting", renotify_every="2m")
    assert play(rule, "clear absent absent absent clear")[1] == [
        (1, "no_data", 0),
        (3, "no_data", 1),
        (4, "resolved", 0),
    ]


def test_rows_that_come_back_bad_are_another_fault_and_told():
    rule = rule_of(no_data="alerting")
    assert play(rule, "absent absent breach breach absent breach clear")[1] == [
        (0, "no_data", 0),
        (2, "firing", 0),
        (6, "resolved", 0),
    ]


@pytest.mark.parametrize("rows", ["lacking", "between"])
def test_rows_that_come_back_end_what_was_told_though_they_prove_nothing(rows):
    rule = rule_of(no_data="alerting", renotify_every="1m")
    assert play(rule, f"absent {rows} {rows} {rows}")[1] == [(0, "no_data", 0), (1, "resolved", 0)]


def test_a_rate_that_fires_is_not_told_anew_when_its_rows_stop():
    rule = rule_of(no_data="alerting")
    assert play(rule, "breach absent absent absent")[1] == [(0, "firing", 0)]


def test_by_default_an_absence_is_shown_and_told_to_nobody():
    assert play(rule_of(), ["absent"] * 50)[1] == []


# Failures, pauses, deletion


def test_a_failure_and_its_end_are_told_to_nobody_and_do_not_end_the_alert():
    rule = rule_of()
    assert play(rule, "breach failed failed breach failed breach clear")[1] == [
        (0, "firing", 0),
        (6, "resolved", 0),
    ]


def test_a_silence_that_ends_during_a_failure_is_made_good_afterwards():
    assert play(rule_of(), "breach breach/s failed/s failed breach breach")[1] == [
        (0, "firing", 0),
        (4, "firing", 1),
    ]


@pytest.mark.parametrize("cause", [Cause.PAUSED, Cause.DELETED, Cause.EDITED])
@pytest.mark.parametrize("words", ["breach", "breach failed", "breach breach/s"])
def test_the_end_of_a_rule_resolves_what_was_told(cause, words):
    rule = rule_of()
    memory, _ = play(rule, words)
    memory, _ = states.end(memory, 5 * MINUTE, cause)
    memory, notice = states.notify(rule, memory, 5 * MINUTE, silenced=False)
    assert notice == Notice(Told.RESOLVED, 5 * MINUTE)
    assert memory.ended_at == 5 * MINUTE
    assert states.notify(rule, memory, 6 * MINUTE, silenced=False) == (memory, None)


def test_the_end_of_a_rule_that_nobody_was_told_of_is_told_to_nobody():
    rule = rule_of(pending_for="5m")
    memory, _ = states.end(walk(rule, "breach breach")[0], 2 * MINUTE, Cause.DELETED)
    assert states.notify(rule, memory, 2 * MINUTE, silenced=False)[1] is None


def test_an_edit_of_a_firing_rule_tells_nobody():
    rule = rule_of()
    memory, _ = play(rule, "breach")
    memory, _ = states.edit(memory, MINUTE)
    assert play(rule, "breach clear", memory, start=2)[1] == [(3, "resolved", 0)]


# Whatever happens

happenings = st.lists(
    st.tuples(
        st.sampled_from([*MEASURES, *MEASURES, "failed", "paused", "edited"]),
        st.booleans(),
    ),
    max_size=60,
)
SENTENCE = re.compile(r"((Fr*|Nr*(Fr*)?)R)*(Fr*|Nr*(Fr*)?)?")
"""First told (F, or N for want of rows), reminders (r), the end (R), and so on."""


def letter(notice):
    if notice.repeat:
        return "r"
    return {Told.FIRING: "F", Told.NO_DATA: "N", Told.RESOLVED: "R"}[notice.told]


@settings(many, max_examples=150)
@given(
    happenings=happenings,
    policy=st.sampled_from(["no_data", "ok", "alerting", "keep_last"]),
    waits=st.sampled_from(["0s", "1m", "2m"]),
    renotify=st.sampled_from(["0s", "1m", "3m"]),
    grouped=st.booleans(),
)
def test_people_are_told_of_a_beginning_before_its_end_and_of_each_once(
    happenings, policy, waits, renotify, grouped
):
    rule = rule_of(
        no_data=policy,
        pending_for=waits,
        keep_firing_for=waits,
        renotify_every=renotify,
        renotify_max=3,
        group_by=["model"] if grouped else [],
    )
    memory = Memory()
    told = ""
    reminders = silences = 0
    for minute, (word, silenced) in enumerate(happenings):
        at = minute * MINUTE
        match word:
            case "failed":
                memory, _ = states.fail(memory, at)
            case "paused":
                memory, _ = states.end(memory, at, Cause.PAUSED)
            case "edited":
                memory, _ = states.edit(memory, at)
            case _:
                memory, _ = states.step(rule, memory, reading(rule, word), at)
        silences += silenced
        memory, notice = states.notify(rule, memory, at, silenced=silenced)
        if notice is not None:
            told += letter(notice)
            assert not silenced
            reminders = reminders + 1 if notice.repeat else 0
            assert notice.repeat == reminders
            assert reminders <= (3 if renotify != "0s" else 0) + silences
        if not silenced and memory.state is not State.ERROR:
            assert (memory.told is not None) == memory.fires
        assert states.notify(rule, memory, at, silenced=silenced) == (memory, None)
        if states.forgotten(rule, memory):
            memory = Memory()
    assert SENTENCE.fullmatch(told), told
