"""Who made an item, and by which word it is known; the rules of equality stand in items/."""

import pytest

from engine import items
from tests.support.items import MESSAGE, USER


@pytest.mark.parametrize(
    "type_",
    ["reasoning", "compaction", "compaction_summary", "mcp_list_tools", "function_call",
     "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call", "mcp_call"],
)  # fmt: skip
def test_these_kinds_are_made_by_the_model(type_):
    assert items.made_by_model({"type": type_})
    assert items.kind({"type": type_}) == type_


@pytest.mark.parametrize(
    "value",
    [USER, {"role": "developer", "content": "x"}, {"type": "function_call_output"},
     {"type": "item_reference", "id": "x"}, {"type": 5}, {}, "text", None],
)  # fmt: skip
def test_these_are_not(value):
    assert not items.made_by_model(value)


def test_an_assistant_message_is_made_by_the_model_in_both_spellings():
    assert items.made_by_model(MESSAGE)
    assert items.made_by_model({"role": "assistant", "content": "x"})


@pytest.mark.parametrize(
    "role", ["user", "assistant", "system", "developer", "tool", "critic", "discriminator"]
)
def test_the_kind_of_a_message_tells_its_role(role):
    assert items.kind({"type": "message", "role": role}) == f"message:{role}"


@pytest.mark.parametrize("role", [None, 5, ["user"], {"a": 1}])
def test_a_message_whose_role_is_no_word_has_the_kind_of_its_type(role):
    assert items.kind({"type": "message", "role": role}) == "message"
    assert items.kind({"role": role}) == "unknown"
    assert not items.made_by_model({"type": "message", "role": role})


def test_a_kind_is_a_word_and_never_content():
    assert items.kind(USER) == "message:user"
    assert items.kind({"role": "assistant"}) == "message:assistant"
    assert items.kind({"role": "secret words"}) == "message:other"
    assert items.kind({"type": "secret words"}) == "unknown"
    assert items.kind({"type": "a" * 99}) == "a" * 64
    assert items.kind({"type": 5}) == "unknown"
    assert items.kind([]) == "value"
