"""A conversation that goes on through the real engine, and where a fault may be planted in it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from app.analysis.explain import Why, explain
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


async def after(plant: Callable[[dict[str, Any]], None]) -> tuple[TurnRow, Why]:
    stack, body = await before_the_fault()
    plant(body)
    await stack.turn(body)
    row = to_row(stack.last, gateway_version=None)
    return row, explain(row)
