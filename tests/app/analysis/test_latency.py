import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx  # noqa: PT013

from app.analysis.latency import Latency, by_mode, percentile, summarize
from app.ledger.rollups.distribution import Distribution


def test_no_samples_have_no_percentile():
    assert summarize(Distribution()) is None
    assert percentile([], 0.5) is None


def test_one_sample_is_every_percentile():
    found = summarize(Distribution([7.0]))
    assert (found.median_ms, found.p95_ms, found.p99_ms) == approx((7.0, 7.0, 7.0), rel=0.01)


def test_percentiles_are_samples_by_nearest_rank():
    samples = [float(n) for n in range(1, 21)]
    found = summarize(Distribution(reversed(samples)))
    assert found.samples == 20
    assert (found.median_ms, found.p95_ms, found.p99_ms) == approx((10.0, 19.0, 20.0), rel=0.01)
    assert percentile(samples, 0.96) == 20.0
    assert percentile([15, 20, 35, 40, 50], 0.3) == 20


@given(st.lists(st.floats(0, 1e7), min_size=1), st.sampled_from([0.01, 0.5, 0.9, 0.95, 0.99, 1.0]))
def test_the_percentile_is_the_smallest_sample_that_q_of_all_do_not_exceed(samples, q):
    found = percentile(sorted(samples), q)
    needed = math.ceil(round(q * len(samples), 9))
    assert sum(sample <= found for sample in samples) >= needed
    assert sum(sample < found for sample in samples) < needed


@pytest.mark.parametrize("q", [0, -0.1, 1.01])
def test_a_percentile_outside_its_range_is_an_error(q):
    with pytest.raises(ValueError, match="percentile"):
        percentile([1.0], q)


def test_few_samples_are_marked():
    assert summarize(Distribution([1.0] * 19)).few
    assert not summarize(Distribution([1.0] * 20)).few


def test_a_mode_without_samples_is_left_out_and_unknown_is_a_mode():
    assert by_mode({"ws_full": Distribution(), None: Distribution([1.0])}) == {
        None: Latency(1, 1.0, 1.0, 1.0)
    }
