import pytest

from app.analysis import trend
from app.analysis.continuity import Share
from app.analysis.trend import Direction, Lack, Trend
from app.ledger.rollups.distribution import Distribution


@pytest.mark.parametrize(
    ("now", "before", "rises_well", "expected"),
    [
        (Share(90, 100), Share(50, 100), True, (Direction.UP, True)),
        (Share(50, 100), Share(90, 100), True, (Direction.DOWN, False)),
        (Share(30, 100), Share(5, 100), False, (Direction.UP, False)),
        (Share(5, 100), Share(30, 100), False, (Direction.DOWN, True)),
        (Share(52, 100), Share(50, 100), True, (Direction.LEVEL, None)),
        (Share(5_200, 10_000), Share(5_000, 10_000), True, (Direction.UP, True)),
        (Share(0, 100), Share(0, 100), False, (Direction.LEVEL, None)),
    ],
)
def test_a_rate_has_a_trend_where_chance_does_not_explain_it(now, before, rises_well, expected):
    found = trend.of_rate(now, before, rises_well=rises_well)
    assert expected == (found.direction, found.better)
    assert found.lack is None


@pytest.mark.parametrize(
    ("now", "before"),
    [(Share(0, 29), Share(100, 100)), (Share(100, 100), Share(0, 29)), (Share(0, 0), Share(9, 99))],
)
def test_a_few_turns_have_no_trend_however_far_apart(now, before):
    found = trend.of_rate(now, before, rises_well=True)
    assert Trend(now.rate, before.rate, lack=Lack.FEW) == found


def test_a_ratio_of_tokens_changes_by_points():
    assert Trend(0.5, 0.9, pytest.approx(-0.4), Direction.DOWN, False) == trend.of_ratio(
        0.5, 0.9, (100, 100), rises_well=True
    )
    near = trend.of_ratio(0.904, 0.9, (100, 100), rises_well=True)
    assert (Direction.LEVEL, None) == (near.direction, near.better)
    assert Lack.FEW == trend.of_ratio(None, 0.9, (0, 100), rises_well=True).lack


def test_a_sum_changes_by_a_share_and_is_neither_good_nor_bad():
    all_known = (Share(100, 100), Share(100, 100))
    assert Trend(300, 100, 2.0, Direction.UP) == trend.of_sum(300, 100, all_known)
    assert Direction.LEVEL == trend.of_sum(104, 100, all_known).direction
    assert Trend(5, 0, None, Direction.UP) == trend.of_sum(5, 0, all_known)
    assert Direction.LEVEL == trend.of_sum(0, 0, all_known).direction


def test_a_sum_that_lacks_many_turns_is_not_compared():
    assert Lack.UNKNOWN == trend.of_sum(300, 100, (Share(89, 100), Share(99, 100))).lack
    assert Lack.UNKNOWN == trend.of_sum(300, 100, (Share(99, 100), Share(89, 100))).lack
    assert Lack.FEW == trend.of_sum(300, 100, (Share(29, 100), Share(99, 100))).lack


def test_a_median_has_a_trend_where_the_two_are_apart_for_sure():
    quick, slow = (Distribution([float(ms) for ms in range(at, at + 100)]) for at in (300, 600))
    assert (Direction.UP, False) == _way(slow, quick)
    assert (Direction.DOWN, True) == _way(quick, slow)
    assert (Direction.LEVEL, None) == _way(quick, Distribution(list(range(305, 405))))
    assert Lack.FEW == trend.of_median(quick, Distribution([900.0] * 29)).lack
    assert Trend(None, None, lack=Lack.FEW) == trend.of_median(None, None)


def _way(now, before):
    found = trend.of_median(now, before)
    return found.direction, found.better
