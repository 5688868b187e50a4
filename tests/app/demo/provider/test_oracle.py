"""The judge's equalities, rule by rule."""

import json

import pytest

from app.demo.provider.items import Item
from app.demo.provider.oracle import (
    changed_fields,
    extends,
    first_difference,
    items_of,
    made_by_model,
    same_item,
    same_transcript,
    spelled_out,
    strict,
)
from app.demo.provider.replies import (
    custom_tool_call,
    function_call,
    message,
    reasoning,
    refusal,
    unknown_item,
)
from tests.support.provider import AUTH, answer, make_core, output_of, user

CALL = function_call("f", '{"a": 1}', "call_1", id="fc_1", status="completed")
SAID = message("hello", id="msg_1", status="completed", phase="final_answer")
THOUGHT = reasoning("gAAA", ["because"], id="rs_1")


def without(value, *names):
    return {k: v for k, v in value.items() if k not in names}


def plain(text, **more):
    """A message as Codex gives it back: no annotations, no logprobs."""
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content, **more}


SAME = {
    "itself": (SAID, SAID),
    "another key order": (CALL, dict(reversed(CALL.items()))),
    "no id": (SAID, without(SAID, "id")),
    "no status": (CALL, without(CALL, "status")),
    "another status": (CALL, {**CALL, "status": "in_progress"}),
    "no annotations and logprobs": (SAID, plain("hello", phase="final_answer")),
    "a null phase": (without(SAID, "phase"), {**without(SAID, "phase"), "phase": None}),
    "a null namespace": (CALL, {**CALL, "namespace": None}),
    "metadata": (SAID, {**SAID, "metadata": {"a": 1}}),
    "pass-through metadata": (SAID, {**SAID, "internal_chat_message_metadata_passthrough": {}}),
    "created by": (CALL, {**CALL, "created_by": "x"}),
    "an unknown key on one side": (CALL, {**CALL, "caller": {"type": "direct"}}),
    "the short spelling": (
        SAID,
        {"role": "assistant", "content": "hello", "phase": "final_answer"},
    ),
    "re-serialized arguments": (CALL, {**CALL, "arguments": '{"a":1}'}),
    "arguments in another key order": (
        function_call("f", '{"a":1,"b":2}', "c"),
        function_call("f", '{"b":2,"a":1}', "c"),
    ),
    "reasoning with null content": (THOUGHT, {**THOUGHT, "content": None}),
    "reasoning with empty content": (THOUGHT, {**THOUGHT, "content": []}),
    "reasoning by ciphertext alone": (THOUGHT, without(THOUGHT, "id")),
    "reasoning by its text alone": (
        reasoning(None, ["because"], id="rs_1"),
        reasoning(None, ["because"]),
    ),
    "reasoning by id alone": (reasoning(id="rs_1"), reasoning(id="rs_1", content=None)),
    "a user item and itself in another key order": (
        user("a", id="msg_2"),
        dict(reversed(user("a", id="msg_2").items())),
    ),
    "a user item and its metadata": (user("a"), user("a", metadata={"k": "v"})),
    "a web search without its sources": (
        {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "sources": [1]}},
        {"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}},
    ),
}

