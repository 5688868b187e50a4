from math import comb

import pytest

from app.analysis.warm import AT_LEAST, Warm, rank_of, warm_of


def test_the_median_and_its_interval_are_samples_of_the_session():
    assert Warm(350.0, 100.0, 600.0) == warm_of([100.0, 200.0, 300.0, 400.0, 500.0, 600.0])
    # Of nine, the second from either end: 1 - 2 × (1 + 9) ÷ 2⁹ = 96.1 %.
    assert Warm(5.0, 2.0, 8.0) == warm_of([float(n) for n in range(1, 10)])


def test_too_few_samples_have_no_median():
    assert AT_LEAST == 6
    assert warm_of([1.0] * 5) is None
    assert warm_of([]) is None


@pytest.mark.parametrize("number", [6, 7, 8, 9, 20, 37, 100, 999, 1_000])
def test_the_interval_holds_the_median_with_at_least_95_per_cent_and_is_the_shortest(number):
    def missed(rank: int) -> float:
        return 2 * sum(comb(number, k) for k in range(rank)) / 2**number

    assert missed(rank_of(number)) <= 0.05 < missed(rank_of(number) + 1)


def test_beyond_a_thousand_samples_the_rank_goes_on_as_it_was():
    assert abs(rank_of(1_001) - rank_of(1_000)) <= 1
    assert rank_of(1_000_000) == 499_020
