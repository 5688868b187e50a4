"""What a line of a log tells of the Responses API, whoever wrote the log.

A line is a Responses object, an event of one, or a request that opens one, by itself or wrapped: in
an object of the logger's, which may tell a time, or in a text in it, as frames of a WebSocket are
logged. Only what is named here is decoded; what was said is passed over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from app.importers.foreign import milliseconds

CREATE = "response.create"
"""The frame that a client sends: a request over a WebSocket."""
WHOLE = "response"
"""A Responses object that is no part of an event."""
_DEPTH = 4
_MISSING = Raw(b"")
_PASSING = re.compile(rb'\{"type": ?"(response\.[a-z_.]+\.delta)"')
"""An event that stands for itself, without a time, by its first bytes."""
_WRAPPING = (
    "response", "data", "message", "event", "payload", "frame", "body", "content",
)  # fmt: skip
_TIMES = ("timestamp", "ts", "time", "at", "t", "received_at")


class _Line(msgspec.Struct):
    type: Any = None
    object: Any = None
    request: Raw = _MISSING
    response: Raw = _MISSING
    data: Raw = _MISSING
    message: Raw = _MISSING
    event: Raw = _MISSING
    payload: Raw = _MISSING
    frame: Raw = _MISSING
    body: Raw = _MISSING
    content: Raw = _MISSING
    timestamp: Any = None
    ts: Any = None
    time: Any = None
    at: Any = None
    t: Any = None
    received_at: Any = None


class Response(msgspec.Struct):
    id: Any = None
    created_at: Any = None
    completed_at: Any = None
    status: Any = None
    model: Any = None
    usage: Any = None
    error: Any = None
    previous_response_id: Any = None
    conversation: Any = None
    prompt_cache_key: Any = None
    prompt_cache_diagnostics: Any = None
    reasoning: Any = None
    service_tier: Any = None
    store: Any = None


class _Body(msgspec.Struct):
    """The body of a request, or a request that has one."""

    input: Raw = _MISSING
    body: Raw = _MISSING
    generate: Any = None
    previous_response_id: Any = None
    conversation: Any = None
    prompt_cache_key: Any = None
    reasoning: Any = None


class _Event(msgspec.Struct):
    """What an event tells beside its type and its response."""

    delta: Raw = _MISSING
    item: Raw = _MISSING
    code: Any = None
    error: Any = None


class _Item(msgspec.Struct):
    type: Any = None


_line = msgspec.json.Decoder(_Line).decode
_list = msgspec.json.Decoder(list[Raw]).decode
_text = msgspec.json.Decoder(str).decode
_response = msgspec.json.Decoder(Response).decode
_body = msgspec.json.Decoder(_Body).decode
_event = msgspec.json.Decoder(_Event).decode
_item = msgspec.json.Decoder(_Item).decode


@dataclass(frozen=True, slots=True)
class Request:
    """What a request says of itself, without what was said."""

    items: int | None
    """How many items its input has."""
    generate: Any
    previous_response_id: Any
    conversation: Any
    prompt_cache_key: Any
    reasoning: Any


@dataclass(slots=True)
class Told:
    type: str
    """The event's, ``WHOLE``, or "" for one of something else."""
    data: bytes
    """The event itself."""
    response: Response | None = None
    request: Request | None = None
    at: int | None = None
    """When it was logged, in epoch milliseconds."""


def look(data: bytes) -> Told | None:
    """What a line tells; None where it is of something else entirely.

    Raises ``msgspec.DecodeError`` where it is no JSON object.
    """
    passing = _PASSING.match(data)  # most events are, and tell nothing
    return Told(passing[1].decode(), data) if passing else _look(data, _DEPTH)


def _look(data: bytes, depth: int) -> Told | None:
    line = _line(data)
    found = _itself(line, data) or (_wrapped(line, depth - 1) if depth > 1 else None)
    if found is None:
        return Told("", data) if isinstance(line.type, str) else None
    if found.at is None:
        found.at = next(
            (at for name in _TIMES if (at := moment(getattr(line, name))) is not None), None
        )
    if found.request is None:
        found.request = _as_request(_object_in(line.request))
    return found


def _itself(line: _Line, data: bytes) -> Told | None:
    if line.object == "response":
        return Told(WHOLE, data, _response(data))
    if line.type == CREATE:
        return Told(CREATE, data, request=_as_request(_object_in(line.response) or data))
    if isinstance(line.type, str) and (line.type.startswith("response.") or line.type == "error"):
        inside = _object_in(line.response)
        return Told(line.type, data, None if inside is None else _response(inside))
    return None


def _wrapped(line: _Line, depth: int) -> Told | None:
    for name in _WRAPPING:
        inside = _object_in(getattr(line, name))
        if inside is not None:
            try:
                found = _look(inside, depth)
            except (msgspec.MsgspecError, RecursionError):
                continue
            if found is not None and found.type:
                return found
    return None


def _object_in(raw: Raw) -> bytes | None:
    """A JSON object that stands there, or that a text there holds."""
    data = bytes(raw)
    if data.startswith(b'"{'):
        try:
            data = _text(data).encode()
        except (msgspec.MsgspecError, UnicodeError):
            return None
    return data if data.startswith(b"{") else None


def _as_request(data: bytes | None) -> Request | None:
    """The body of a request, also where its headers are told beside."""
    if data is None:
        return None
    try:
        found = _body(data)
        inside = _object_in(found.body)
        found = found if inside is None else _body(inside)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return Request(
        items=_length(found.input),
        generate=found.generate,
        previous_response_id=found.previous_response_id,
        conversation=found.conversation,
        prompt_cache_key=found.prompt_cache_key,
        reasoning=found.reasoning,
    )


def _length(raw: Raw) -> int | None:
    try:
        return len(_list(raw))
    except (msgspec.MsgspecError, RecursionError):
        return None


def moment(value: Any) -> int | None:
    """ISO 8601 with an offset, or epoch seconds or milliseconds, as epoch milliseconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if 10**9 <= value < 10**11:
            return round(value * 1000)
        return round(value) if 10**12 <= value < 10**14 else None
    return milliseconds(value) if isinstance(value, str) else None


def has_output(told: Told) -> bool:
    """Whether an event carries some of the answer: a delta that is not empty, or a whole item that
    is no reasoning."""
    if told.type.endswith(".delta"):
        return bytes(_event(told.data).delta) not in (b"", b'""', b"null")
    if told.type != "response.output_item.done":
        return False
    item = _object_in(_event(told.data).item)
    kind = None if item is None else _item(item).type
    return kind == "message" or str(kind).endswith("_call")


def error_of(told: Told) -> dict[str, Any]:
    """The error that an event is, by its code."""
    event = _event(told.data)
    return event.error if isinstance(event.error, dict) else {"code": event.code}