DIFFERENT = {
    "two ids": (SAID, {**SAID, "id": "msg_2"}),
    "two ids of user items": (user("a", id="msg_1"), user("a", id="msg_2")),
    "another text": (SAID, message("hello!", id="msg_1")),
    "another role": (SAID, {**SAID, "role": "user"}),
    "another phase": (SAID, {**SAID, "phase": "commentary"}),
    "no phase": (SAID, without(SAID, "phase")),
    "a phase that was not held": (without(SAID, "phase"), SAID),
    "an empty phase": (without(SAID, "phase"), {**SAID, "phase": ""}),
    "another type": (CALL, custom_tool_call("f", '{"a": 1}', "call_1", id="fc_1")),
    "another call id": (CALL, {**CALL, "call_id": "call_2"}),
    "another name": (CALL, {**CALL, "name": "g"}),
    "a namespace": (CALL, {**CALL, "namespace": "n"}),
    "another argument": (CALL, {**CALL, "arguments": '{"a": 2}'}),
    "a number in another form": (CALL, {**CALL, "arguments": '{"a": 1.0}'}),
    "a key twice in the arguments": (CALL, {**CALL, "arguments": '{"a": 1, "a": 1}'}),
    "arguments that only look alike": (CALL, {**CALL, "arguments": '{"a": 1'}),
    "input is never read as JSON": (
        custom_tool_call("f", '{"a": 1}', "c"),
        custom_tool_call("f", '{"a":1}', "c"),
    ),
    "another ciphertext": (THOUGHT, {**THOUGHT, "encrypted_content": "gBBB"}),
    "a missing ciphertext": (THOUGHT, without(THOUGHT, "encrypted_content")),
    "another summary": (THOUGHT, {**THOUGHT, "summary": []}),
    "reasoning about nothing": (reasoning(), reasoning()),
    "reasoning about nothing with one id": (reasoning(id="rs_1"), reasoning()),
    "another output": (output_of("c", "a"), output_of("c", "b")),
    "an output in another spelling": (
        output_of("c", "a"),
        output_of("c", [{"type": "input_text", "text": "a"}]),
    ),
    "a user item with a key more": (user("a"), user("a", status="completed")),
    "a user item in the short spelling": (user("a"), {"role": "user", "content": "a"}),
    "an unknown key with two values": ({**CALL, "caller": 1}, {**CALL, "caller": 2}),
    "a key more in a call's output": (
        {"type": "mcp_call", "id": "mcp_1", "output": [{"a": 1}]},
        {"type": "mcp_call", "id": "mcp_1", "output": [{"a": 1, "b": 2}]},
    ),
    "a refusal instead of a text": (SAID, refusal("hello", id="msg_1")),
    "compaction content": (
        {"type": "compaction", "encrypted_content": "a"},
        {"type": "compaction", "encrypted_content": "b"},
    ),
    "true and one": ({**user("a"), "x": True}, {**user("a"), "x": 1}),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same(name):
    a, b = SAME[name]
    assert same_item(a, b)
    assert same_item(b, a)


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(name):
    a, b = DIFFERENT[name]
    assert not same_item(a, b)
    assert not same_item(b, a)


def test_numbers_are_compared_by_their_literal():
    assert same_item('{"type":"x","n":1e0}', '{"n":1e0,"type":"x"}')
    assert not same_item('{"type":"x","n":1e0}', '{"type":"x","n":1.0}')
    assert strict("[1, 1.0, 1e0, NaN]")[0] != strict("[1, 1.0, 1e0, NaN]")[1]


def test_what_was_received_as_output_is_compared_like_a_models_item():
    a, b = unknown_item(id="h_1"), unknown_item(status="completed")
    assert same_item(a, b)  # ends in _call
    a, b = {"type": "hologram", "id": "h_1"}, {"type": "hologram", "status": "completed"}
    assert not same_item(a, b)
    assert same_item(a, b, made=True)
    assert same_item(Item(json.dumps(a), a, made=True), b)


def test_who_made_an_item():
    assert [made_by_model(x) for x in (SAID, CALL, THOUGHT, unknown_item())] == [True] * 4
    assert [made_by_model(x) for x in (user("a"), output_of("c"), {"type": "x"})] == [False] * 3


def test_the_long_spelling():
    assert spelled_out({"role": "user", "content": "a"}) == user("a")
    assert spelled_out(output_of("c")) == output_of("c")


@pytest.mark.parametrize(
    "first", [user("hi"), {"role": "user", "content": "hi"}, {**user("hi"), "content": "hi"}]
)
def test_a_string_is_one_user_message_in_any_spelling(first):
    assert same_transcript(items_of("hi"), [first])
    assert same_transcript([first], "hi")


def test_extends_gives_what_lies_beyond():
    held = [user("a"), SAID]
    assert extends(held, [user("a"), without(SAID, "id"), user("b")]) == [user("b")]
    assert extends(held, [user("a"), SAID]) == []
    assert extends(held, [user("a")]) is None
    assert extends(held, [SAID, user("a"), user("b")]) is None
    assert extends([], None) == []


def test_a_model_item_that_the_client_leaves_out_is_a_difference():
    held = [user("a"), refusal("no", id="msg_1"), user("b")]
    assert extends(held, [user("a"), user("b"), user("c")]) is None


def test_where_two_transcripts_part():
    held = [user("a"), SAID]
    assert first_difference(held, [user("a"), SAID]) is None
    assert first_difference(held, [user("x"), SAID]) == 0
    assert first_difference(held, [user("a")]) == 1
    assert first_difference(held, [user("a"), SAID, user("b")]) == 2


def test_a_providers_transcript_equals_what_the_client_means():
    core = make_core(replies=[[THOUGHT, SAID], "two"])
    connection = core.open_connection(AUTH)
    first = answer(connection, "hi")
    last = answer(connection, [user("more")], previous_response_id=first["id"])
    logical = [
        {"role": "user", "content": "hi"},
        without(THOUGHT, "id"),
        plain("hello", phase="final_answer"),
        user("more"),
        plain("two"),
    ]
    assert same_transcript(core.held(last["id"]).items, logical)
    assert not same_transcript(core.held(last["id"]).items, logical[:-1])


FIELDS = {"model": "m", "tools": [{"name": "a"}, {"name": "b"}], "reasoning": {"effort": "low"}}


@pytest.mark.parametrize(
    "now",
    [
        {"input": "x"},
        {"stream": True, "stream_options": {}},
        {"client_metadata": {"turn": "2"}, "metadata": {"a": "b"}},
        {"previous_response_id": "r", "generate": False, "stream_id": "s", "type": "t"},
        {"background": True, "access_programs": {}},
        {"temperature": None},
        {"prompt_cache_options": {"comparison_response_id": "r", "prewarm": True}},
        {"reasoning": {"effort": "low"}},
    ],
)
def test_fields_that_do_not_count(now):
    assert changed_fields(FIELDS, {**FIELDS, **now}) == []


@pytest.mark.parametrize(
    ("now", "names"),
    [
        ({"tools": FIELDS["tools"][::-1]}, ["tools"]),
        ({"instructions": "x", "model": "n"}, ["instructions", "model"]),
        ({"unknown": 1}, ["unknown"]),
        ({"prompt_cache_options": {"ttl": "30m", "prewarm": True}}, ["prompt_cache_options"]),
        ({"store": False}, ["store"]),
    ],
)
def test_fields_that_count(now, names):
    assert changed_fields(FIELDS, {**FIELDS, **now}) == names
