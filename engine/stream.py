"""Folds the events of one response into what the engine has to know of them.

Events are looked into only as far as needed: every event for its type, in full only those that end
an item or the response. Nothing is changed or dropped on the way to the client.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import msgspec
from msgspec import Raw

from engine import items
from engine.model import Usage, UsageState

_MISSING = Raw(b"")
_DELTA = re.compile(rb'\{"type": ?"(response\.[a-z_.]+\.delta)"')
_CREATED = b'{"type":"response.created",'
is_delta = _DELTA.match
"""Whether an event of a response is a delta, by its first bytes. Where output was seen before, it
can tell a fold nothing new."""


class _Head(msgspec.Struct):
    """What is read of every event."""

    type: str = ""
    delta: Raw = _MISSING
    item: Raw = _MISSING
    output_index: int | None = None
    response: Raw = _MISSING
    headers: Raw = _MISSING


_head = msgspec.json.Decoder(_Head)
_fields = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Raw])
_any = msgspec.json.Decoder()

TERMINAL = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.done", "error"}
)
_COMMITTING = frozenset({"response.completed", "response.incomplete", "response.done"})


class Fold:
    """The state of one response. Feed it each event once, in order; then read its attributes."""

    def __init__(self) -> None:
        self.response_id: str | None = None
        self.terminal: str | None = None
        self.status: str | None = None
        self.model: str | None = None
        self.service_tier: str | None = None
        self.usage = Usage()
        self.error: dict[str, Any] | None = None
        self.turn_state: str | None = None
        self.miss_reason: str | None = None
        self.unreadable = 0
        """Events that are no JSON object; they are relayed and otherwise skipped."""
        self.has_started = False
        """An event of the response itself was seen, as against private ones and errors."""
        self.has_output = False
        """An event that carries model output was seen (DESIGN 2, TTFT)."""
        self._done: dict[int, Raw] = {}
        self._announced: set[int] = set()
        self._done_twice = False
        """Two different items were done at one index: which of them is held is unknown."""
        self._terminal_output: list[Raw] | None = None
        self.last_response: Raw | None = None

    def feed(self, data: bytes) -> str:
        """Take one event; returns its type, "" where it cannot be read."""
        if self.has_output and self.terminal is None:
            delta = is_delta(data)  # most events are
            if delta:
                return delta[1].decode()
        try:
            head = _head.decode(data)
        except (msgspec.MsgspecError, RecursionError):
            head = _loose_head(data)
        if not head.type:
            self.unreadable += 1
            return ""
        type_ = head.type
        if self.terminal is not None:
            return type_  # what follows an end is not of this response
        if type_ == "response.metadata":
            self._metadata(head.headers)
            return type_
        if type_.startswith("response."):
            self.has_started = True
        if type_.endswith(".delta"):
            if head.delta not in (_MISSING, Raw(b'""'), Raw(b"null")):
                self.has_output = True
        elif type_ == "response.output_item.done":
            self._item(head, done=True)
        elif type_ == "response.output_item.added":
            self._item(head, done=False)
        elif type_ == "response.created":
            self._created(head.response)
        elif type_ in TERMINAL:
            self._end(type_, head.response, data)
        return type_

    def feed_response(self, body: bytes) -> None:
        """Take a complete response object: the JSON answer of a request that was not streamed."""
        self.has_started = True
        self._read_response(Raw(body))
        self._done = dict(enumerate(self._terminal_output or []))
        self.has_output = bool(self._done)
        self.terminal = {
            "completed": "response.completed",
            "incomplete": "response.incomplete",
            "failed": "response.failed",
        }.get(self.status or "")

    @property
    def commits(self) -> bool:
        """The response ended in a way that leaves an anchor."""
        return self.terminal in _COMMITTING and self.status not in ("failed", "cancelled")

    @property
    def outputs(self) -> list[Raw]:
        """The output items that were done, in ``output_index`` order (DESIGN 4.3)."""
        return [raw for _, raw in sorted(self._done.items())]

    @property
    def lacks_items(self) -> bool:
        """There was output of which no done item came: the baseline is unknown."""
        if self.terminal == "response.incomplete":
            return False
        count = len(self._terminal_output or ())
        return (
            count > len(self._done)
            or not self._announced <= self._done.keys()
            or ((self.has_output or bool(self.usage.output_tokens)) and not self._done)
        )

    @property
    def conflicts(self) -> bool:
        """The terminal list, or a second done event, contradicts the items that were done."""
        if self._done_twice:
            return True
        if not self._terminal_output:
            return False
        done = self.outputs
        return len(done) != len(self._terminal_output) or any(
            one != other and not _same_output(one, other)
            for one, other in zip(done, self._terminal_output, strict=False)
        )

    def complete_response(self) -> bytes | None:
        """The terminal response as a JSON answer; an empty output list gets the done items."""
        if self.last_response is None:
            return None
        if self._terminal_output or not self._done:
            return bytes(self.last_response)
        fields = _fields.decode(self.last_response)
        fields["output"] = Raw(b"[" + b",".join(map(bytes, self.outputs)) + b"]")
        return msgspec.json.encode(fields)

    def _item(self, head: _Head, *, done: bool) -> None:
        index = len(self._done) if head.output_index is None else head.output_index
        if done and head.item != _MISSING:
            before = self._done.get(index, head.item)
            self._done_twice |= before != head.item and not _same_output(before, head.item)
            self._done[index] = head.item.copy()
        elif not done:
            self._announced.add(index)
        if not self.has_output and head.item != _MISSING:
            self.has_output = _carries_output(head.item)

    def _created(self, response: Raw) -> None:
        fields = _decode_fields(response)
        self.response_id = self.response_id or _text(fields.get("id"))

    def _end(self, type_: str, response: Raw, data: bytes) -> None:
        self.terminal = type_
        if type_ == "error":
            self.error = _error_of(data)
        elif response != _MISSING:
            self._read_response(response)

    def _read_response(self, raw: Raw) -> None:
        fields = _decode_fields(raw)
        self.last_response = raw.copy() if fields else None
        self.response_id = _text(fields.get("id")) or self.response_id
        self.status = _text(fields.get("status"))
        self.model = _text(fields.get("model"))
        self.service_tier = _text(fields.get("service_tier"))
        self.usage = read_usage(_decode_any(fields.get("usage")))
        error = _decode_any(fields.get("error"))
        self.error = error if isinstance(error, dict) else None
        self.miss_reason = _diagnosis(_decode_any(fields.get("prompt_cache_diagnostics")))
        try:
            self._terminal_output = [r.copy() for r in _list.decode(fields.get("output", _MISSING))]
        except (msgspec.MsgspecError, RecursionError):
            self._terminal_output = None

    def _metadata(self, headers: Raw) -> None:
        value = _decode_any(headers)
        if isinstance(value, dict):
            token = value.get("x-codex-turn-state")
            token = token[0] if isinstance(token, list) and token else token
            self.turn_state = token if isinstance(token, str) else self.turn_state


def ended_response(data: bytes) -> str | None:
    """The id of the response that this event ends; None if it ends none, or names none."""
    if data.startswith(_CREATED):
        return None
    try:
        head = _head.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return None
    ends = head.type in TERMINAL and head.response != _MISSING
    return _text(_decode_fields(head.response).get("id")) if ends else None


def _loose_head(data: bytes) -> _Head:
    """An event whose known keys have unknown shapes is still an event: only its type is needed."""
    try:
        fields = _fields.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return _Head()
    return _Head(
        type=_text(fields.get("type")) or "",
        delta=fields.get("delta", _MISSING),
        item=fields.get("item", _MISSING),
        response=fields.get("response", _MISSING),
        headers=fields.get("headers", _MISSING),
    )


def _decode_fields(raw: Raw) -> dict[str, Raw]:
    try:
        return _fields.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _decode_any(raw: Raw | None) -> Any:
    if raw is None:
        return None
    try:
        return _any.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _diagnosis(value: Any) -> str | None:
    """The provider's word on the cache: why it was missed, else the type of its answer."""
    if not isinstance(value, dict):
        return None
    for said in (value.get("reason"), value.get("type")):
        if isinstance(said, str) and said:
            return said[:64]
    return None


