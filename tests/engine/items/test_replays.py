"""Pairs as real clients make them, and the twin of each that is another item."""

import pytest

from tests.support.items import CALL, MESSAGE, REASONING, changed, same, without

TEXT = {"type": "output_text", "annotations": [], "logprobs": []}
HELD_REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Look first"}],
    "encrypted_content": "gAAAAB",
}
HELD_MESSAGE = {
    **MESSAGE,
    "content": [{**TEXT, "text": "Run it."}],
    "phase": "commentary",
}
HELD_CALL = {**CALL, "arguments": '{"command": "echo hi", "why": "é"}'}
ODD = {
    "id": "msg_2",
    "type": "message",
    "status": "in_progress",
    "role": "assistant",
    "phase": None,
    "unknown_field": {"a": 1},
    "content": [{**TEXT, "text": "odd \u2603 \u0001", "extra": 5}],
}
PAIRS = {
    "codex, live: an empty content is dropped": (
        {**REASONING, "content": [], "status": "completed"},
        REASONING,
    ),
    "codex, resumed: content is null": (
        {**REASONING, "content": [], "status": "completed"},
        {**REASONING, "content": None},
    ),
    "codex: an id of its own for a message without": (
        without(MESSAGE, "id", "status"),
        {**without(MESSAGE, "status"), "id": "msg_01a2"},
    ),
    "codex: unknown keys and null phase are dropped": (
        ODD,
        {
            "type": "message",
            "status": "in_progress",
            "id": "msg_2",
            "role": "assistant",
            "content": [{**TEXT, "text": "odd \u2603 \u0001"}],
        },
    ),
    "codex: namespace null is dropped": (
        {**CALL, "namespace": None, "created_by": "zz"},
        {"type": "function_call", "id": "fc_1", "name": "sh", "arguments": '{"a": 1}', "call_id": "c1"},
    ),
    "codex: reasoning known by its id only": (
        {"type": "reasoning", "id": "rs_3", "summary": []},
        {"type": "reasoning", "id": "rs_3", "summary": [], "content": None, "encrypted_content": None},
    ),
    "codex: a shell call in another key order": (
        {"id": "l", "type": "local_shell_call", "action": {"type": "exec", "env": {}, "user": None}},
        {"type": "local_shell_call", "id": "l", "action": {"user": None, "type": "exec", "env": {}}},
    ),
    "codex: the background of an image is dropped": (
        {"id": "ig", "type": "image_generation_call", "result": "AA", "background": "opaque"},
        {"id": "ig", "type": "image_generation_call", "result": "AA"},
    ),
    "agents SDK: to_input_list": (
        HELD_REASONING,
        {
            "id": "rs_1",
            "summary": [{"text": "Look first", "type": "summary_text"}],
            "type": "reasoning",
            "encrypted_content": "gAAAAB",
        },
    ),
    "openai SDK: model_dump adds nulls": (
        HELD_REASONING,
        {**HELD_REASONING, "content": None, "status": None},
    ),
    "pi: no logprobs, arguments serialized again": (
        HELD_CALL,
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c1",
            "name": "sh",
            "arguments": '{"command":"echo hi","why":"\\u00e9"}',
        },
    ),
    "pi: a message keeps its id and phase": (
        HELD_MESSAGE,
        {**HELD_MESSAGE, "content": [{"type": "output_text", "text": "Run it.", "annotations": []}]},
    ),
    "opencode: reasoning without an id": (HELD_REASONING, without(HELD_REASONING, "id")),
    "opencode: a message without type and id": (
        HELD_MESSAGE,
        {
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Run it."}],
            "phase": "commentary",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize(("held", "echo"), PAIRS.values(), ids=PAIRS.keys())
def test_the_echo_of_a_real_client_is_the_same_item(held, echo):
    assert same(held, echo)


def _leaves(value, path=()):
    """All strings that the model reads back, with the way to them."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in {"status", "annotations", "logprobs"}:
                continue
            yield from _leaves(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*path, place))
    elif isinstance(value, str):
        yield path


@pytest.mark.parametrize(("held", "echo"), PAIRS.values(), ids=PAIRS.keys())
def test_its_twin_with_one_value_changed_is_another(held, echo):
    ways = [path for path in _leaves(echo) if not (path == ("id",) and "id" not in held)]
    assert ways
    assert [path for path in ways if same(held, changed(echo, path))] == []


@pytest.mark.parametrize("dropped", ["encrypted_content", "summary"])
def test_a_client_that_drops_a_part_of_a_thought_does_not_hold_it(dropped):
    assert not same(HELD_REASONING, without(HELD_REASONING, dropped))


def test_a_client_that_drops_the_phase_does_not_hold_it():
    assert not same(HELD_MESSAGE, without(HELD_MESSAGE, "phase"))
