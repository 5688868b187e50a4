"""Ten faults that cost a prefix in the field, planted one by one into a conversation that goes on.

Each runs through the real engine against the built-in provider; its row names the place exactly,
and the sentence, the cause and the remedy are those of the fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.analysis.explain import WhyKind
from tests.support.planted import (
    ANSWER,
    CALL,
    INSTRUCTIONS,
    LONG,
    LONG_OUT,
    MESSAGE,
    OUT,
    REASONING,
    ROWS,
    TOOLS,
    USER,
    after,
)
from tests.support.provider import MODEL, user


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
        "Keep it out of what the model reads",
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
