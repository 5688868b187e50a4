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
    tools = {"type": "mcp_list_tools", "server_label": "s"}
    with_it = [{"name": "f", "input_schema": {"properties": {"sources": {"type": "string"}}}}]
    less = [{"name": "f", "input_schema": {"properties": {}}}]
    assert not same({**tools, "tools": with_it}, {**tools, "tools": less})


def test_nested_values_are_told_by_their_path():
    held = {"type": "shell_call", "action": {"commands": ["a", "b"], "timeout": None}}
    assert same(held, {**held, "action": {"commands": ["a", "b"]}})
    assert between(held, {**held, "action": {"commands": ["a", "c"]}}) == ("action", "commands", 1)
    assert between(held, {**held, "action": {"commands": ["a"]}}) == ("action", "commands", 1)
