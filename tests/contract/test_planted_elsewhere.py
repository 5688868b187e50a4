"""Faults that cost a prefix where other clients have them: in the history itself, several at once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from app.analysis.explain import Why, explain
from app.demo.provider.replies import function_call
from app.ledger.facts import to_row
from app.ledger.rows import TurnRow
from tests.support.loopback import Stack
from tests.support.planted import (
    ANSWER,
    FIRST,
    INSTRUCTIONS,
    LONG_OUT,
    MESSAGE,
    OUT,
    POLICY,
    REASONING,
    TOOLS,
    after,
    before_the_fault,
)
from tests.support.provider import make_core, user


async def test_metadata_in_words_that_moves_to_the_newest_output_is_told_by_place():
    stack = Stack(make_core(replies=[function_call("f", {}, "call_1"), "Done."]))
    body = {key: value for key, value in FIRST.items() if key != "tools"}
    events = await stack.turn(body)
    called = [*body["input"], *events[-1]["response"]["output"]]
    output = {"type": "function_call_output", "call_id": "call_1", "output": "r1\n[41,200 left]"}
    events = await stack.turn({**body, "input": [*called, output]})
    history = [*called, {**output, "output": "r1"}, *events[-1]["response"]["output"], user("On.")]
    await stack.turn({**body, "input": history})
    row = to_row(stack.last, gateway_version=None)
    assert ("ws_full", "/output", 2) == (row.mode, row.diverged_path, row.evidence_object["offset"])
    assert "a note that moves to the newest one" in explain(row).cause


async def test_parallel_outputs_in_another_order_go_in_full_once():
    stack, body = await before_the_fault()
    body["input"][OUT : LONG_OUT + 1] = body["input"][OUT : LONG_OUT + 1][::-1]
    events = await stack.turn(body)
    row = to_row(stack.last, gateway_version=None)
    assert ("prefix_mismatch", "reordered", OUT) == (
        row.reason, row.diverged_class, row.diverged_at,
    )  # fmt: skip
    assert "Outputs of parallel tool calls" in explain(row).cause
    body["input"] += [*events[-1]["response"]["output"], user("And now?")]
    await stack.turn(body)
    assert "ws_incremental" == stack.last.mode


async def test_keys_of_a_schema_in_another_order_are_no_fault():
    def permuted(body):
        body["tools"] = [dict(reversed(tool.items())) for tool in TOOLS]

    row, _ = await after(permuted)
    assert ("ws_incremental", "ok") == (row.mode, row.reason)


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
        body["input"][MESSAGE]["content"][0]["text"] = ANSWER.strip()
        del body["input"][REASONING]

    row, why = await after(both)
    assert (REASONING, "removed", True) == (
        row.diverged_at, row.diverged_class, row.evidence_object["further"],
    )  # fmt: skip
    assert why.sentence == (
        "Sent in full: item 2 (reasoning) was removed from the history; more differs after it."
    )

    def field_too(body):
        del body["input"][REASONING]
        body["reasoning"] = {"effort": "high"}

    row, why = await after(field_too)
    assert ("non_input_fields_changed", REASONING) == (row.reason, row.diverged_at)
    assert why.sentence == (
        "Sent in full: reasoning/effort changed from low to high; the history changed too."
    )
