"""Ten faults that cost a prefix in the field, planted one by one into a conversation that goes on.

Each runs through the real engine against the built-in provider; its row names the place exactly,
and the sentence, the cause and the remedy are those of the fault.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.analysis.explain import Why, WhyKind, explain
from app.demo.provider.replies import function_call, message, reasoning
from app.ledger.facts import to_row
from app.ledger.rows import TurnRow
from engine.model import Policy
from tests.support.loopback import Stack
from tests.support.provider import MODEL, make_core, user

ROWS = ["alpha", "bravo", "charlie"]
OUTPUT = json.dumps({"_meta": {"tokens_left": 41_200}, "rows": ROWS})
LONG = "\n".join(f"line {n}: nothing of note was found here" for n in range(200))
ANSWER = "There are three rows. "
INSTRUCTIONS = "You are careful.\nYou answer briefly.\nNow: 2026-11-30T08:39:22Z\nBe kind."
TOOLS = [
    {"type": "function", "name": name, "description": f"To {name}.", "parameters": {}}
    for name in ("apply_patch", "exec_command", "look_up")
]
FIRST = {
    "model": MODEL,
    "store": False,
    "stream": True,
    "instructions": INSTRUCTIONS,
    "reasoning": {"effort": "low"},
    "tools": TOOLS,
    "input": [user("Count the rows, please.\nToday is a good day.")],
}
POLICY = Policy(visible_keys=("_meta", "paths"))


async def before_the_fault() -> tuple[Stack, dict[str, Any]]:
    """Four answered items after the first message, and the request that would go on from them."""
    calls = [function_call("exec_command", {"paths": ["src", "docs"], "depth": 2}, "call_1"),
             function_call("look_up", {"word": "row"}, "call_2")]  # fmt: skip
    replies = [[reasoning("gAAAA", ["Counting."]), *calls], [message(ANSWER)], "Yes."]
    stack = Stack(make_core(replies=replies), POLICY)
    events = await stack.turn(FIRST)
    outputs = [
        {"type": "function_call_output", "call_id": "call_1", "output": OUTPUT},
        {"type": "function_call_output", "call_id": "call_2", "output": LONG},
    ]
    second = {**FIRST, "input": [*FIRST["input"], *events[-1]["response"]["output"], *outputs]}
    events = await stack.turn(second)
    history = [*second["input"], *events[-1]["response"]["output"], user("Are you sure?")]
    return stack, copy.deepcopy({**second, "input": history})


# What stands where in the history of the third request.
USER, REASONING, CALL, OUT, LONG_OUT, MESSAGE = 0, 1, 2, 4, 5, 6


@dataclass
class Fault:
    plant: Callable[[dict[str, Any]], None]
    reason: str
    place: dict[str, Any]
    """What the evidence says, among other things."""
    sentence: str
    cause: str
    remedy: str
    details: list[dict[str, Any]] = field(default_factory=list)


def later(body):
    body["instructions"] = INSTRUCTIONS.replace("08:39:22", "08:41:07")


def shuffled(body):
    body["tools"] = [TOOLS[0], TOOLS[2], TOOLS[1]]


def moved(body):
    body["input"][OUT]["output"] = json.dumps({"rows": ROWS})
    body["input"][-1]["content"] = "Are you sure? {_meta}"


def reordered(body):
    arguments = {"depth": 2, "paths": ["docs", "src"]}
    body["input"][CALL]["arguments"] = json.dumps(arguments)


def trimmed(body):
    body["input"][MESSAGE]["content"][0]["text"] = ANSWER.strip()


def dropped(body):
    del body["input"][REASONING]


def summarized(body):
    body["input"][LONG_OUT]["output"] = "200 lines, nothing of note."


def other_model(body):
    body["model"] = "gpt-5.5-mini"


def more_effort(body):
    body["reasoning"] = {"effort": "high"}


def rewritten(body):
    body["input"][USER] = user("Count the rows, please.\nTomorrow may be better.")


FAULTS = {
    "a timestamp in the instructions": Fault(
        later,
        "non_input_fields_changed",
        {"changed_fields": ["instructions"]},
        "instructions changed from line 3, character 57 (only a date or time differs).",
        "time, a counter or an id",
        "newest message",
        [{"field": "instructions", "change": "changed", "line": 3, "nature": "time",
          "offset": INSTRUCTIONS.index("39:22"), "length_now": len(INSTRUCTIONS)}],
    ),
    "a tool list in random order": Fault(
        shuffled,
        "non_input_fields_changed",
        {"changed_fields": ["tools"]},
        "tools came in another order from number 2 on.",
        "a map or a set",
        "Sort the tools",
        [{"field": "tools", "change": "reordered", "at": 1, "moved": 2}],
    ),
    "a moved _meta": Fault(
        moved,
        "prefix_mismatch",
        {"index": OUT, "class": "edited", "path": "/output/_meta", "nature": "removed",
         "kind_before": "function_call_output", "length_before": 7, "length_now": 8},
        "item 5 (function_call_output) has lost what it had at /output/_meta.",
        "Metadata moves to the newest result",
        "Freeze the key",
    ),
    "a re-ordered argument": Fault(
        reordered,
        "prefix_mismatch",
        {"index": CALL, "class": "edited", "path": "/arguments/paths/0", "nature": "reordered"},
        "item 3 (function_call) has its list in another order at /arguments/paths/0",
        "came back in another order",
        "as the string that was answered",
    ),
    "a trimmed space": Fault(
        trimmed,
        "prefix_mismatch",
        {"index": MESSAGE, "class": "edited", "path": "/content/0/text", "nature": "whitespace",
         "offset": 21, "value_length_before": 22, "value_length_now": 21},
        "item 7 (message:assistant) differs in white space only at /content/0/text, character 22",
        "trims or reflows",
        "Store texts as they came",
    ),
    "a dropped reasoning item": Fault(
        dropped,
        "prefix_mismatch",
        {"index": REASONING, "class": "removed", "kind_before": "reasoning", "items_gone": 1,
         "items_new": 0, "length_before": 7, "length_now": 7},
        "item 2 (reasoning) was removed from the history.",
        "leaves reasoning items out",
        "encrypted_content",
    ),
    "a summarized output": Fault(
        summarized,
        "prefix_mismatch",
        {"index": LONG_OUT, "class": "edited", "path": "/output", "nature": "shortened",
         "offset": 0, "line": 1, "value_length_before": len(LONG), "value_length_now": 27},
        "item 6 (function_call_output) was shortened at /output, line 1, character 1",
        "cut or summarized",
        "x-warmline-epoch-reset: summarize",
    ),
    "a changed model": Fault(
        other_model,
        "non_input_fields_changed",
        {"changed_fields": ["model"]},
        f"model changed from {MODEL} to gpt-5.5-mini.",
        "another model",
        "None is needed",
        [{"field": "model", "change": "changed", "before": MODEL, "now": "gpt-5.5-mini"}],
    ),
    "a changed effort": Fault(
        more_effort,
        "non_input_fields_changed",
        {"changed_fields": ["reasoning"]},
        "reasoning/effort changed from low to high.",
        "chosen per turn",
        "Keep one effort",
        [{"field": "reasoning", "change": "changed", "path": "/effort", "before": "low",
          "now": "high"}],
    ),
    "a rewritten first message": Fault(
        rewritten,
        "prefix_mismatch",
        {"index": USER, "class": "edited", "path": "/content/0/text", "line": 2, "offset": 26,
         "nature": "rewritten", "kind_before": "message:user"},
        "item 1 (message:user) was edited at /content/0/text, line 2, character 27",
        "The first message is built anew",
        "Build it once",
    ),
}  # fmt: skip


async def after(plant: Callable[[dict[str, Any]], None]) -> tuple[TurnRow, Why]:
    stack, body = await before_the_fault()
    plant(body)
    await stack.turn(body)
    row = to_row(stack.last, gateway_version=None)
    return row, explain(row)


async def test_without_a_fault_the_conversation_goes_on():
    row, why = await after(lambda body: None)
    assert ("ws_incremental", "ok", None) == (row.mode, row.reason, row.evidence)
    assert WhyKind.CONTINUED is why.kind


async def test_arguments_that_are_the_same_json_are_no_fault():
    def respelled(body):
        body["input"][CALL]["arguments"] = '{ "depth": 2,\n  "paths": ["src", "docs"] }'

    row, _ = await after(respelled)
    assert ("ws_incremental", "ok") == (row.mode, row.reason)


@pytest.mark.parametrize("name", FAULTS)
async def test_a_planted_fault_is_named_by_place_and_cause(name):
    fault = FAULTS[name]
    row, why = await after(fault.plant)
    told = row.evidence_object
    assert ("ws_full", fault.reason, True) == (row.mode, row.reason, row.eligible)
    assert fault.place == {key: told.get(key) for key in fault.place}
    assert fault.details == [
        {key: detail.get(key) for key in expected}
        for expected, detail in zip(fault.details, told.get("field_details", []), strict=True)
    ]
    assert why.sentence.startswith(f"Sent in full: {fault.sentence}")
    assert fault.cause in why.cause
    assert fault.remedy in why.remedy
    assert WhyKind.BREAK is why.kind


# The same faults where clients put them elsewhere, and several at once.


LISTED = {"type": "additional_tools", "role": "developer", "tools": TOOLS}
SYSTEM = {"role": "developer", "content": [{"type": "input_text", "text": INSTRUCTIONS}]}


async def after_leading_items(plant: Callable[[list[Any]], list[Any]]) -> tuple[TurnRow, Why]:
    """Tools and instructions stand in the history, as with clients of small requests."""
    stack = Stack(make_core(replies=["One.", "Two.", "Three."]), POLICY)
    body = {**FIRST, "input": [LISTED, SYSTEM, user("First question.")]}
    for name in ("tools", "instructions"):
        del body[name]
    for question in ("Second question.", "Third question."):
        events = await stack.turn(body)
        body["input"] = [*body["input"], *events[-1]["response"]["output"], user(question)]
    body["input"] = plant(copy.deepcopy(body["input"]))
    await stack.turn(body)
    row = to_row(stack.last, gateway_version=None)
    return row, explain(row)


def later_in_the_history(items):
    items[1]["content"][0]["text"] = INSTRUCTIONS.replace("08:39:22", "08:41:07")
    return items


def shuffled_in_the_history(items):
    items[0]["tools"] = [TOOLS[0], TOOLS[2], TOOLS[1]]
    return items


@pytest.mark.parametrize(
    ("plant", "sentence", "cause"),
    [
        (lambda items: items, None, None),
        (later_in_the_history,
         "item 2 (message:developer) has another date or time at /content/0/text, line 3, character 57.",
         "The instructions hold a time"),
        (shuffled_in_the_history,
         "item 1 (additional_tools) has its list in another order at /tools/1", "comes from a map or a set"),
        (lambda items: [*items[:2], *items[4:]],
         "the beginning of the history was dropped (2 items).", "drops its oldest items"),
        (lambda items: [*items[:2], user("In short: all is well."), *items[5:]],
         "from item 3 (message:user) on, 3 items were replaced by 1.", "condensed into a summary"),
        (lambda items: [*items[:4], user("Second question, and more."), *items[5:-1]],
         "item 5 (message:user) was lengthened at /content/0/text, character 16", "An old message was edited"),
        (lambda items: [*items[:5], user("Never mind.")],
         "item 6 (message:assistant) was removed from the history.", "leaves out a message of the model"),
        (lambda items: items[:5],
         "the history is 1 item shorter than what the provider holds.", "went back to an earlier point"),
        (lambda items: [*items[:3], SYSTEM, user("Other."), *items[3:]],
         "2 new items (message:developer) were inserted before item 4 (message:assistant) of the history.",
         "puts a note"),
    ],
)  # fmt: skip
async def test_leading_items_and_whole_histories_are_told_as_well(plant, sentence, cause):
    row, why = await after_leading_items(plant)
    if sentence is None:
        assert ("ws_incremental", "ok") == (row.mode, row.reason)
        return
    assert ("ws_full", "prefix_mismatch") == (row.mode, row.reason)
    assert why.sentence.startswith(f"Sent in full: {sentence}")
    assert cause in why.cause


async def test_definitions_in_the_history_are_told_by_the_name_of_the_tool():
    row, _ = await after_leading_items(shuffled_in_the_history)
    (detail,) = row.evidence_object["field_details"]
    assert {"field": "tools", "item": 0, "change": "reordered", "at": 1, "moved": 2} == detail


async def test_two_faults_at_once_are_told_at_the_first_and_as_more():
    def both(body):
        trimmed(body)
        dropped(body)

    row, why = await after(both)
    assert (REASONING, "removed", True) == (
        row.diverged_at, row.diverged_class, row.evidence_object["further"],
    )  # fmt: skip
    assert why.sentence == (
        "Sent in full: item 2 (reasoning) was removed from the history; more differs after it."
    )

    def field_too(body):
        dropped(body)
        more_effort(body)

    row, why = await after(field_too)
    assert ("non_input_fields_changed", REASONING) == (row.reason, row.diverged_at)
    assert why.sentence == (
        "Sent in full: reasoning/effort changed from low to high; the history changed too."
    )


async def test_each_fault_has_a_fingerprint_of_its_own_that_a_second_session_shares():
    first = {name: (await after(fault.plant))[0].fingerprint for name, fault in FAULTS.items()}
    second = {name: (await after(fault.plant))[0].fingerprint for name, fault in FAULTS.items()}
    assert first == second
    assert None not in first.values()
    assert len(FAULTS) == len(set(first.values()))


@pytest.mark.parametrize("name", FAULTS)
async def test_no_word_of_the_conversation_is_in_the_row(name):
    row, _ = await after(FAULTS[name].plant)
    said = json.dumps(row.as_dict())
    words = [*ROWS, "tokens_left", "rows", "41200", "depth", "careful", "of note", "Counting", "gAAAA",
             "Count the", "Tomorrow", "08:41:07", "08:39:22", "three", "sure", "To exec", "docs"]  # fmt: skip
    assert [] == [word for word in words if word in said]
