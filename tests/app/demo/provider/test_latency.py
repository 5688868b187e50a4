"""How long things take."""

import pytest

from app.demo.provider.latency import NO_LATENCY, Latency

SAME = {"http": False, "uploaded": 0}


def test_uncached_tokens_cost_far_more_than_cached_ones():
    cold = Latency().first_event(input_tokens=50_000, cached_tokens=0, **SAME)
    warm = Latency().first_event(input_tokens=50_000, cached_tokens=50_000, **SAME)
    assert cold > 5 * warm


def test_a_smaller_upload_is_faster():
    tokens = {"input_tokens": 10, "cached_tokens": 0}
    big = Latency().first_event(http=False, uploaded=1_200_000, **tokens)
    small = Latency().first_event(http=False, uploaded=0, **tokens)
    assert big - small == pytest.approx(0.1)


def test_no_latency_is_none():
    assert NO_LATENCY.first_event(http=True, uploaded=9, input_tokens=9, cached_tokens=0) == 0
    assert NO_LATENCY.output(1000) == NO_LATENCY.connect == 0