def _text(raw: Raw | None) -> str | None:
    value = _decode_any(raw)
    return value if isinstance(value, str) and value else None


def _error_of(data: bytes) -> dict[str, Any] | None:
    value = _decode_any(Raw(data))
    if not isinstance(value, dict):
        return None
    nested = value.get("error")
    return nested if isinstance(nested, dict) else value


def _carries_output(raw: Raw) -> bool:
    """A tool call, a compaction, a message with text or a reasoning item with content."""
    value = _decode_any(raw)
    if not isinstance(value, dict):
        return False
    type_ = value.get("type")
    if type_ == "reasoning":
        return any(_texts(value.get("summary"))) or any(_texts(value.get("content")))
    if type_ == "message":
        return any(_texts(value.get("content")))
    return isinstance(type_, str) and (type_.endswith("_call") or "compaction" in type_)


def _texts(parts: Any) -> list[str]:
    if not isinstance(parts, list):
        return []
    return [
        text
        for part in parts
        if isinstance(part, dict)
        and isinstance(text := part.get("text") or part.get("refusal"), str)
    ]


def _same_output(one: Raw, other: Raw) -> bool:
    try:
        return items.difference(items.parse(one), items.parse(other), model_made=True) is None
    except (ValueError, RecursionError):
        return False


def read_usage(value: Any) -> Usage:
    """Tokens as reported. What is absent or no number stays unknown; contradictions are flagged."""
    if not isinstance(value, dict):
        return Usage()
    given = _details(value.get("input_tokens_details"))
    written = _details(given.get("cache_write_tokens_details"))
    usage = Usage(
        input_tokens=_count(value.get("input_tokens")),
        cached_tokens=_count(given.get("cached_tokens")),
        cache_write_tokens=_count(given.get("cache_write_tokens")),
        cache_write_long_tokens=_count(written.get("ttl_12h_tokens")),
        output_tokens=_count(value.get("output_tokens")),
        reasoning_tokens=_count(
            _details(value.get("output_tokens_details")).get("reasoning_tokens")
        ),
        total_tokens=_count(value.get("total_tokens")),
        state=UsageState.REPORTED,
    )
    if usage.input_tokens is None and usage.output_tokens is None:
        return dataclasses.replace(usage, state=UsageState.MISSING)
    if _contradicts_itself(usage):
        return dataclasses.replace(usage, state=UsageState.INCONSISTENT)
    return usage


def _details(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _contradicts_itself(usage: Usage) -> bool:
    given, answered = usage.input_tokens, usage.output_tokens
    reused = (usage.cached_tokens or 0) + (usage.cache_write_tokens or 0)
    return (
        (given is not None and reused > given)
        or (answered is not None and (usage.reasoning_tokens or 0) > answered)
        or (
            None not in (given, answered, usage.total_tokens)
            and usage.total_tokens != (given or 0) + (answered or 0)
        )
    )
