"""Tool outputs that the model has seen, kept as it saw them for the life of an epoch (DESIGN 4.5).

An agent's converter may spell an old tool result anew: metadata moves to the newest one, a pending
mark becomes a done one. The provider still holds what was sent. Within an epoch the old output is
therefore sent as the model saw it; outputs that the model has not seen yet stay as they are.

An output belongs to its call: the call's id, and what was called. Some models count their ids, so
that another branch of a history has the same id for another call; its output is another.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

Item: TypeAlias = Mapping[str, Any]
_Call: TypeAlias = tuple[str, str]
_Key: TypeAlias = tuple[str, str, int, bytes]

LIMIT = 4096
"""Outputs that are kept; beyond it the least recently sent one is forgotten."""


class Applied(NamedTuple):
    """Items as they are to be sent, and what is to be kept of them once they were answered."""

    items: list[Item]
    replaced: int
    """Items in which an output was put back."""
    outputs: Mapping[_Key, str | bytes]
    placeholders: Mapping[_Call, int]
    """Which calls wait for their output, and where the placeholder stands."""


class Frozen:
    """Which output each tool call had when the model saw it.

    ``placeholder`` is the text with which the converter fills in for the output of a call that has
    none yet. It is never frozen, so that the real output can take its place. It is sent behind all
    else, since in between it would part the calls of one answer from each other; once the model has
    seen it there it stays in that place for as long as the call waits.
    """

    def __init__(self, placeholder: str | None = None, *, limit: int = LIMIT) -> None:
        self._placeholder = placeholder
        self._limit = limit
        self._seen: OrderedDict[_Key, str | bytes] = OrderedDict()
        self._waiting: Mapping[_Call, int] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def apply(self, items: Iterable[Item]) -> Applied:
        """The items as they are to be sent. Items that are given are never changed."""
        arranged: list[Item] = []
        waiting: dict[_Call, Item] = {}
        outputs: dict[_Key, str | bytes] = {}
        replaced = 0
        count: Counter[_Call] = Counter()
        called: dict[object, bytes] = {}
        for item in items:
            if not is_output(item):
                if is_call(item):
                    called[item["call_id"]] = _called(item)
                arranged.append(item)
                continue
            # An output is told by its call; where a call has several, by their order too.
            call = (item["type"], item["call_id"])
            key = (*call, count[call], called.get(item["call_id"], b""))
            seen = self._seen.get(key)
            if seen is None and self.is_placeholder(item):
                waiting.setdefault(call, item)
                continue
            count[call] += 1
            spelling = _spelling(item["output"])
            outputs[key] = spelling if seen is None else seen
            if seen is None or seen == spelling:
                arranged.append(item)
            else:
                output = seen if isinstance(seen, str) else json.loads(seen)
                arranged.append({**item, "output": output})
                replaced += 1
        return Applied(arranged, replaced, outputs, self._place(waiting, arranged))

    def _place(self, waiting: Mapping[_Call, Item], arranged: list[Item]) -> dict[_Call, int]:
        """Put placeholders where the model saw them, new ones at the end."""
        places: dict[_Call, int] = {}
        known = sorted((at, call) for call, at in self._waiting.items() if call in waiting)
        for at, call in known:
            called = _place_of_call(arranged, call[1])
            if called is not None and called >= at:
                continue  # another branch of the history: its call would come behind its output
            places[call] = min(at, len(arranged))
            arranged.insert(places[call], waiting[call])
        for call, item in waiting.items():
            if call not in places:
                places[call] = len(arranged)
                arranged.append(item)
        return places

    def commit(self, applied: Applied) -> None:
        """The model has seen these items: the turn that sent them was answered."""
        self._waiting = applied.placeholders
        for key, spelling in applied.outputs.items():
            self._seen[key] = spelling
            self._seen.move_to_end(key)
        while len(self._seen) > self._limit:
            self._seen.popitem(last=False)

    def clear(self) -> None:
        """A new epoch: the next request is built from the agent's own history alone."""
        self._seen.clear()
        self._waiting = {}

    def is_placeholder(self, item: Item) -> bool:
        """Whether the item only fills in for an output that is still to come."""
        return (
            self._placeholder is not None
            and is_output(item)
            and item["output"] == self._placeholder
        )


def is_output(item: Item) -> bool:
    """Whether the item is what a tool call gave back, and names its call."""
    type_ = item.get("type")
    return (
        isinstance(type_, str)
        and type_.endswith("_call_output")
        and isinstance(item.get("call_id"), str)
        and "output" in item
    )


def is_call(item: Item) -> bool:
    """Whether the item is a call that waits for an output of the agent."""
    type_ = item.get("type")
    return (
        isinstance(type_, str) and type_.endswith("_call") and isinstance(item.get("call_id"), str)
    )


def _place_of_call(items: list[Item], call_id: str) -> int | None:
    """Where the last call with this id stands, None if there is none."""
    places = range(len(items) - 1, -1, -1)
    return next((i for i in places if is_call(items[i]) and items[i]["call_id"] == call_id), None)


_WHAT_IS_CALLED = ("namespace", "name", "arguments", "input", "action", "operation")


def _called(item: Item) -> bytes:
    """A digest of what is called, and with what."""
    text = json.dumps([item.get(key) for key in _WHAT_IS_CALLED], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _spelling(output: object) -> str | bytes:
    """The exact spelling of an output: 1, 1.0 and true are three, unlike in Python."""
    if isinstance(output, str):
        return output
    return json.dumps(output, separators=(",", ":")).encode()
