"""The key under which an echo of an item is found again."""

import json

import pytest

from engine import items
from tests.support.items import CALL, DEEP, MESSAGE, REASONING, arguments, without


def key(value):
    return items.echo_key(items.parse(json.dumps(value)))


@pytest.mark.parametrize(
    ("held", "echo"),
    [
        (MESSAGE, {"role": "assistant", "content": "x"}),
        (REASONING, {"type": "reasoning", "encrypted_content": "E", "content": None}),
        (CALL, {"type": "function_call", "call_id": "c1", "name": "sh", "arguments": '{"a":1}'}),
        (arguments("no json"), without(arguments("no json"), "id")),
        ({**MESSAGE, "content": ["a"]}, {**MESSAGE, "content": ["a"], "status": None}),
        (
            {"type": "web_search_call", "action": {"query": "q", "sources": [{"url": "u"}]}},
            {"type": "web_search_call", "action": {"query": "q"}},
        ),
    ],
)
def test_an_echo_is_found_under_the_key_of_its_item(held, echo):
    assert key(held)[0] == key(echo)[0]


def test_an_echo_key_tells_the_id_beside_the_content():
    assert (key(MESSAGE)[1], key(without(MESSAGE, "id"))[1]) == ("msg_1", None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (MESSAGE, {"role": "assistant", "content": "y"}),
        (CALL, arguments('{"a":1.0}')),
        ({"type": "hologram", "number": 1}, {"type": "hologram", "number": 2}),
        ("a", "b"),
    ],
)
def test_other_content_has_another_key(one, other):
    assert key(one)[0] != key(other)[0]


def test_what_is_no_json_has_no_key():
    with pytest.raises(TypeError, match="object"):
        items.echo_key(object())


@pytest.mark.parametrize("id_", [None, "", 5, ["a"]])
def test_an_id_that_is_no_text_is_none(id_):
    assert key({**CALL, "id": id_}) == (key(CALL)[0], None)
    assert key(["a"])[1] is None


@pytest.mark.parametrize("empty", [None, [], {}])
def test_what_is_empty_is_no_part_of_the_key(empty):
    held = {"type": "web_search_call", "result": "x"}
    for name in ("action", "content", "summary", "arguments"):
        assert key({**held, name: empty})[0] == key(held)[0]
    assert key({**held, "action": ""})[0] != key(held)[0]
    assert key({**held, "action": {"sources": ["a"]}})[0] == key(held)[0]


@pytest.mark.parametrize("name", ["content", "summary"])
def test_of_a_part_only_what_the_model_reads_makes_the_key(name):
    part = {"type": "t", "text": "x", "refusal": "y"}
    held = {"type": "reasoning", name: [part, "z"]}
    assert key({**held, name: [{**part, "annotations": [1], "more": 2}, "z"]})[0] == key(held)[0]
    for read in part:
        assert key({**held, name: [{**part, read: "other"}, "z"]})[0] != key(held)[0]
    assert key({**held, name: [part]})[0] != key(held)[0]
    assert key({**held, "output": [part]})[0] != key({**held, "output": [{**part, "m": 1}]})[0]


def test_the_order_of_keys_makes_no_other_key():
    one = {"type": "shell_call", "call_id": "c", "action": {"a": {"b": 1, "c": 2}}}
    other = {"action": {"a": {"c": 2, "b": 1}}, "call_id": "c", "type": "shell_call"}
    assert key(one) == key(other)
    assert key(one)[0] != key({**one, "action": {"a": {"b": 2, "c": 1}}})[0]


def test_only_the_action_may_lose_its_sources():
    held = {"type": "web_search_call", "result": {"sources": ["a"], "b": 1}}
    assert key(held)[0] != key({**held, "result": {"b": 1}})[0]
    acts = {"type": "web_search_call", "action": ["a"]}
    assert key(acts)[0] != key({**acts, "action": ["b"]})[0]


def test_arguments_are_read_where_they_are_json_and_only_they():
    assert key(arguments('{"a": [1, 2]}'))[0] == key(arguments('{"a":[1,2]}'))[0]
    assert key(arguments({"a": 1}))[0] == key(arguments('{"a": 1}'))[0]
    assert key(arguments(DEEP))[0] != key(arguments(DEEP + " "))[0]
    custom = {"type": "custom_tool_call", "input": '{"a": 1}'}
    assert key(custom)[0] != key({**custom, "input": '{"a":1}'})[0]


def test_a_text_of_any_characters_has_a_key():
    lone = {"role": "assistant", "content": "\ud800"}
    assert key(lone)[0] == key(dict(lone))[0] != key({**lone, "content": "\ud801"})[0]


def test_a_key_is_sixteen_bytes():
    assert len(key(MESSAGE)[0]) == 16


@pytest.mark.parametrize("type_", ["a_kind_of_next_year", None])
def test_an_item_of_unknown_kind_is_known_by_all_that_a_client_keeps(type_):
    held = {"type": type_, "payload": 1, "more": {"a": 1, "b": 2}}
    regenerated = {"id": "x_1", "status": "done", "created_at": 1, "metadata": {"m": 1}}
    echo = {"more": {"b": 2, "a": 1}, "payload": 1, "type": type_}
    assert key({**held, **regenerated})[0] == key(held)[0] == key(echo)[0]
    assert key({**held, **regenerated})[1] == "x_1"
    assert key(held)[0] != key({**held, "payload": 2})[0]
    assert key(held)[0] != key(without(held, "payload"))[0]


def test_what_is_unknown_in_a_known_kind_makes_no_other_key():
    assert key({**CALL, "payload": 1})[0] == key(CALL)[0]
