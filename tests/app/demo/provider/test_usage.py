"""Token counts add up, and say only what the model's usage says."""

from app.demo.provider.replies import message, reasoning
from app.demo.provider.usage import output_tokens
from tests.support.provider import AUTH, answer, make_core, user

LONG = "word " * 2000


def test_the_total_is_input_and_output():
    usage = answer(make_core().open_connection(AUTH), [user("hi")])["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert 0 < usage["output_tokens_details"]["reasoning_tokens"] < usage["output_tokens"]


def test_writes_are_named_only_by_models_that_bill_them():
    connection = make_core().open_connection(AUTH)
    old = answer(connection, [user(LONG)], model="gpt-5.5")["usage"]["input_tokens_details"]
    assert old == {"cached_tokens": 0}
    new = answer(connection, [user(LONG)], model="gpt-5.6-sol")["usage"]
    assert new["input_tokens_details"]["cache_write_tokens"] == new["input_tokens"] // 128 * 128


def test_cached_and_written_never_exceed_the_input():
    connection = make_core().open_connection(AUTH)
    answer(connection, [user(LONG)], model="gpt-6-sol")
    usage = answer(connection, [user(LONG), user(LONG)], model="gpt-6-sol")["usage"]
    details = usage["input_tokens_details"]
    assert details["cached_tokens"] > 0
    assert details["cache_write_tokens"] > 0
    assert sum(details.values()) <= usage["input_tokens"]


def test_a_warm_up_writes_the_cache_and_generates_nothing():
    connection = make_core().open_connection(AUTH)
    warm = answer(connection, [user(LONG)], generate=False)
    assert warm["usage"]["output_tokens"] == 0
    turn = answer(connection, [user("a")], previous_response_id=warm["id"])
    assert turn["usage"]["input_tokens_details"]["cached_tokens"] > 0


def test_reasoning_is_a_part_of_the_output():
    total, thought = output_tokens([reasoning("g" * 400), message("hello")])
    assert 100 <= thought < total
