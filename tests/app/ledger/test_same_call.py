from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.same_call import NEAR_MS, Call, differ, learned, matched
from tests.support.rows import make_row, unknown_usage

T = 1_000_000


def call(name: str, at: int = 0, response: str | None = None, **given) -> Call:
    figures = {"input_tokens": 2_466, "cached_tokens": 2_048, "output_tokens": 14}
    row = {"status": "completed", "turn_group": None, "model": "m", **figures, **given}
    return Call(turn_id=name, ended_at=T + at, response_id=response, **row)


def test_an_equal_response_id_makes_them_one_whatever_the_time():
    assert {"l": "g"} == matched([call("g", 0, "r")], [call("l", 9_000_000, "r")])


def test_figures_that_disagree_are_no_other_call_where_id_and_time_agree():
    log = call("l", 900, "r", input_tokens=2_400)
    assert {"l": "g"} == matched([call("g", 0, "r")], [log])
    assert {} == matched([call("g", 0, "r")], [log._replace(ended_at=T + 900_000)])


def test_another_response_id_is_another_call_though_all_else_is_equal():
    assert {} == matched([call("g", 0, "r")], [call("l", 0, "s")])


@pytest.mark.parametrize("name", ["", None])
def test_an_id_that_is_empty_or_missing_proves_nothing(name: str | None):
    seen = [call("g1", 0, name), call("g2", 60_000, name, output_tokens=9)]
    other = call("l", 90_000, name, output_tokens=7)
    assert {} == matched(seen, [other])
    assert {"l1": "g1"} == matched(seen, [call("l1", 5, name)])


def test_an_id_that_was_given_to_several_calls_proves_nothing():
    seen = [call("g1", 0, "r"), call("g2", 60_000, "r", output_tokens=9)]
    assert {} == matched(seen, [call("l", 30_000, "r")])
    assert {"l": "g2"} == matched(seen, [call("l", 60_500, "r", output_tokens=9)])


def test_equal_figures_near_in_time_are_one_call_under_whatever_name_of_the_model():
    assert {"l": "g"} == matched([call("g", 0, model="resolved")], [call("l", 2_000, model="a")])


def test_calls_with_equal_figures_find_each_its_own():
    seen = [call("g1", 0), call("g2", 3_000)]
    assert {"l1": "g1", "l2": "g2"} == matched(seen, [call("l1", 2_000), call("l2", 5_000)])
    assert {"l": "g2"} == matched(seen, [call("l", 3_500)]), "and the other one stays"
    assert {"l2": "g"} == matched([call("g", 4_900)], [call("l1", 2_000), call("l2", 5_000)])


def test_an_equal_name_of_the_model_goes_before_a_nearer_time():
    seen = [call("g1", 0, model="a"), call("g2", 2_000, model="b")]
    assert {"l": "g1"} == matched(seen, [call("l", 2_000, model="a")])


def test_what_is_too_far_apart_or_tells_no_figures_is_not_held_for_one():
    assert {} == matched([call("g", 0)], [call("l", NEAR_MS + 1)])
    for unknown in ({"input_tokens": 0}, {"input_tokens": None}, {"output_tokens": None}):
        assert {} == matched([call("g", 0, **unknown)], [call("l", 0, **unknown)])


def test_another_turn_of_the_client_is_another_call():
    assert {} == matched([call("g", turn_group="a")], [call("l", turn_group="b")])
    assert {"l": "g"} == matched([call("g", turn_group="a")], [call("l")])


def test_cached_tokens_that_one_side_does_not_know_tell_nothing():
    assert {"l": "g"} == matched([call("g")], [call("l", cached_tokens=None)])
    assert {} == matched([call("g")], [call("l", cached_tokens=0)])


def test_a_failure_is_one_with_the_last_attempt_that_failed_alike():
    bare = {"input_tokens": None, "cached_tokens": None, "output_tokens": None}
    seen = [call(f"g{n}", n * 1_000, status="error", **bare) for n in range(3)]
    assert {"l": "g2"} == matched(seen, [call("l", 2_010, status="error", **bare)])
    assert {} == matched(seen, [call("l", 2_010, status="rate_limited", **bare)])


def test_a_call_that_failed_and_came_again_is_one_with_the_row_that_has_the_answer():
    bare = {"input_tokens": None, "cached_tokens": None, "output_tokens": None}
    seen = [call("g1", 0, status="error", **bare), call("g2", 900)]
    assert {"l": "g2"} == matched(seen, [call("l", 1_000)])


# Against all matchings that there are

_calls = st.builds(
    lambda at, response, turn, model, cached, failed: {
        "at": at * 2_500,
        "response": response,
        "turn_group": turn,
        "model": model,
        "cached_tokens": cached,
        "output_tokens": 14 if not failed else 15,
    },
    st.integers(0, 9),
    st.sampled_from([None, None, None, "", "r", "s", "t"]),
    st.sampled_from([None, None, "a", "b"]),
    st.sampled_from("mn"),
    st.sampled_from([None, 0, 0]),
    st.sampled_from([False, False, False, True]),
)


