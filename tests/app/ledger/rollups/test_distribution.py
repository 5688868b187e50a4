import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.rollups.distribution import (
    Distribution,
    bucket_of,
    read_counts,
    stored_counts,
)

times = st.floats(0, 1e9, allow_nan=False)
percents = st.sampled_from([0.1, 1, 25, 50, 75, 90, 95, 99, 99.9, 100])


def exact(samples, percent):
    return sorted(samples)[max(1, math.ceil(len(samples) * percent / 100)) - 1]


@given(st.lists(times, min_size=1, max_size=200), percents)
def test_a_percentile_is_the_exact_one_to_within_one_per_cent(samples, percent):
    wanted = exact(samples, percent)
    found = Distribution(samples).percentile(percent)
    assert found is not None
    assert abs(found - wanted) <= max(0.01 * wanted, 1.0 if wanted <= 1 else 0)


@given(st.lists(st.lists(times, max_size=20), max_size=5))
def test_the_distribution_of_a_whole_is_that_of_its_parts_together(parts):
    whole = Distribution.whole(map(Distribution, parts))
    assert Distribution([sample for part in parts for sample in part]) == whole


@given(st.lists(times, max_size=30), st.lists(times, max_size=30))
def test_what_was_added_can_be_taken_away_again(stay, go):
    added = Distribution([*stay, *go]).stored()
    taken = stored_counts({bucket: -count for bucket, count in Counter(map(bucket_of, go)).items()})
    assert Distribution(stay) == Distribution.read(added + taken)
    assert len(stay) == Distribution.read(taken + added).samples


@given(st.lists(times, max_size=100), st.lists(times, max_size=100))
def test_stored_one_after_the_other_they_are_read_as_their_sum(one, other):
    both = Distribution(one).stored() + Distribution(other).stored()
    assert Distribution([*one, *other]) == Distribution.read(both)


@pytest.mark.parametrize("count", [1, 32_767, 32_768, 100_000, -32_767, -32_768, -100_000])
def test_any_count_is_stored(count):
    there = {7: max(0, -count)}
    assert Counter({7: max(0, count)}) | Counter() == read_counts(
        stored_counts(there) + stored_counts({7: count})
    )


def test_more_than_there_is_cannot_be_taken_away():
    with pytest.raises(ValueError, match="never added"):
        Distribution.read(stored_counts({5: 1, 6: -1}))


@pytest.mark.parametrize("more", [0, 1_000])
def test_it_is_read_without_what_is_stored_elsewhere(more):
    others = dict.fromkeys(range(10, 10 + more), 1)
    whole, part = stored_counts({5: 3, 9: 1} | others), stored_counts({5: 1, 9: 1})
    assert Distribution.read(stored_counts({5: 2} | others)) == Distribution.read(whole, part)
    with pytest.raises(ValueError, match="never added"):
        Distribution.read(whole, stored_counts({5: 4}))


def test_without_samples_nothing_is_known():
    assert Distribution().percentile(50) is None
    assert Distribution().samples == 0
    assert Distribution().stored() == b""
    assert not Distribution()


def test_stored_it_takes_four_bytes_for_each_length_that_occurs():
    assert len(Distribution([100.0] * 1_000 + [900.0]).stored()) == 8


def test_times_beyond_all_measure_count_too():
    assert Distribution([1e300]).samples == 1


@pytest.mark.parametrize("percent", [0, -1, 100.1])
def test_a_percentile_outside_its_range_is_an_error(percent):
    with pytest.raises(ValueError, match="percentile"):
        Distribution([1.0]).percentile(percent)
