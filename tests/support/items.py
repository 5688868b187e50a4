"""Items as a provider makes them, and two ways to ask whether they are the same."""

from __future__ import annotations

import copy
import json
from typing import Any

from engine import items

Item = dict[str, Any]

MESSAGE: Item = {
    "type": "message",
    "id": "msg_1",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "x", "annotations": [], "logprobs": []}],
}
REASONING: Item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"}
CALL: Item = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "sh",
    "arguments": '{"a": 1}',
    "status": "completed",
}
USER: Item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
DEEP = "[" * 5000 + "]" * 5000


def between(held: Any, now: Any, *, model_made: bool = True) -> items.Path | None:
    """The difference, which must not depend on which side is held."""
    one, other = items.parse(json.dumps(held)), items.parse(json.dumps(now))
    there = items.difference(one, other, model_made=model_made)
    back = items.difference(other, one, model_made=model_made)
    assert (there is None) == (back is None)
    return there


def same(held: Any, now: Any, *, model_made: bool = True) -> bool:
    return between(held, now, model_made=model_made) is None


def without(item: Item, *names: str) -> Item:
    return {key: value for key, value in item.items() if key not in names}


def arguments(text: Any) -> Item:
    return {**CALL, "arguments": text}


def changed(item: Item, path: tuple[str | int, ...]) -> Item:
    """The item with one value in it replaced by another of the same type."""
    twin = copy.deepcopy(item)
    *way, last = path
    inner: Any = twin
    for step in way:
        inner = inner[step]
    value = inner[last]
    if isinstance(value, bool):
        inner[last] = not value
    else:
        inner[last] = f"{value}~" if isinstance(value, str) else 77
    return twin
