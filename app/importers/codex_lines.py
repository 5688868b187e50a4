"""The lines of a rollout that tell of usage, found without decoding the others.

Nine tenths of a rollout are texts. What a line is stands near its beginning, so that a line of text
costs a look at its head and one search for a second record in it: a process that was killed leaves
half a line, and the next one writes on in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from app.importers.importer import Skipped
from app.importers.json_lines import text
from app.importers.lines import BOM, Line

_HEAD = re.compile(
    rb'\{"timestamp": ?"([^"\\]{1,40})", ?(?:"ordinal": ?\d+, ?)?"type": ?"([a-z_]+)", ?'
    rb'"payload": ?\{ ?(?:"type": ?"([a-z_]+)")?'
)
_SECOND = b'{"timestamp":'
_MOST_IN_A_LINE = 100
"""Records that are looked for in a line that is torn: each costs as much as the rest of it."""
TYPES = frozenset(
    {
        "session_meta",
        "turn_context",
        "response_item",
        "event_msg",
        "compacted",
        "world_state",
        "token_usage_record",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "retained_context",
        "security_risk_score",
        "realtime_item",
    }
)
_DECODED = frozenset({"session_meta", "turn_context", "token_usage_record"})
_EVENTS = frozenset(
    {
        "task_started",
        "turn_started",
        "token_count",
        "task_complete",
        "turn_complete",
        "turn_aborted",
        "thread_settings_applied",
        "error",
    }
)
"""Events whose payload is read."""
_OUTPUTS = frozenset(
    {
        "reasoning",
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
        "image_generation_call",
    }
)
_SIMPLE_EVENTS = {
    "context_compacted": "context_compacted",
    "thread_rolled_back": "thread_rolled_back",
    "agent_message": "output",
    "agent_reasoning": "output",
    "user_message": "input",
}
"""Events of which nothing but their being there is wanted."""
_ROLE = re.compile(rb'"role": ?"([a-z]+)"')
_LOOKED_AT = 600
"""Bytes of a message in which its role stands."""
UNKNOWN_TYPE = "is of a type that this version does not know"
TORN = "is torn: another record begins in it"


class Told(NamedTuple):
    """A line that tells something."""

    number: int
    time: str
    """As it is written."""
    type: str
    event: str | None
    """The type of the payload; ``input`` and ``output`` for items and events of the conversation
    that go to the model or come from it."""
    payload: dict[str, Any]
    """Empty where nothing of it is needed."""


class _Line(msgspec.Struct):
    timestamp: Any = None
    type: Any = None
    payload: Any = None
    record_type: Any = None
    instructions: Any = msgspec.UNSET


class _Payload(msgspec.Struct):
    payload: dict[str, Any]


class _CompactedPayload(msgspec.Struct):
    compaction_response_id: Any = None


class _Compacted(msgspec.Struct):
    payload: _CompactedPayload


_line = msgspec.json.Decoder(_Line).decode
_payload = msgspec.json.Decoder(_Payload).decode
_compacted = msgspec.json.Decoder(_Compacted).decode
_WRONG = (msgspec.DecodeError, RecursionError)


def told(lines: Iterable[Line]) -> Iterator[Told | Skipped]:
    """What tells something, in the order of the file; ``Skipped`` for what cannot be read.

    A line of text that is torn is not noticed: nothing of it was wanted.
    """
    for line in lines:
        if line.too_long:
            yield Skipped(line.number, "is too long")
            continue
        data = line.data
        if not data.startswith(b"{"):
            data = data.removeprefix(BOM).strip(b"\x00\r\t ")  # NULs are left by lost power
            if not data:
                if line.data.strip():
                    yield Skipped(line.number, "holds nothing but NUL bytes")
                continue
        for _ in range(_MOST_IN_A_LINE):
            second = _second(data)
            if second is None:
                break
            yield Skipped(line.number, TORN)
            data = data[second:]
        found = _read(line, data)
        if found is not None:
            yield found


def _second(data: bytes) -> int | None:
    """Where another record begins, in a line that is not one whole record."""
    place = data.find(_SECOND, 1)
    while place > 0:
        if _HEAD.match(data, place):
            try:
                _line(data)
            except _WRONG:
                return place
            return None
        place = data.find(_SECOND, place + 1)
    return None


def _read(line: Line, data: bytes) -> Told | Skipped | None:
    head = _HEAD.match(data)
    try:
        if head is None:
            return _by_decoding(line.number, data)
        event = head[3].decode() if head[3] else None
        found = _Head(line.number, head[1].decode("utf-8", "replace"), head[2].decode(), event)
        return _by_head(found, data, head.end())
    except _WRONG:
        ended = "is not one JSON object" if line.whole else "ends within its record"
        return Skipped(line.number, ended)


class _Head(NamedTuple):
    number: int
    time: str
    type: str
    event: str | None


def _by_head(head: _Head, data: bytes, end: int) -> Told | Skipped | None:
    """``end``: where the head ends in the line."""
    kind, event = head.type, head.event
    if kind == "response_item":
        event = _way(event, data[end : end + _LOOKED_AT])
        return None if event is None else Told(head.number, head.time, kind, event, {})
    if kind == "event_msg":
        if event in _EVENTS:
            return Told(*head, _payload(data).payload)
        event = _SIMPLE_EVENTS.get(event or "")
        return None if event is None else Told(head.number, head.time, kind, event, {})
    if kind in _DECODED:
        return Told(head.number, head.time, kind, None, _payload(data).payload)
    if kind == "compacted":
        response = _compacted(data).payload.compaction_response_id
        return Told(head.number, head.time, kind, None, {"response": response})
    return None if kind in TYPES else Skipped(head.number, UNKNOWN_TYPE)


def _way(event: str | None, rest: bytes) -> str | None:
    if event == "message":
        role = _ROLE.search(rest)
        if role is None:
            return None
        return "output" if role[1] == b"assistant" else "input"
    if event in _OUTPUTS:
        return "output"
    return "input" if event is not None and event.endswith("_output") else None


def _by_decoding(number: int, data: bytes) -> Told | Skipped | None:
    """For a line that is written in another way than Codex writes it, or that is none of its."""
    found = _line(data)
    if isinstance(found.payload, dict) and isinstance(found.type, str):
        time = found.timestamp if isinstance(found.timestamp, str) else ""
        event = found.payload.get("type")
        event = event if isinstance(event, str) else None
        whole = b'{"payload":' + msgspec.json.encode(found.payload) + b"}"
        return _by_head(_Head(number, time, found.type, event), whole, 0)
    bare = found.record_type is not None or found.instructions is not msgspec.UNSET
    if bare or (found.payload is None and text(found.type) in _BARE):
        return Told(number, "", "bare", None, {})
    return Skipped(number, UNKNOWN_TYPE)


_BARE = _OUTPUTS | {"message", "function_call_output", "custom_tool_call_output"}
"""Items of the oldest rollouts, which stand in their lines without anything around them."""


def recognizes(head: bytes) -> bool:
    """Whether one of the first lines is a rollout's, of whatever age."""
    for part in head.removeprefix(BOM).split(b"\n")[:10]:
        data = part.strip(b"\x00\r\t ")
        found = _HEAD.match(data)
        if found:
            if found[2].decode() in TYPES:
                return True
            continue
        try:
            first = _object(data)
        except _WRONG:
            continue
        if first.keys() >= {"type", "payload"} and text(first["type"]) in TYPES:
            return True
        if first.keys() >= {"id", "timestamp", "instructions"}:
            return True
    return False


_object = msgspec.json.Decoder(dict[str, Any]).decode
