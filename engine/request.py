"""A request body split into its fields and its input items, decoding only what must be decoded.

The slices are the client's own bytes: frames and bodies are put together from them, so that nothing
is ever re-serialized on its way (DESIGN 4.3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from engine import items
from engine.errors import UnreadableRequest

# The request's envelope and what changes on each request without changing what the model reads.
_NOT_COMPARED = frozenset(
    {
        "input",
        "stream",
        "stream_options",
        "client_metadata",
        "metadata",
        "previous_response_id",
        "generate",
        "stream_id",
        "background",
        "type",
        "access_programs",
    }
)
_CACHE_OPTIONS_NOT_COMPARED = frozenset({"comparison_response_id", "prewarm"})

# Of a WebSocket frame only; unknown parameters of a POST.
_ENVELOPE = frozenset({"type", "generate", "stream_id"})

_NULL = Raw(b"null")
_object = msgspec.json.Decoder(dict[str, Raw])
_array = msgspec.json.Decoder(list[Raw])
_any = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client. ``fields`` are all top-level values, in the client's order."""

    body: bytes
    fields: Mapping[str, Raw]
    items: tuple[Raw, ...]

    def text(self, name: str) -> str | None:
        """A top-level string; None when it is absent, null or not a string."""
        value = self.value(name)
        return value if isinstance(value, str) else None

    def value(self, name: str) -> Any:
        """A small top-level value, decoded; None when it is absent."""
        raw = self.fields.get(name)
        if raw is None:
            return None
        try:
            return _any.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            return None

    def frame(
        self,
        input_items: Sequence[Raw] | None,
        previous_response_id: str | None,
        *,
        keep_stream: bool,
        client_metadata: bytes | None = None,
    ) -> bytes:
        """The WebSocket frame: the client's fields, with these items (None: the input as it came).

        ``stream`` is implied on a WebSocket and is kept only for clients that send it there.
        """
        left_out = {"type", "previous_response_id"}
        if not keep_stream:
            left_out.add("stream")
        if self.value("background") is False:
            left_out.add("background")
        return self._assemble(
            left_out,
            b'"type":"response.create"',
            input_items,
            previous_response_id,
            {} if client_metadata is None else {"client_metadata": client_metadata},
        )

    def post(
        self,
        input_items: Sequence[Raw] | None,
        previous_response_id: str | None,
        *,
        stream: bool | None,
    ) -> bytes:
        """The body of a POST: no WebSocket envelope. ``stream`` None leaves that field as it is."""
        left_out = {*_ENVELOPE, "previous_response_id"}
        own = {} if stream is None else {"stream": b"true" if stream else b"false"}
        return self._assemble(left_out, b"", input_items, previous_response_id, own)

    def _assemble(
        self,
        left_out: set[str],
        head: bytes,
        input_items: Sequence[Raw] | None,
        previous_response_id: str | None,
        own: Mapping[str, bytes],
    ) -> bytes:
        parts = [head] if head else []
        if previous_response_id is not None:
            parts.append(b'"previous_response_id":' + _dump(previous_response_id))
        for name, raw in self.fields.items():
            if name in left_out or name in own or (name == "input" and input_items is not None):
                continue
            parts.append(_dump(name) + b":" + bytes(raw))
        parts.extend(_dump(name) + b":" + value for name, value in own.items())
        if input_items is not None:
            parts.append(b'"input":[' + b",".join(map(bytes, input_items)) + b"]")
        return b"{" + b",".join(parts) + b"}"


def _dump(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=True).encode()


def split(body: bytes) -> Request:
    """Split a body. Raises ``UnreadableRequest`` where a reader would have to guess."""
    try:
        fields = _object.decode(body)
        if _names_a_key_twice(body, fields):
            raise UnreadableRequest("a top-level key stands twice")
        body.decode()
        return Request(body=body, fields=fields, items=_items(fields.get("input", _NULL)))
    except (ValueError, RecursionError) as error:  # all decoding errors are ValueErrors
        raise UnreadableRequest("the body is not a JSON object that can be split") from error


def _items(raw: Raw) -> tuple[Raw, ...]:
    first = bytes(memoryview(raw)[:1])
    if first == b"[":
        return tuple(_array.decode(raw))
    if first == b'"':
        # A string input is one user message (DESIGN 4.3).
        return (Raw(b'{"role":"user","content":' + bytes(raw) + b"}"),)
    raise UnreadableRequest("the input is neither a list nor a string")


def _names_a_key_twice(body: bytes, fields: Mapping[str, Raw]) -> bool:
    """The decoder keeps the last of two equal keys; what it threw away shows in the bytes."""
    count = len(fields)
    known = sum(len(_dump_plain(name)) + len(memoryview(raw)) for name, raw in fields.items())
    # No object is shorter than its compact form, so that nothing more can stand in one.
    if len(body) - known == 2 + count + max(0, count - 1):
        return False
    # As json.dumps spaces it. Bytes are compared, not counted: a second key could be as long.
    spaced = b", ".join(_dump_plain(name) + b": " + bytes(raw) for name, raw in fields.items())
    if body == b"{" + spaced + b"}":
        return False
    return _top_level_keys(body.decode("utf-8", "surrogatepass")) != count


def _dump_plain(name: str) -> bytes:
    return b'"' + name.encode("utf-8", "surrogatepass") + b'"'


_skim = json.JSONDecoder(parse_int=str, parse_float=str)


def _top_level_keys(text: str) -> int:
    """How many keys the (valid) object names, each time it names one."""
    count, at = 0, text.index("{") + 1
    while True:
        at = _skip_space(text, at)
        if text[at] == "}":
            return count
        _, at = _skim.raw_decode(text, at)
        at = _skip_space(text, _skip_space(text, at) + 1)
        _, at = _skim.raw_decode(text, at)
        at = _skip_space(text, at)
        count += 1
        at += text[at] == ","


def _skip_space(text: str, at: int) -> int:
    while text[at] in " \t\n\r":
        at += 1
    return at


def changed_fields(before: Mapping[str, Raw], now: Mapping[str, Raw], tools: str) -> list[str]:
    """Names of the fields that differ, sorted. With ``tools="relaxed"`` tools are not compared."""
    names = (before.keys() | now.keys()) - _NOT_COMPARED
    if tools == "relaxed":
        names -= {"tools"}
    return sorted(
        name
        for name in names
        if not _same_field(name, before.get(name, _NULL), now.get(name, _NULL))
    )


def _same_field(name: str, before: Raw, now: Raw) -> bool:
    if before == now:
        return True
    try:
        one, other = items.parse(before), items.parse(now)
        if name == "prompt_cache_options":
            one, other = _without_diagnostics(one), _without_diagnostics(other)
        return items.same_json(one, other)
    except (ValueError, RecursionError):
        return False


def _without_diagnostics(options: Any) -> Any:
    if not isinstance(options, dict):
        return options
    kept = {k: v for k, v in options.items() if k not in _CACHE_OPTIONS_NOT_COMPARED}
    return kept or None


def own_copy(fields: Mapping[str, Raw]) -> dict[str, Raw]:
    """The compared fields in memory of their own: a slice keeps its whole body alive."""
    return {name: raw.copy() for name, raw in fields.items() if name not in _NOT_COMPARED}
