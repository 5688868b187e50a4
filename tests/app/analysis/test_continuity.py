import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.continuity import Share, rate, residency, spikes, wilson

QUIET = [Share(1, 100)] * 20


def test_a_rate_of_nothing_is_unknown():
    assert rate(0, 0) is None
    assert rate(0, 4) == 0.0
    assert Share(1, 4).rate == 0.25


@pytest.mark.parametrize(("part", "whole", "low"), [(3, 10, 0.108), (30, 100, 0.219)])
def test_the_wilson_bound_is_that_of_the_textbook(part, whole, low):
    assert wilson(part, whole)[0] == pytest.approx(low, abs=0.001)


@given(whole=st.integers(0, 1000), share=st.floats(0, 1))
def test_the_wilson_interval_holds_the_rate_and_stays_in_range(whole, share):
    part = round(share * whole)
    low, high = wilson(part, whole)
    assert 0 <= low <= (part / whole if whole else 0) + 1e-9
    assert (part / whole if whole else 1) - 1e-9 <= high <= 1


def test_none_and_all_prove_nothing_beyond_the_edge_of_what_can_be():
    """In plain floats 0 of 11 would prove more than 0, and 6 of 6 less than 1."""
    assert {0.0} == {wilson(0, whole)[0] for whole in range(1, 2_000)}
    assert {1.0} == {wilson(whole, whole)[1] for whole in range(1, 2_000)}


def test_a_jump_is_a_spike():
    assert spikes([*QUIET, Share(12, 60), *QUIET]) == [False] * 20 + [True] + [False] * 20


def test_a_huge_spike_does_not_hide_behind_the_average_it_raises():
    assert spikes([Share(0, 50), Share(900, 1000), Share(1, 50)])[1]


def test_two_mismatches_are_no_spike():
    assert not any(spikes([Share(0, 1000), Share(2, 2)]))


def test_a_high_but_steady_rate_is_no_spike():
    assert not any(spikes([Share(40, 100)] * 50))


def test_with_nothing_to_compare_nothing_is_a_spike():
    assert spikes([Share(9, 10)]) == [False]
    assert spikes([Share(0, 0), Share(9, 10)]) == [False, False]
    assert spikes([]) == []


def test_a_bucket_without_eligible_turns_is_no_spike():
    assert spikes([*QUIET, Share(0, 0)])[-1] is False


def test_residency_parts_none_and_all_from_the_tenths():
    found = residency(
        [Share(0, 5), Share(1, 20), Share(1, 10), Share(3, 10), Share(9, 10), Share(4, 4)]
    )
    counts = {entry.label: entry.sessions for entry in found}
    assert counts["0 %"] == 1
    assert counts[">0–10 %"] == 1
    assert counts["10–20 %"] == 1
    assert counts["30–40 %"] == 1  # 0.3 * 10 is below 3 in floating point
    assert counts["90–100 %"] == 1
    assert counts["100 %"] == 1


def test_sessions_of_one_turn_are_counted_apart():
    found = residency([Share(0, 1), Share(0, 2), Share(1, 1)])
    assert [(entry.sessions, entry.single) for entry in (found[0], found[-1])] == [(2, 1), (1, 1)]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50))))
def test_every_session_with_turns_is_in_exactly_one_bin(pairs):
    sessions = [Share(min(pair), max(pair)) for pair in pairs]
    found = residency(sessions)
    assert sum(entry.sessions for entry in found) == sum(session.whole > 0 for session in sessions)
    assert all(entry.single <= entry.sessions for entry in found)
