import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.alerts.evaluation import evaluate, window
from app.alerts.groups import ALONE, key_of, labels_of
from app.alerts.records import memory_from_dict, memory_to_dict
from app.alerts.signals import Lack, Measure
from app.alerts.states import MAX_GROUPS, Memory, State, Told
from tests.support.alerts import MINUTE
from tests.support.verdicts import MEASURES, path, rule_of

many = settings(suppress_health_check=list(HealthCheck), deadline=None)

POLICIES = ("no_data", "ok", "alerting", "keep_last")


def model(name):
    return key_of({"model": name})


OTHER = model("other")


def never(labels, at):
    return False


def fold(rule, windows, silenced=never, memories=None, *, start=0):
    """One evaluation each minute; every outcome."""
    outcomes = []
    memories = memories or {}
    for minute, measured in enumerate(windows, start):
        outcome = evaluate(rule, memories, minute * MINUTE, measured, silenced)
        memories = outcome.memories
        outcomes.append(outcome)
    return outcomes


def happened(outcomes, key=ALONE):
    return path(t for outcome in outcomes for at_key, t in outcome.transitions if at_key == key)


def told(outcomes):
    return [(n.key, n.notice.told.value) for outcome in outcomes for n in outcome.notices]


def one(verdict, key=ALONE):
    return {} if verdict == "absent" else {key: MEASURES[verdict]}


def test_the_window_ends_a_delay_before_the_instant():
    rule = rule_of(window="15m", every="1m", delay="10s")
    assert window(rule, 1_000_000) == (90_000, 990_000)


def test_an_ungrouped_rule_is_evaluated_without_rows_too():
    outcome = evaluate(rule_of(), {}, 0, {}, never)
    assert outcome.readings[ALONE].lack is Lack.NO_ROWS
    assert outcome.memories[ALONE].state is State.NO_DATA
    assert outcome.notices == []


def test_the_memories_before_and_after_go_with_a_notice():
    first, second = fold(rule_of(), [one("worse"), one("clear")])
    [notification] = second.notices
    assert notification.notice.told is Told.RESOLVED
    assert notification.before == first.memories[ALONE]
    assert notification.after == second.memories[ALONE]
    assert (notification.after.ended_at, notification.after.peak) == (MINUTE, 0.6)


def test_a_noisy_group_does_not_hide_another_and_does_not_drag_it_along():
    rule = rule_of(group_by=["model"])
    noisy, quiet, well = model("noisy"), model("quiet"), model("well")
    huge = Measure(100_000, 0, 100_000, 100_000)
    windows = [
        {noisy: huge, quiet: MEASURES["breach"], well: MEASURES["clear"]},
        {noisy: huge, quiet: MEASURES["clear"], well: MEASURES["clear"]},
    ]
    assert told(fold(rule, windows)) == [(quiet, "firing"), (quiet, "resolved")]


def test_each_group_has_its_own_silence():
    rule = rule_of(group_by=["model"])
    both = {model("a"): MEASURES["breach"], model("b"): MEASURES["breach"]}
    outcomes = fold(rule, [both], lambda labels, at: labels == {"model": "a"})
    assert told(outcomes) == [(model("b"), "firing")]
    assert {key for key, _ in outcomes[0].transitions} == set(both)


def test_a_gone_group_is_told_to_have_ended_and_then_forgotten():
    rule = rule_of(group_by=["model"])
    key = model("a")
    outcomes = fold(rule, [one("breach", key), {}, {}, {}, {}])
    assert happened(outcomes, key) == [(0, "firing", "crossed"), (3, "inactive", "gone")]
    assert told(outcomes) == [(key, "firing"), (key, "resolved")]
    assert key in outcomes[2].memories
    assert key in outcomes[3].readings
    assert outcomes[3].memories == {}
    assert (outcomes[4].memories, outcomes[4].readings) == ({}, {})


