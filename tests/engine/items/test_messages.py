"""Short and long spellings of a message, and its parts (DESIGN 4.3)."""

import pytest

from tests.support.items import MESSAGE, REASONING, USER, between, same, without


def test_the_short_and_the_long_spelling_of_a_message_are_one():
    assert same(MESSAGE, {"role": "assistant", "content": "x"})
    assert same(MESSAGE, {"type": None, "role": "assistant", "content": "x"})
    assert same(MESSAGE, {"type": "message", "role": "assistant", "content": "x"})
    assert same(MESSAGE, {"role": "assistant", "content": [{"text": "x", "type": "output_text"}]})


@pytest.mark.parametrize("content", ["x ", "X", "", [], None, [{"type": "refusal", "text": "x"}]])
def test_another_text_in_any_spelling_is_another_message(content):
    assert not same(MESSAGE, {"role": "assistant", "content": content})


def test_two_parts_are_not_their_sum():
    held = {**MESSAGE, "content": [{"type": "output_text", "text": t} for t in "ab"]}
    assert between(held, {"role": "assistant", "content": "ab"}) is not None
    swapped = {**held, "content": held["content"][::-1]}
    assert between(held, swapped) == ("content", 0, "text")


def test_a_missing_part_is_told_by_its_place():
    held = {**MESSAGE, "content": [{"type": "output_text", "text": t} for t in "ab"]}
    assert between(held, {**held, "content": held["content"][:1]}) == ("content", 1)


def test_a_message_of_the_user_has_one_spelling():
    assert not same(USER, {"role": "user", "content": "hi"}, model_made=False)
    assert not same(USER, without(USER, "type"), model_made=False)


def test_no_empty_value_but_null_and_the_empty_list_counts_as_absent():
    assert not same({**REASONING, "content": False}, REASONING)
    assert not same({**REASONING, "content": {}}, REASONING)
    assert not same({**REASONING, "content": ""}, REASONING)


def test_parts_that_are_no_objects_are_compared_as_they_are():
    assert same({**MESSAGE, "content": ["a"]}, {**MESSAGE, "content": ["a"]})
    assert between({**MESSAGE, "content": ["a"]}, {**MESSAGE, "content": ["b"]}) == ("content", 0)
    assert not same({**MESSAGE, "content": ["a"]}, MESSAGE)


def test_a_part_that_lacks_what_the_model_reads_is_another():
    text = {"type": "output_text", "text": "x"}
    refusal = {"type": "refusal", "refusal": "no"}
    for part, key in ((text, "type"), (text, "text"), (refusal, "type"), (refusal, "refusal")):
        held = {**MESSAGE, "content": [part]}
        assert between(held, {**held, "content": [without(part, key)]}) == ("content", 0, key)
