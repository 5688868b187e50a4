from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.alerts import ordered
from app.alerts.ordered import FEW

samples = st.lists(st.integers(0, 20).map(float), max_size=4 * FEW)


@given(samples, samples)
def test_what_is_added_finds_its_place(there: list[float], values: list[float]) -> None:
    there.sort()
    expected = sorted(there + values)
    ordered.add(there, values)
    assert expected == there


@given(samples, samples)
def test_of_equal_ones_as_many_are_taken_as_are_named(rest: list[float], gone: list[float]) -> None:
    there = sorted(rest + gone)
    ordered.remove(there, gone)
    assert sorted(rest) == there
    assert Counter(rest) == Counter(there)


class Moved(list):
    """Counts what moves all that stands behind it."""

    times = 0

    def insert(self, *given) -> None:
        self.times += 1
        super().insert(*given)

    def __delitem__(self, place) -> None:
        self.times += 1
        super().__delitem__(place)


@pytest.mark.parametrize("many", [FEW + 1, 1_000])
def test_many_are_not_added_and_taken_one_at_a_time(many: int) -> None:
    there = Moved(float(number) for number in range(2 * many))
    values = [float(number) for number in range(many)]
    ordered.add(there, values)
    ordered.remove(there, values)
    assert 2 * many == len(there)
    assert 0 == there.times


def test_one_does_not_copy_the_list() -> None:
    there = Moved([1.0, 3.0])
    ordered.add(there, [2.0])
    ordered.remove(there, [1.0])
    assert [2.0, 3.0] == there
    assert 2 == there.times
