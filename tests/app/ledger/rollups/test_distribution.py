import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.rollups.distribution import Distribution

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
    whole = Distribution()
    for part in parts:
        whole.add(Distribution(part))
    assert Distribution([sample for part in parts for sample in part]) == whole


@given(st.lists(times, max_size=30), st.lists(times, max_size=30))
def test_what_was_added_can_be_taken_away_again(stay, go):
    left = Distribution([*stay, *go])
    left.subtract(Distribution(go))
    assert Distribution(stay) == left
    assert len(stay) == left.samples


@given(st.lists(times, max_size=100))
def test_it_is_read_as_it_was_stored(samples):
    assert Distribution(samples) == Distribution.read(Distribution(samples).stored())


def test_more_than_there_is_cannot_be_taken_away():
    with pytest.raises(ValueError, match="never added"):
        Distribution([5.0]).subtract(Distribution([50.0]))


def test_without_samples_nothing_is_known():
    assert Distribution().percentile(50) is None
    assert Distribution().samples == 0
    assert Distribution().stored() == b""


def test_stored_it_takes_eight_bytes_for_each_length_that_occurs():
    assert len(Distribution([100.0] * 1_000 + [900.0]).stored()) == 16


def test_times_beyond_all_measure_count_too():
    assert Distribution([1e300]).samples == 1
