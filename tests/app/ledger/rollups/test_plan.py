from bisect import bisect_right
from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.ledger.rollups.contribution import BLOCK, DAY, FIVE, HOUR, LEVELS
from app.ledger.rollups.plan import apart, only_rows, plan, uses, within
from app.ledger.rollups.state import RollupState

WHOLE = RollupState(coarse_until=10 * DAY)
instants = st.integers(0, 3 * DAY) | st.integers(0, 3 * DAY // FIVE).map(lambda n: n * FIVE)


@given(
    st.tuples(instants, instants).map(sorted),
    st.lists(instants, max_size=6).map(sorted),
    st.integers(0, 72).map(lambda n: RollupState(coarse_until=n * HOUR)),
)
def test_each_moment_of_the_window_is_covered_once(window, edges, state):
    start, end = window
    made = plan(start, end, edges, LEVELS, state)
    spans = sorted([*made.rows, *(span for some in made.stretches.values() for span in some)])
    assert sum(right - left for left, right in spans) == end - start
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
    assert not spans or (spans[0][0], spans[-1][1]) == (start, end)
    for level, some in made.stretches.items():
        for left, right in some:
            assert left % level == right % level == 0
            assert level == FIVE or right <= state.whole_until(level)
            for stretch in range(left, right, level):
                assert not any(stretch < edge < stretch + level for edge in edges)


def test_coarse_stretches_are_used_where_they_fit():
    made = plan(5, 2 * DAY + HOUR, [], LEVELS, WHOLE)
    assert made.rows == [(5, FIVE)]
    assert made.stretches == {
        FIVE: [(FIVE, HOUR)],
        HOUR: [(HOUR, BLOCK), (2 * DAY, 2 * DAY + HOUR)],
        BLOCK: [(BLOCK, DAY)],
        DAY: [(DAY, 2 * DAY)],
    }


def test_a_stretch_that_an_edge_cuts_is_read_finer():
    made = plan(0, DAY, [0, HOUR + 5, DAY], LEVELS, WHOLE)
    assert made.rows == [(HOUR, HOUR + FIVE)]
    assert (BLOCK, DAY) in made.stretches[BLOCK]


def test_what_is_not_over_is_made_of_the_finest_stretches():
    made = plan(0, DAY, [], LEVELS, RollupState(coarse_until=7 * HOUR))
    assert made.stretches == {
        BLOCK: [(0, BLOCK)],
        HOUR: [(BLOCK, 7 * HOUR)],
        FIVE: [(7 * HOUR, DAY)],
    }


def test_buckets_shorter_than_any_stretch_are_read_from_rows():
    edges = list(range(0, HOUR + 1, FIVE // 3))
    assert plan(0, HOUR, edges, LEVELS, WHOLE).rows == [(0, HOUR)]


def test_where_rows_were_deleted_the_window_is_widened_to_whole_stretches():
    gone = RollupState(coarse_until=10 * DAY, rows_from=DAY)
    made = plan(5, HOUR + 5, [5, FIVE + 1, HOUR + 5], LEVELS, gone)
    assert made.rows == []
    assert made.edges == [FIVE, 2 * FIVE, HOUR + FIVE]
    assert made.stretches == {FIVE: [(0, HOUR + FIVE)]}


def test_where_rows_are_kept_the_edge_stays_exact():
    gone = RollupState(coarse_until=10 * DAY, rows_from=DAY)
    assert plan(5, DAY + 5, [], LEVELS, gone).rows == [(DAY, DAY + 5)]


def test_without_rollups_all_is_rows():
    assert only_rows(1, 9).rows == [(1, 9)]
    assert only_rows(1, 9).edges == [1, 9]


@given(st.lists(st.integers(0, 4 * DAY // HOUR), min_size=2, max_size=6, unique=True), st.data())
def test_stretches_less_others_make_up_each_bucket_once(hours, data):
    edges = [hour * HOUR for hour in sorted(hours)]
    state = RollupState(coarse_until=data.draw(st.integers(0, 4 * DAY // HOUR)) * HOUR)
    made = plan(edges[0], edges[-1], edges, LEVELS, state)

    def bucket(start: int) -> int:
        return bisect_right(edges, start) - 1

    counted: Counter[tuple[int, int]] = Counter()
    near, far = apart(made, LEVELS, state)
    found = uses(near, bucket, LEVELS, state)
    for spans in far.stretches.values():
        for span in spans:
            counted.update((bucket(part), part) for part in range(*span, LEVELS[0]))
    for (level, start), some in found.items():
        assert level == LEVELS[0] or start + level <= state.whole_until(level)
        for place, sign in some:
            for part in range(start, start + level, LEVELS[0]):
                counted[place, part] += sign
    wanted = {(bucket(at), at): 1 for at in range(edges[0], edges[-1], LEVELS[0])}
    assert wanted == {at: number for at, number in counted.items() if number}
    assert sorted(found) == [
        (level, start)
        for level, spans in sorted(within(found).stretches.items())
        for span in spans
        for start in range(*span, level)
    ]


def test_most_of_a_coarse_stretch_comes_as_that_without_the_rest():
    state = RollupState(coarse_until=DAY)
    made = plan(0, 5 * HOUR, [], LEVELS, state)
    block = 6 * HOUR
    assert {(block, 0): [(0, 1)], (HOUR, 5 * HOUR): [(0, -1)]} == uses(
        made, lambda _start: 0, LEVELS, state
    )


def test_of_a_window_without_end_only_what_its_edges_cut_is_told_one_by_one():
    state, end = RollupState(coarse_until=10 * DAY), 10**9 * DAY
    near, far = apart(plan(FIVE, end, [], LEVELS, state), LEVELS, state)
    found = uses(near, lambda _start: 0, LEVELS, state)
    assert {(DAY, 0): [(0, 1)], (FIVE, 0): [(0, -1)]} == found
    assert {DAY: [(DAY, 10 * DAY)], FIVE: [(10 * DAY, end)]} == far.stretches
    assert {DAY: [(DAY, 10 * DAY), (0, DAY)], FIVE: [(10 * DAY, end), (0, FIVE)]} == within(
        found, far
    ).stretches