def test_a_gone_group_is_kept_until_its_end_could_be_told():
    rule = rule_of(group_by=["model"])
    key = model("a")
    outcomes = fold(
        rule, [one("breach", key), *[{}] * 7], lambda labels, at: MINUTE <= at < 6 * MINUTE
    )
    assert [n.notice.at // MINUTE for outcome in outcomes for n in outcome.notices] == [0, 6]
    assert told(outcomes) == [(key, "firing"), (key, "resolved")]
    assert [key in outcome.memories for outcome in outcomes[4:]] == [True, True, False, False]


def test_a_group_that_waits_to_be_told_takes_nobody_a_place():
    rule = rule_of(group_by=["model"])
    silent = fold(rule, [one("breach", model("zz")), *[{}] * 4], lambda labels, at: at > 0)
    assert list(silent[-1].memories) == [model("zz")]
    crowd = {model(f"m{n:02d}"): MEASURES["clear"] for n in range(49)}
    outcome = evaluate(rule, silent[-1].memories, 9 * MINUTE, crowd, lambda labels, at: True)
    assert set(outcome.readings) == set(crowd)
    assert set(outcome.memories) == {*crowd, model("zz")}


def test_a_group_that_comes_back_before_its_end_was_told_begins_anew():
    rule = rule_of(group_by=["model"])
    key = model("a")
    windows = [one("breach", key), {}, {}, {}, {}, one("clear", key)]
    back = fold(rule, windows, lambda labels, at: at > 0)[-1].memories[key]
    assert (back.state, back.since, back.told) == (State.INACTIVE, None, Told.FIRING)
    assert (back.started_at, back.ended_at) == (0, 3 * MINUTE)


def test_the_group_other_fires_and_ends_like_any():
    rule = rule_of(group_by=["model"])
    crowd = {model(f"m{n:02d}"): MEASURES["clear"] for n in range(49)}
    rest = {model("x"): Measure(20, 10, 20, 20), model("y"): Measure(20, 10, 20, 20)}
    outcomes = fold(rule, [crowd, crowd | rest, crowd, crowd, crowd])
    assert happened(outcomes, OTHER) == [(1, "firing", "crossed"), (4, "inactive", "gone")]
    assert outcomes[1].readings[OTHER].measure == Measure(40, 20, 40, 40)


def test_that_other_is_empty_is_no_fault():
    """Its members may have found places; that a group of its own has no rows is a fault here."""
    rule = rule_of(group_by=["model"], no_data="alerting")
    crowd = {model(f"m{n:02d}"): MEASURES["clear"] for n in range(49)}
    outcomes = fold(rule, [crowd | {model("x"): MEASURES["clear"]}, crowd, crowd, crowd])
    assert told(outcomes) == []
    assert OTHER not in outcomes[-1].memories
    missing = {key: measure for key, measure in crowd.items() if key != model("m07")}
    outcomes = fold(rule, [crowd, missing])
    assert told(outcomes) == [(model("m07"), "no_data")]


def test_memories_of_another_grouping_are_refused():
    with pytest.raises(ValueError, match="dimensions"):
        evaluate(rule_of(group_by=["model"]), {ALONE: Memory()}, 0, {}, never)
    with pytest.raises(ValueError, match="dimensions"):
        evaluate(rule_of(), {}, 0, {model("a"): Measure(rows=1)}, never)


names = st.integers(0, 5).map(lambda n: model(f"m{n}"))
windows_of = st.lists(
    st.dictionaries(names, st.sampled_from([m for w, m in MEASURES.items() if w != "absent"])),
    max_size=25,
)
some_rules = st.builds(
    lambda policy, waits: rule_of(
        group_by=["model"], no_data=policy, pending_for=waits, keep_firing_for=waits
    ),
    st.sampled_from(POLICIES),
    st.sampled_from(["0s", "2m"]),
)


@settings(many, max_examples=150)
@given(rule=some_rules, windows=windows_of, quiet=st.sets(st.tuples(names, st.integers(0, 25))))
def test_silences_and_backtests_change_no_transition(rule, windows, quiet):
    def silenced(labels, at):
        return (key_of(labels), at // MINUTE) in quiet

    live = fold(rule, windows)
    hushed = fold(rule, windows, silenced)
    tested = fold(rule, windows, None)
    transitions = [outcome.transitions for outcome in tested]
    assert [outcome.transitions for outcome in live] == transitions
    assert [outcome.transitions for outcome in hushed] == transitions
    assert all(outcome.notices == [] for outcome in tested)


@settings(many, max_examples=150)
@given(rule=some_rules, windows=windows_of, cut=st.integers(0, 25), random=st.randoms())
def test_a_restart_and_the_order_of_groups_change_nothing(rule, windows, cut, random):
    """The memories go through JSON, and come back in another order."""

    def shuffled(mapping):
        items = list(mapping.items())
        random.shuffle(items)
        return dict(items)

    cut = min(cut, len(windows))
    whole = fold(rule, windows)
    first = fold(rule, windows[:cut])
    kept = first[-1].memories if first else {}
    text = json.dumps({key: memory_to_dict(memory) for key, memory in shuffled(kept).items()})
    back = {key: memory_from_dict(values) for key, values in json.loads(text).items()}
    rest = fold(rule, [shuffled(each) for each in windows[cut:]], never, back, start=cut)
    assert first + rest == whole
    for outcome in whole:
        assert list(outcome.memories) == sorted(outcome.memories)
        assert list(outcome.readings) == sorted(outcome.readings)
        keys = [key for key, _ in outcome.transitions]
        assert keys == sorted(keys)


@settings(many, max_examples=25)
@given(
    windows=st.lists(st.sets(st.integers(0, 90), max_size=90), max_size=12),
    policy=st.sampled_from(POLICIES),
)
def test_never_more_than_fifty_groups_are_watched(windows, policy):
    rule = rule_of(group_by=["model"], no_data=policy)
    measured = [{model(f"m{n:02d}"): MEASURES["breach"] for n in each} for each in windows]
    for outcome, present in zip(fold(rule, measured), measured, strict=True):
        assert len(outcome.readings) <= MAX_GROUPS
        assert len(outcome.memories) <= MAX_GROUPS
        seen = sum(reading.measure.rows for reading in outcome.readings.values())
        assert seen == sum(measure.rows for measure in present.values())
        assert all(set(labels_of(key)) == {"model"} for key in outcome.memories)
