"""Arguments match as strings or as the JSON that they hold (DESIGN 4.3)."""

import copy

import pytest

from tests.support.items import CALL, DEEP, arguments, between, same


@pytest.mark.parametrize(
    "echo",
    ['{"a":1}', ' {"a" : 1}\n', '{"\\u0061":1}'],
)
def test_arguments_match_as_json_when_a_client_serializes_them_again(echo):
    assert same(CALL, arguments(echo))


@pytest.mark.parametrize(
    "echo",
    ['{"a":1.0}', '{"a":1e0}', '{"a":true}', '{"a":"1"}', '{"a":2}', '{"b":1}', "{}", "", "null",
     '{"a":1,"a":1}', '{"a":1', {"a": 1}, '{"a":1,"b":null}'],
)  # fmt: skip
def test_arguments_of_another_value_are_another_call(echo):
    assert between(CALL, arguments(echo)) == ("arguments",)


def test_key_order_in_arguments_is_free_and_array_order_is_not():
    assert same(arguments('{"a":[1,2],"b":2}'), arguments('{"b":2,"a":[1,2]}'))
    assert not same(arguments('{"a":[1,2]}'), arguments('{"a":[2,1]}'))


def test_arguments_that_are_no_json_match_as_strings_only():
    assert same(arguments("not json"), arguments("not json"))
    assert not same(arguments("not json"), arguments("not  json"))


def test_a_key_that_stands_twice_proves_nothing():
    assert same(arguments('{"a":1,"a":2}'), arguments('{"a":1,"a":2}'))
    assert not same(arguments('{"a":1,"a":2}'), arguments('{"a":1, "a":2}'))


def test_arguments_too_deep_to_read_match_as_strings_only():
    assert same(arguments(DEEP), arguments(DEEP))
    assert not same(arguments(DEEP), arguments(DEEP + " "))


def test_arguments_given_as_an_object_are_compared_without_leniency():
    held = {**CALL, "type": "tool_search_call", "arguments": {"query": "q", "n": None}}
    assert same(held, copy.deepcopy(held))
    assert not same(held, {**held, "arguments": {"query": "q"}})
    assert not same(held, {**held, "arguments": '{"query":"q","n":null}'})


def test_the_input_of_a_custom_tool_is_a_string_and_no_json():
    held = {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": '{"a": 1}'}
    assert same(held, dict(held))
    assert not same(held, {**held, "input": '{"a":1}'})