def sides(found) -> tuple[list[Call], list[Call]]:
    seen, logged = found
    return (
        [call(f"g{n}", **values) for n, values in enumerate(seen)],
        [call(f"l{n}", **values) for n, values in enumerate(logged)],
    )


def best(seen: list[Call], logged: list[Call]) -> tuple[int, int, int]:
    """The most that can be made of calls, by trying all ways to pair them in order."""
    mine, theirs = (
        sorted(some, key=lambda it: (it.ended_at, it.turn_id)) for some in (seen, logged)
    )
    most = (0, 0, 0)
    for size in range(1, min(len(mine), len(theirs)) + 1):
        for some in combinations(mine, size):
            for others in combinations(theirs, size):
                pairs = list(zip(some, others, strict=True))
                if all(one_call(*pair) for pair in pairs):
                    most = max(most, worth(pairs))
    return most


def one_call(one: Call, other: Call) -> bool:
    def apart(a, b):
        return None not in (a, b) and a != b

    return (
        abs(one.ended_at - other.ended_at) <= NEAR_MS
        and one.output_tokens == other.output_tokens
        and not (one.response_id and other.response_id and one.response_id != other.response_id)
        and not apart(one.turn_group, other.turn_group)
        and not apart(one.cached_tokens, other.cached_tokens)
    )


def worth(pairs) -> tuple[int, int, int]:
    return (
        len(pairs),
        -sum(one.model != other.model for one, other in pairs),
        -sum(abs(one.ended_at - other.ended_at) for one, other in pairs),
    )


def alone(calls: list[Call]) -> dict[str, Call]:
    ids = [one.response_id for one in calls]
    return {
        one.response_id: one for one in calls if one.response_id and ids.count(one.response_id) == 1
    }


@given(
    st.tuples(st.lists(_calls, max_size=5), st.lists(_calls, max_size=5)).map(sides),
    st.integers(0, 99),
)
def test_the_best_matching_is_found_whatever_the_order(found, seed: int):
    seen, logged = found
    pairs = matched(seen, logged)
    by_name = {one.turn_id: one for one in (*seen, *logged)}
    assert pairs.keys() <= {one.turn_id for one in logged}, "a record with"
    assert set(pairs.values()) <= {one.turn_id for one in seen}, "a gateway's row"
    assert len(set(pairs.values())) == len(pairs), "never two with one"

    mine, theirs = alone(seen), alone(logged)
    sure = {
        theirs[name].turn_id: mine[name].turn_id
        for name in mine.keys() & theirs.keys()
        if abs(mine[name].ended_at - theirs[name].ended_at) <= NEAR_MS
        or not differ(mine[name], theirs[name])
    }
    assert sure.items() <= pairs.items()
    for figure in (14, 15):
        rest = [
            [one for one in some if one.output_tokens == figure and one.turn_id not in done]
            for some, done in ((seen, set(sure.values())), (logged, sure.keys()))
        ]
        left = {one.turn_id for one in rest[1]}
        others = [(by_name[b], by_name[a]) for a, b in pairs.items() if a in left]
        assert all(one_call(*pair) for pair in others)
        assert best(*rest) == worth(others)

    rng = Random(seed)
    for some in (seen, logged):
        rng.shuffle(some)
    assert pairs == matched(seen, logged)


@pytest.mark.parametrize(("times", "pairs"), [(100, 100), (101, 0)])
def test_equal_calls_of_which_there_are_too_many_at_once_stay_apart(times: int, pairs: int):
    mine, theirs = ([call(f"{side}{n}", n) for n in range(times)] for side in "gl")
    assert pairs == len(matched(mine, theirs))


# What a row learns


def test_a_row_learns_what_only_the_log_knows():
    row = make_row(turn_group=None, root_session="mine", epoch_reset_reason=None, client=None)
    log = make_row(
        turn_group="t", root_session="theirs", epoch_reset_reason="rollback", client="codex"
    )
    new = learned(row, log)
    assert ("t", "mine", "rollback", "codex") == (
        new.turn_group,
        new.root_session,
        new.epoch_reset_reason,
        new.client,
    )


def test_what_the_gateway_measured_or_saw_to_be_missing_stays():
    row = make_row(input_tokens=10, ttft_ms=None, service_tier=None, mode="ws_full")
    log = make_row(input_tokens=12, ttft_ms=5.0, service_tier="fast", mode=None)
    assert row == learned(row, log)


def test_a_row_without_usage_takes_all_figures_of_the_log():
    row = unknown_usage()
    log = make_row(input_tokens=10, cached_tokens=4, output_tokens=2)
    new = learned(row, log)
    assert (10, 4, 6, 2, 12, "reported") == (
        new.input_tokens,
        new.cached_tokens,
        new.non_cached_tokens,
        new.output_tokens,
        new.total_tokens,
        new.usage_state,
    )
