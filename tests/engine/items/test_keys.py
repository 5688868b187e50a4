"""Which keys of an item count: regenerated, unknown, optional ones, and content (DESIGN 4.3)."""

import pytest

from tests.support.items import CALL, MESSAGE, REASONING, USER, between, same, without

REGENERATED = [
    "status", "created_at", "completed_at", "created_by", "annotations", "logprobs",
    "obfuscation", "metadata", "internal_chat_message_metadata_passthrough",
]  # fmt: skip


@pytest.mark.parametrize("key", REGENERATED)
def test_what_a_provider_regenerates_is_ignored(key):
    bare = without(MESSAGE, "status")
    assert same({**bare, key: "one"}, bare)
    assert same({**bare, key: "one"}, {**bare, key: "two"})


@pytest.mark.parametrize("key", REGENERATED)
def test_it_is_not_ignored_in_an_item_of_the_client(key):
    held = {**USER, key: "one"}
    assert same(held, USER, model_made=False) == (key == "metadata")


@pytest.mark.parametrize("key", REGENERATED)
def test_it_is_ignored_in_parts_of_a_content_and_nowhere_else(key):
    for name, equal in (("content", True), ("summary", True), ("output", False), ("tools", False)):
        held = {"type": "function_call_output", name: [{"type": "t", key: "one"}]}
        assert same(held, {**held, name: [{"type": "t"}]}) == equal
        assert same(held, {**held, name: [{"type": "t", key: "two"}]}) == equal


def test_metadata_of_items_is_ignored_wherever_they_come_from():
    assert same({**USER, "metadata": {"k": "v"}}, USER, model_made=False)
    assert same({**USER, "metadata": {"k": "v"}}, {**USER, "metadata": 1}, model_made=False)
    inner = {**USER, "content": [{"type": "input_text", "text": "hi", "metadata": {"k": 1}}]}
    assert not same(inner, USER, model_made=False)


def test_an_unknown_key_is_ignored_only_where_one_side_lacks_it():
    assert same({**MESSAGE, "future": {"a": 1}}, MESSAGE)
    assert same({"future": {"a": 1}, **MESSAGE}, MESSAGE)
    assert between({**MESSAGE, "future": 1}, {**MESSAGE, "future": 2}) == ("future",)
    part = {"type": "output_text", "text": "x", "extra": 5}
    assert same({**MESSAGE, "content": [part]}, MESSAGE)
    assert not same({**MESSAGE, "content": [part]}, {**MESSAGE, "content": [{**part, "extra": 6}]})


@pytest.mark.parametrize(
    ("item", "key"),
    [
        (MESSAGE, "content"), (MESSAGE, "role"), (CALL, "call_id"), (CALL, "name"),
        (CALL, "arguments"), (REASONING, "encrypted_content"),
    ],
)  # fmt: skip
def test_content_that_one_side_lacks_is_a_difference(item, key):
    assert between(item, without(item, key))[0] == key
    assert between(item, {**item, key: None})[0] == key


@pytest.mark.parametrize(
    "key",
    ["phase", "namespace", "input", "output", "action", "result", "code", "error", "operation"],
)
def test_optionals_are_one_when_absent_or_null_and_compared_when_given(key):
    assert same({**CALL, key: None}, CALL)
    assert same({**CALL, key: "a"}, {**CALL, key: "a"})
    assert not same({**CALL, key: "a"}, CALL)
    assert not same({**CALL, key: "a"}, {**CALL, key: "b"})


def test_another_type_is_another_item():
    assert not same(CALL, {**CALL, "type": "custom_tool_call"})
    assert not same({**CALL, "type": None}, CALL)


@pytest.mark.parametrize("key", ["output", "tools", "actions", "results", "queries", "outputs"])
def test_an_empty_list_is_a_value_everywhere_but_in_content_and_summary(key):
    assert not same({**CALL, key: []}, CALL)
    assert not same({**CALL, key: []}, {**CALL, key: None})
    assert same({**CALL, "content": [], "summary": []}, CALL)
