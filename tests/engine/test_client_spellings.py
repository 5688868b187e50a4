"""Each field in which a client's replay differs from what the provider sent, and where it ends.

A row has one item as it was answered, the spellings of it that clients were seen to give back, and
twins that look like such a spelling and say something else. What is true of the items is true of
the turn: the first kind is continued, the second kind is not.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import Raw

from app.demo.provider.replies import Reply
from engine import items
from engine.held import HeldItem
from engine.model import Mode, Reason
from tests.support.captures import SHAPES, load
from tests.support.loopback import Stack
from tests.support.provider import MODEL, make_core, output_of, user

Json = dict[str, Any]


def text(words: str = "Run it.", **more: Any) -> Json:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": words, **more}


MESSAGE: Json = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "content": [text()],
}
CALL: Json = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_1",
    "name": "shell",
    "arguments": '{"command": "echo hi", "n": 1.0}',
}
CUSTOM: Json = {
    "id": "ctc_1",
    "type": "custom_tool_call",
    "status": "completed",
    "call_id": "call_1",
    "name": "patch",
    "input": "*** Begin",
}
REASONING: Json = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Look first."}],
    "encrypted_content": "gAAAAAB",
}


def without(item: Json, *names: str) -> Json:
    return {name: value for name, value in item.items() if name not in names}


def part(**more: Any) -> list[Json]:
    """The one part of the message, bare, with what is given."""
    return [{"type": "output_text", "text": "Run it.", **more}]


@dataclass(frozen=True)
class Row:
    held: Json
    same: dict[str, Json]
    other: dict[str, Json]


ROWS = {
    "id": Row(
        MESSAGE,
        {
            "the SDKs keep it": dict(MESSAGE),
            "opencode drops it": without(MESSAGE, "id"),
            "null": {**MESSAGE, "id": None},
        },
        {
            "another": {**MESSAGE, "id": "msg_2"},
            "none, and another text": {**without(MESSAGE, "id"), "content": [text("Run it!")]},
        },
    ),
    "an id that the provider did not give": Row(
        without(MESSAGE, "id", "status"),
        {"Codex gives one": {**without(MESSAGE, "status"), "id": "msg_u1"}},
        {"on another text": {**MESSAGE, "id": "msg_u1", "content": [text("Run them.")]}},
    ),
    "status": Row(
        CALL,
        {
            "pi drops it": without(CALL, "status"),
            "model_dump writes null": {**CALL, "status": None},
            "Codex keeps what was streamed": {**CALL, "status": "in_progress"},
        },
        {"dropped together with the name": without(CALL, "status", "name")},
    ),
    "status of a custom call": Row(
        CUSTOM,
        {"kept": dict(CUSTOM), "dropped": without(CUSTOM, "status")},
        {"and another input": {**without(CUSTOM, "status"), "input": "*** Begin "}},
    ),
    "annotations and logprobs": Row(
        {**MESSAGE, "content": [text(annotations=[{"type": "url_citation"}], logprobs=[{"t": 1}])]},
        {
            "dropped": {**MESSAGE, "content": part()},
            "pi drops logprobs": {**MESSAGE, "content": part(annotations=[])},
            "null": {**MESSAGE, "content": part(annotations=None, logprobs=None)},
        },
        {
            "dropped with the part": {**MESSAGE, "content": []},
            "and a space more": {**MESSAGE, "content": part(text="Run it. ")},
            "in two parts": {**MESSAGE, "content": [*part(text="Run "), *part(text="it.")]},
        },
    ),
    "phase": Row(
        {**MESSAGE, "phase": "commentary"},
        {"kept": {**without(MESSAGE, "status"), "phase": "commentary"}},
        {
            "another": {**MESSAGE, "phase": "final_answer"},
            "a client that drops it": dict(MESSAGE),
        },
    ),
    "no phase": Row(
        {**MESSAGE, "phase": None},
        {"Codex drops the null": dict(MESSAGE), "kept": {**MESSAGE, "phase": None}},
        {"a phase out of nowhere": {**MESSAGE, "phase": "commentary"}},
    ),
    "namespace": Row(
        {**CALL, "namespace": "agents"},
        {"kept": {**without(CALL, "status"), "namespace": "agents"}},
        {"dropped": dict(CALL), "another": {**CALL, "namespace": "functions"}},
    ),
    "no namespace": Row(
        {**CALL, "namespace": None},
        {"Codex drops the null": dict(CALL)},
        {"a namespace out of nowhere": {**CALL, "namespace": "agents"}},
    ),
    "encrypted_content": Row(
        REASONING,
        {"kept": dict(REASONING), "without the id": without(REASONING, "id")},
        {
            "dropped": without(REASONING, "encrypted_content"),
            "one byte more": {**REASONING, "encrypted_content": "gAAAAAB="},
            "of another thought": {**without(REASONING, "id"), "encrypted_content": "gAAAAAC"},
            "without what was thought": {**REASONING, "summary": []},
        },
    ),
    "reasoning.content": Row(
        {**REASONING, "content": [], "status": "completed"},
        {
            "Codex, live: absent": dict(REASONING),
            "Codex, resumed: null": {**REASONING, "content": None},
            "model_dump": {**REASONING, "content": None, "status": None},
        },
        {"words": {**REASONING, "content": [{"type": "reasoning_text", "text": "Hm."}]}},
    ),
    "reasoning.content with words": Row(
        {**REASONING, "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"kept": {**REASONING, "content": [{"text": "Hm.", "type": "reasoning_text"}]}},
        {"dropped": dict(REASONING), "null": {**REASONING, "content": None}},
    ),
    "reasoning that is nothing but an id": Row(
        {"id": "rs_1", "type": "reasoning", "summary": []},
        {
            "Codex writes nulls": {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [],
                "content": None,
                "encrypted_content": None,
            }
        },
        {"without the id": {"type": "reasoning", "summary": []}},
    ),
    "created_by, caller, async": Row(
        {**CALL, "created_by": "model", "caller": {"type": "direct"}, "async": False},
        {
            "Codex drops them": dict(CALL),
            "another creator": {**CALL, "created_by": "someone"},
        },
        {
            "another caller": {**CALL, "caller": {"type": "program"}},
            "no longer async": {**CALL, "async": True},
        },
    ),
    "internal_chat_message_metadata_passthrough": Row(
        {**MESSAGE, "internal_chat_message_metadata_passthrough": {"turn_id": "t1"}},
        {
            "Codex drops it for other providers": dict(MESSAGE),
            "Codex gives another": {
                **MESSAGE,
                "internal_chat_message_metadata_passthrough": {"turn_id": "t2"},
            },
        },
        {"and the text with it": without(MESSAGE, "content")},
    ),
    "content as a string, no type": Row(
        MESSAGE,
        {
            "a string": {**MESSAGE, "content": "Run it."},
            "no type": without(MESSAGE, "type"),
            "neither type nor parts nor id": {"role": "assistant", "content": "Run it."},
        },
        {
            "of the user": {"role": "user", "content": "Run it."},
            "another string": {"role": "assistant", "content": "Run it"},
            "a refusal": {**MESSAGE, "content": [{"type": "refusal", "refusal": "Run it."}]},
        },
    ),
    "arguments written anew": Row(
        CALL,
        {
            "pi and opencode": {**CALL, "arguments": '{"command":"echo hi","n":1.0}'},
            "in another order": {**CALL, "arguments": '{"n": 1.0, "command": "echo hi"}'},
        },
        {
            "another number": {**CALL, "arguments": '{"command": "echo hi", "n": 1}'},
            "a key twice": {**CALL, "arguments": '{"n": 2, "command": "echo hi", "n": 1.0}'},
            "an argument more": {
                **CALL,
                "arguments": '{"command": "echo hi", "n": 1.0, "x": null}',
            },
        },
    ),
}


def cases(kind: str) -> list[Any]:
    return [
        pytest.param(row.held, item, id=f"{name}: {label}")
        for name, row in ROWS.items()
        for label, item in getattr(row, kind).items()
    ]


def differences(held: Json, now: Json) -> set[bool]:
    """Whether the items differ, asked from both sides, and as the engine asks in a turn."""
    one, other = items.parse(json.dumps(held)), items.parse(json.dumps(now))
    asked = HeldItem(Raw(json.dumps(held).encode()), received=True)
    asked.expect()
    return {
        items.difference(one, other, model_made=True) is not None,
        items.difference(other, one, model_made=True) is not None,
        asked.difference(Raw(json.dumps(now).encode())) is not None,
    }


@pytest.mark.parametrize(("held", "echo"), cases("same"))
def test_a_spelling_of_a_client_is_the_item(held: Json, echo: Json) -> None:
    assert {False} == differences(held, echo)


@pytest.mark.parametrize(("held", "twin"), cases("other"))
def test_what_says_something_else_is_another_item(held: Json, twin: Json) -> None:
    assert {True} == differences(held, twin)


async def second_turn(held: Json, echo: Json) -> tuple[Mode | None, Reason | None]:
    """A client is answered ``held`` and goes on with ``echo`` in its place."""
    stack = Stack(make_core(replies=[Reply((held,), verbatim=True)]))
    said = [user("hi")]
    await stack.turn({"model": MODEL, "store": False, "stream": True, "input": said})
    said += [echo, output_of("call_1") if "call_id" in held else user("and now?")]
    if echo.get("type") == "custom_tool_call":
        said[-1]["type"] = "custom_tool_call_output"
    await stack.turn({"model": MODEL, "store": False, "stream": True, "input": said})
    return stack.last.mode, stack.last.reason


@pytest.mark.parametrize(("held", "echo"), cases("same"))
async def test_a_turn_that_spells_its_history_so_is_continued(held: Json, echo: Json) -> None:
    assert (Mode.WS_INCREMENTAL, Reason.OK) == await second_turn(held, echo)


@pytest.mark.parametrize(("held", "twin"), cases("other"))
async def test_a_turn_with_another_history_is_not(held: Json, twin: Json) -> None:
    mode, reason = await second_turn(held, twin)
    assert mode is Mode.WS_FULL
    assert reason in (Reason.PREFIX_MISMATCH, Reason.NO_BASELINE)


# --- items of the client's own -----------------------------------------------------------------------

SAID: Json = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
TOOL: Json = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
OWN = {
    "content as a string": (SAID, {"role": "user", "content": "hi"}),
    "no type": (SAID, without(SAID, "type")),
    "a status": (TOOL, {**TOOL, "status": "completed"}),
    "output in parts": (TOOL, {**TOOL, "output": [{"type": "input_text", "text": "ok"}]}),
    "metadata of Codex's own provider": (
        {**SAID, "internal_chat_message_metadata_passthrough": {"turn_id": "t1"}},
        {**SAID, "internal_chat_message_metadata_passthrough": {"turn_id": "t2"}},
    ),
}


@pytest.mark.parametrize(("before", "now"), OWN.values(), ids=OWN.keys())
def test_what_a_client_said_itself_has_one_spelling(before: Json, now: Json) -> None:
    one, other = items.parse(json.dumps(before)), items.parse(json.dumps(now))
    assert items.difference(one, other, model_made=False) is not None


@pytest.mark.parametrize("item", [SAID, TOOL])
def test_its_id_and_metadata_may_come_and_its_keys_may_move(item: Json) -> None:
    moved = {"id": "u1", "metadata": {"k": "v"}, **dict(reversed(item.items()))}
    one, other = items.parse(json.dumps(item)), items.parse(json.dumps(moved))
    assert items.difference(one, other, model_made=False) is None


# --- what real clients gave back ---------------------------------------------------------------------


def given_back(name: str) -> list[tuple[Json, Json]]:
    """Of two requests of which the second replays the first and its answer: item and echo."""
    asked = [step for step in load(name)["steps"] if "answer" in step]
    pairs = []
    for before, after in itertools.pairwise(asked):
        said, now = before["body"]["input"], after["body"]["input"]
        answered = before["answer"].get("items", [])
        if any("previous_response_id" in step["body"] for step in (before, after)):
            continue
        if isinstance(now, list) and len(now) > len(said) + len(answered):
            pairs += zip(answered, now[len(said) :], strict=False)
    return pairs


_FULL_REPLAYS = (
    "agents_sdk_http",
    "agents_sdk_ws_session",
    "codex_http_code_mode_lite",
    "codex_http_exec_resume",
    "codex_http_multiturn",
    "codex_http_zstd_chatgpt_auth",
    "opencode_http",
    "pi_http",
)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each string that the model reads back."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in ("status", "annotations", "internal_chat_message_metadata_passthrough"):
                yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, (*path, place))
    elif isinstance(value, str):
        yield path


def edited(item: Json, path: tuple[Any, ...]) -> Json:
    changed = copy.deepcopy(item)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] += "~"
    return changed


@pytest.mark.parametrize("name", _FULL_REPLAYS)
def test_what_a_real_client_gave_back_is_what_it_was_given_and_nothing_else_is(name: str) -> None:
    pairs = given_back(name)
    assert len(pairs) >= 3
    for held, echo in pairs:
        assert {False} == differences(held, echo)
        for path in leaves(echo):
            assert {True} == differences(held, edited(echo, path)), (held["type"], path)


def test_the_full_replays_are_shapes_that_exist() -> None:
    assert set(_FULL_REPLAYS) <= {path.stem for path in SHAPES.glob("*.json")}
