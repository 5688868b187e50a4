import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.growth import growth
from app.ledger.cells import TokenTotals

BEFORE = TokenTotals(turns=100, input=1_000_000, cached=900_000)


@pytest.mark.parametrize(
    ("what", "now"),
    [
        ("turns", TokenTotals(turns=300, input=3_000_000, cached=2_700_000)),
        ("input_per_turn", TokenTotals(turns=100, input=3_000_000, cached=2_700_000)),
        ("non_cached_share", TokenTotals(turns=100, input=1_000_000, cached=700_000)),
    ],
)
def test_what_alone_tripled_tripled_the_whole(what, now):
    told = growth(now, BEFORE)._asdict()
    same = dict.fromkeys(("turns", "input_per_turn", "non_cached_share"), 1.0)
    assert {"non_cached": 3.0} | same | {what: 3.0} == pytest.approx(told)


totals = st.builds(
    lambda turns, read, anew: TokenTotals(turns=turns, input=read + anew, cached=read),
    st.integers(30, 10**6),
    st.integers(0, 10**12),
    st.integers(1, 10**12),
)


@given(totals, totals)
def test_the_whole_is_the_product_of_the_three(now, before):
    told = growth(now, before)
    assert told.non_cached == pytest.approx(math.prod(told[1:]))
    assert told.non_cached == pytest.approx(now.non_cached / before.non_cached)


@pytest.mark.parametrize(
    "changes",
    [
        {"turns": 29},
        {"unknown": 12},  # of 112, more than a tenth
        {"cached": 1_000_000},
        {"input": 0, "cached": 0},
    ],
)
def test_two_times_that_cannot_be_compared_have_no_growth(changes):
    other = replace(BEFORE, **changes)
    assert (None, None) == (growth(other, BEFORE), growth(BEFORE, other))
    assert growth(replace(BEFORE, turns=30, unknown=3), BEFORE) is not None
