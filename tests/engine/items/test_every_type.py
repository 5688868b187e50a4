"""Every type of item that the protocol knows: what a replay may change of it, and what it may not.

Each is given with the keys of its schema. Those that say what was done are read back by the model,
so that one that is missing is a difference; of the others only a change is (DESIGN 4.3).
"""

from __future__ import annotations

import pytest

from engine import items
from tests.support.items import Item, changed, same, without

# Made by the model. First what it reads back, then what one side may lack.
MADE: dict[str, tuple[Item, Item]] = {
    "message": (
        {"role": "assistant", "phase": "final_answer",
         "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}]},
        {},
    ),
    "reasoning": (
        {"summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "E",
         "content": [{"type": "reasoning_text", "text": "t"}]},
        {},
    ),
    "function_call": (
        {"call_id": "c", "name": "n", "namespace": "mcp", "arguments": '{"a": [1, {"b": null}]}'},
        {"caller": {"type": "program", "caller_id": "p"}, "async": True},
    ),
    "custom_tool_call": ({"call_id": "c", "name": "n", "namespace": "m", "input": "text"}, {}),
    "tool_search_call": (
        {"call_id": "c", "arguments": {"query": "q", "limit": 3}}, {"execution": "client"},
    ),
    "web_search_call": (
        {"action": {"type": "search", "query": "q", "queries": ["q", "r"]}}, {},
    ),
    "file_search_call": (
        {"queries": ["q"], "results": [{"file_id": "f", "score": 0.5, "text": "t"}]}, {},
    ),
    "computer_call": (
        {"call_id": "c", "action": {"type": "click", "x": 1, "y": 2},
         "actions": [{"type": "wait"}, {"type": "keypress", "keys": ["a"]}]},
        {"pending_safety_checks": [{"id": "sc", "code": "x", "message": "m"}]},
    ),
    "image_generation_call": ({"result": "AA=="}, {"revised_prompt": "p", "size": "1x1"}),
    "code_interpreter_call": (
        {"code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]}, {"container_id": "cn"},
    ),
    "local_shell_call": (
        {"call_id": "c", "action": {"type": "exec", "command": ["ls"], "env": {"A": "b"}}}, {},
    ),
    "shell_call": (
        {"call_id": "c", "action": {"commands": ["ls", "pwd"], "timeout_ms": 5}},
        {"environment": {"type": "local"}},
    ),
    "apply_patch_call": (
        {"call_id": "c", "operation": {"type": "update_file", "path": "p", "diff": "d"}}, {},
    ),
    "mcp_list_tools": (
        {"server_label": "s", "tools": [{"name": "t", "input_schema": {"type": "object"}}],
         "error": "e"},
        {},
    ),
    "mcp_approval_request": ({"server_label": "s", "name": "n", "arguments": '{"a": 1}'}, {}),
    "mcp_call": (
        {"server_label": "s", "name": "n", "arguments": "{}", "output": "o", "error": "e"},
        {"approval_request_id": "mcpr"},
    ),
    "multi_agent_call": ({"call_id": "c", "action": "spawn", "arguments": "{}"}, {}),
    "agent_message": ({"role": "assistant", "content": [{"type": "text", "text": "a"}]}, {"author": "x"}),
    "program": ({"call_id": "c", "code": "run()"}, {"fingerprint": "fp"}),
    "compaction": ({"encrypted_content": "E"}, {}),
    "compaction_summary": ({"encrypted_content": "E"}, {}),
    "context_compaction": ({"encrypted_content": "E"}, {}),
}  # fmt: skip

# Sent by the client. Some of these come as output items, too: then the projection holds for them.
SENT: dict[str, Item] = {
    "message": {"role": "user", "content": [{"type": "input_text", "text": "a"},
                                            {"type": "input_image", "image_url": "u", "detail": "low"}]},
    "function_call_output": {"call_id": "c", "output": [{"type": "input_text", "text": "a"}]},
    "custom_tool_call_output": {"call_id": "c", "name": "n", "output": "text"},
    "computer_call_output": {"call_id": "c", "output": {"type": "computer_screenshot", "image_url": "u"},
                             "acknowledged_safety_checks": [{"id": "sc"}]},
    "local_shell_call_output": {"output": '{"stdout":"a"}'},
    "shell_call_output": {"call_id": "c", "max_output_length": 9,
                          "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]},
    "apply_patch_call_output": {"call_id": "c", "output": "done"},
    "tool_search_output": {"call_id": "c", "tools": [{"type": "function", "name": "f"}]},
    "mcp_approval_response": {"approval_request_id": "mcpr", "approve": True, "reason": "r"},
    "multi_agent_call_output": {"call_id": "c", "output": [{"type": "text", "text": "a"}]},
    "program_output": {"call_id": "c", "result": "42"},
    "additional_tools": {"role": "developer", "tools": [{"type": "function", "name": "f"}]},
    "configuration_update": {"reasoning": {"effort": "low"}},
    "compaction_trigger": {},
    "a_type_of_next_year": {"payload": {"a": [1, 2]}},
}  # fmt: skip

REGENERATED = {
    "status": "completed", "created_at": 1, "completed_at": 2, "created_by": "x",
    "annotations": [{"a": 1}], "logprobs": [{"b": 1}], "obfuscation": "y", "metadata": {"m": 1},
    "internal_chat_message_metadata_passthrough": {"turn": 1},
}  # fmt: skip


def made(type_: str) -> Item:
    content, more = MADE[type_]
    return {"type": type_, "id": "it_1", **content, **more}


def backwards(value: object) -> object:
    """The same JSON with the keys of all objects the other way round."""
    if isinstance(value, dict):
        return {key: backwards(inner) for key, inner in reversed(value.items())}
    return [backwards(inner) for inner in value] if isinstance(value, list) else value


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The ways to all values in it that hold no others."""
    if isinstance(value, dict):
        return [way for key, inner in value.items() for way in places(inner, (*path, key))]
    if isinstance(value, list):
        return [way for at, inner in enumerate(value) for way in places(inner, (*path, at))]
    return [path]


@pytest.mark.parametrize("type_", MADE)
def test_the_model_makes_it_and_its_kind_is_its_type(type_):
    assert items.made_by_model(made(type_))
    assert items.kind(made(type_)) == ("message:assistant" if type_ == "message" else type_)


@pytest.mark.parametrize("type_", SENT)
def test_the_client_sends_it_and_its_kind_is_its_type(type_):
    assert not items.made_by_model({"type": type_, **SENT[type_]})
    kind = items.kind({"type": type_, **SENT[type_]})
    assert kind == ("message:user" if type_ == "message" else type_)


@pytest.mark.parametrize("type_", MADE)
def test_a_replay_may_drop_add_and_reorder_what_the_model_does_not_read(type_):
    held = made(type_)
    content, more = MADE[type_]
    assert same({**held, **REGENERATED}, held)
    assert same({**held, **REGENERATED}, {**held, **dict.fromkeys(REGENERATED)})
    assert same(held, without(held, *more))
    assert same(held, without(held, "id"))
    assert same(held, {**held, "added_by_a_client": 1})
    assert same(held, {**held, "namespace": content.get("namespace")})
    assert same(held, backwards(held))


@pytest.mark.parametrize("type_", MADE)
def test_what_the_model_reads_must_not_be_missing_or_null(type_):
    held, (content, _) = made(type_), MADE[type_]
    assert [key for key in content if same(held, without(held, key))] == []
    assert [key for key in content if same(held, {**held, key: None})] == []


@pytest.mark.parametrize("type_", MADE)
def test_no_value_in_what_the_model_made_may_change(type_):
    held = made(type_)
    inside = [path for path in places(held) if path != ("type",)]
    assert [path for path in inside if same(held, changed(held, path))] == []


@pytest.mark.parametrize("type_", MADE)
def test_what_the_model_made_is_of_its_type(type_):
    assert not same(made(type_), {**made(type_), "type": "another_call"})


@pytest.mark.parametrize("received", [False, True])
@pytest.mark.parametrize("type_", SENT)
def test_an_item_of_the_client_is_the_same_in_any_order_of_keys(type_, received):
    held = {"type": type_, "id": "it_1", **SENT[type_]}
    assert same(held, backwards(held), model_made=received)
    assert same(held, without(held, "id"), model_made=received)
    assert same({**held, "metadata": {"m": 1}}, held, model_made=received)
    assert same({**held, "status": "completed"}, held, model_made=received) == received
    assert same({**held, "extra": 1}, held, model_made=received) == received
    assert same({**held, "phase": None}, held, model_made=received) == received


@pytest.mark.parametrize("received", [False, True])
@pytest.mark.parametrize("type_", SENT)
def test_no_value_in_an_item_of_the_client_may_change(type_, received):
    held = {"type": type_, **SENT[type_]}
    ways = places(SENT[type_])
    assert [
        path for path in ways if path and same(held, changed(held, path), model_made=received)
    ] == []


@pytest.mark.parametrize("type_", SENT)
def test_no_key_in_an_item_of_the_client_may_be_missing(type_):
    held = {"type": type_, **SENT[type_]}
    keys = list(SENT[type_])
    assert [key for key in keys if same(held, without(held, key), model_made=False)] == []
    assert [key for key in keys if same(held, {**held, key: None}, model_made=False)] == []


READ = {"role", "content", "call_id", "name", "output", "tools", "result"}


@pytest.mark.parametrize("type_", [type_ for type_, item in SENT.items() if READ & item.keys()])
def test_an_output_that_the_provider_made_may_not_lose_what_the_model_reads(type_):
    held = {"type": type_, **SENT[type_]}
    assert [key for key in READ & held.keys() if same(held, without(held, key))] == []
