from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.alerts import groups
from app.alerts.groups import ALONE, dedupe_key, key_of, labels_of, other_of, place
from app.alerts.signals import Measure, total
from app.alerts.states import MAX_GROUPS
from tests.support.alerts import make_rule

many = settings(suppress_health_check=list(HealthCheck), deadline=None)

RULE = make_rule(group_by=["model"])
OTHER = other_of(RULE)
names = st.integers(0, 80).map("m{:02d}".format) | st.sampled_from(["other", "unknown", 'ü "'])
keys = names.map(lambda name: key_of({"model": name}))
measures = st.builds(
    Measure,
    rows=st.integers(1, 30),
    part=st.integers(0, 9),
    whole=st.integers(0, 9),
    turns=st.integers(0, 9),
    unknown=st.integers(0, 9),
    samples=st.lists(st.floats(0, 99), max_size=3).map(lambda values: tuple(sorted(values))),
)
presents = st.dictionaries(keys, measures, max_size=80)


def crowd(count, rows=1):
    return {key_of({"model": f"m{n:03d}"}): Measure(rows=rows + n) for n in range(count)}


def test_a_key_is_the_same_in_whatever_order_the_labels_come():
    assert key_of({"model": "a", "client": "b"}) == '{"client":"b","model":"a"}'
    assert key_of({"client": "b", "model": "a"}) == '{"client":"b","model":"a"}'
    assert key_of({}) == ALONE == "{}"


@many
@given(labels=st.dictionaries(st.text(), st.text()))
def test_a_key_reads_back_as_its_labels(labels):
    assert labels_of(key_of(labels)) == labels


@pytest.mark.parametrize("key", ["", "[]", '{"model":1}', "nonsense", '"model"'])
def test_a_key_that_was_not_written_here_is_refused(key):
    with pytest.raises(ValueError):
        labels_of(key)


def test_the_dedupe_key_is_of_the_rule_and_the_labels_and_of_nothing_else():
    """SHA-256 of ["rule-1",{"client":"b","model":"a"}], written out once and for all."""
    key = key_of({"model": "a", "client": "b"})
    expected = "7670c0194eefc153"
    assert len(dedupe_key("rule-1", key)) == 64
    assert dedupe_key("rule-1", key)[:16] == expected
    others = {dedupe_key("rule-2", key), dedupe_key("rule-1", ALONE), dedupe_key("rule-1", key)}
    assert len(others) == 3


def test_a_rule_that_does_not_group_has_one_group_with_and_without_rows():
    rule = make_rule()
    assert place([], {}, rule) == {ALONE: Measure()}
    assert place([ALONE], {ALONE: Measure(rows=3)}, rule) == {ALONE: Measure(rows=3)}


def test_groups_beyond_the_fiftieth_place_are_added_up_as_other():
    placed = place([], crowd(60), RULE)
    assert len(placed) == MAX_GROUPS == 50
    assert placed[OTHER] == Measure(rows=sum(1 + n for n in range(11)))


def test_exactly_forty_nine_groups_need_no_other():
    assert OTHER not in place([], crowd(49), RULE)
    assert OTHER in place([], crowd(50), RULE)


def test_groups_with_most_rows_get_the_places_and_among_equals_the_first_names():
    present = {key_of({"model": f"m{n:03d}"}): Measure(rows=1) for n in reversed(range(60))}
    busy = key_of({"model": "zzz"})
    placed = place([], present | {busy: Measure(rows=2)}, RULE)
    assert busy in placed
    assert sorted(present)[:48] == [key for key in placed if key not in (busy, OTHER)]


def test_a_tracked_group_keeps_its_place_against_any_newcomer():
    quiet = key_of({"model": "quiet"})
    placed = place([quiet], crowd(60, rows=1_000) | {quiet: Measure(rows=1)}, RULE)
    assert placed[quiet] == Measure(rows=1)
    assert place([quiet], crowd(60, rows=1_000), RULE)[quiet] == Measure()


def test_a_noisy_group_is_measured_apart_from_the_others():
    noisy, quiet = key_of({"model": "noisy"}), key_of({"model": "quiet"})
    present = {noisy: Measure(rows=90, part=90), quiet: Measure(rows=10)}
    assert place([], present, RULE) == present


def test_other_stays_while_it_is_tracked_without_rows():
    assert place([OTHER], {}, RULE) == {OTHER: Measure()}


def test_other_takes_nobody_a_place():
    assert place([OTHER], crowd(49), RULE) == crowd(49) | {OTHER: Measure()}


def test_a_model_that_is_itself_called_other_is_among_the_others():
    placed = place([], crowd(60) | {OTHER: Measure(rows=7)}, RULE)
    assert placed[OTHER].rows == sum(1 + n for n in range(11)) + 7
    assert len(placed) == MAX_GROUPS


@many
@given(presents=st.lists(presents, max_size=5))
def test_places_are_few_lasting_and_leave_nothing_out(presents):
    """Over windows that follow each other: at most 50, everything counted once, in one order."""
    tracked = []
    for present in presents:
        placed = place(tracked, present, RULE)
        assert len(placed) <= MAX_GROUPS
        assert set(tracked) <= set(placed)
        assert total(placed.values()) == total(present.values())
        assert list(placed) == sorted(placed)
        alone = {key: measure for key, measure in placed.items() if key != OTHER}
        assert all(present.get(key, Measure()) == measure for key, measure in alone.items())
        tracked = list(placed)


@many
@given(present=presents, tracked=st.lists(keys, unique=True, max_size=40), random=st.randoms())
def test_the_order_in_which_groups_come_makes_no_difference(present, tracked, random):
    shuffled = list(present.items())
    random.shuffle(shuffled)
    others = list(tracked)
    random.shuffle(others)
    assert place(tracked, present, RULE) == place(others, dict(shuffled), RULE)


def test_several_dimensions_make_one_other():
    rule = make_rule(group_by=["model", "client"])
    assert Counter(labels_of(other_of(rule))) == {"model": "other", "client": "other"}


def test_a_key_of_another_grouping_is_refused():
    groups.check(RULE, [key_of({"model": "a"}), OTHER])
    for key in (ALONE, key_of({"client": "a"}), key_of({"model": "a", "client": "b"})):
        with pytest.raises(ValueError, match="dimensions"):
            groups.check(RULE, [key])
    with pytest.raises(ValueError, match="none"):
        groups.check(make_rule(), [OTHER])
