"""The key under which an echo of an item is found again."""

import json

import pytest

from engine import items
from tests.support.items import CALL, MESSAGE, REASONING, arguments, without


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
