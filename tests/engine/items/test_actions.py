"""Sources of a web search, which Codex drops, and values inside actions (DESIGN 4.3)."""

from tests.support.items import between, same


def test_sources_of_a_web_search_are_optional():
    action = {"type": "search", "query": "q", "queries": ["q"]}
    held = {"type": "web_search_call", "id": "ws", "action": {**action, "sources": [{"u": 1}]}}
    assert same(held, {**held, "action": action})
    assert not same(held, {**held, "action": {**action, "sources": []}})
    assert not same(held, {**held, "action": {**action, "query": "p"}})


def test_sources_anywhere_else_are_content():
    held = {"type": "tool_search_call", "call_id": "c", "arguments": {"sources": ["a"]}}
    assert not same(held, {**held, "arguments": {}})
    call = {"type": "shell_call", "call_id": "c", "action": {"env": {"sources": "a"}}}
    assert not same(call, {**call, "action": {"env": {}}})
    assert not same({**call, "action": {"sources": ["a"]}}, {**call, "action": {}})
    search = {"type": "web_search_call", "action": {}, "more": {"sources": ["a"]}}
    assert not same(search, {**search, "more": {}})
    tools = {"type": "mcp_list_tools", "server_label": "s"}
    with_it = [{"name": "f", "input_schema": {"properties": {"sources": {"type": "string"}}}}]
    less = [{"name": "f", "input_schema": {"properties": {}}}]
    assert not same({**tools, "tools": with_it}, {**tools, "tools": less})


def test_nested_values_are_told_by_their_path():
    held = {"type": "shell_call", "action": {"commands": ["a", "b"], "timeout": None}}
    assert same(held, {**held, "action": {"commands": ["a", "b"]}})
    assert between(held, {**held, "action": {"commands": ["a", "c"]}}) == ("action", "commands", 1)
    assert between(held, {**held, "action": {"commands": ["a"]}}) == ("action", "commands", 1)


def test_an_action_that_is_no_object_is_compared_as_it_is():
    held = {"type": "web_search_call", "action": "open"}
    assert same(held, dict(held))
    assert not same(held, {**held, "action": "find"})
    assert not same(held, {**held, "action": {"type": "open"}})
    assert not same(held, {**held, "action": {"sources": []}})


def test_null_and_absent_are_one_in_objects_inside_of_lists_too():
    held = {"type": "computer_call", "actions": [{"type": "click", "button": None}]}
    assert same(held, {**held, "actions": [{"type": "click"}]})
    assert not same(held, {**held, "actions": [{"type": "click", "button": 0}]})
    assert not same(held, {**held, "actions": [{"type": "click"}, None]})
    assert not same(held, {**held, "actions": []})
