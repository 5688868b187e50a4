"""A request body split into its fields and its input items, decoding only what must be decoded.

The slices are the client's own bytes: frames and bodies are put together from them, so that nothing
is ever re-serialized on its way (DESIGN 4.3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw

from engine import items
from engine.spelling import Known
from engine.splitting import read

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
_any = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client. ``fields`` are all top-level values, in the client's order."""

    body: bytes
    fields: Mapping[str, Raw]
    items: Sequence[Raw]

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
        left_out = set(_ENVELOPE)
        if previous_response_id is not None or self.value("previous_response_id") is None:
            left_out.add("previous_response_id")
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
        parts: list[bytes | Raw] = [b"{", head] if head else [b"{"]
        if previous_response_id is not None:
            parts += (_key("previous_response_id"), _dump(previous_response_id))
        left_out |= own.keys() if input_items is None else {"input", *own}
        for name, raw in self.fields.items():
            if name not in left_out:
                parts += (_key(name), raw)
        for name, value in own.items():
            parts += (_key(name), value)
        if input_items is not None:
            parts += (_key("input"), b"[")
            for raw in input_items:
                parts += (raw, b",")
            if input_items:
                parts.pop()
            parts.append(b"]")
        parts.append(b"}")
        if not head:
            parts[1] = bytes(parts[1])[1:]  # the first field has no comma before it
        return b"".join(parts)


def _dump(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=True).encode()


@lru_cache(maxsize=256)
def _short_key(name: str) -> bytes:
    return b"," + _dump(name) + b":"


def _key(name: str) -> bytes:
    """A key behind a comma; clients use few names, but may use any."""
    return _short_key(name) if len(name) <= 64 else b"," + _dump(name) + b":"


def split(body: bytes, known: Sequence[Known] = ()) -> Request:
    """Split a body. Raises ``UnreadableRequest`` where a reader would have to guess.

    What it repeats of a ``known`` body, byte for byte, is not read again.
    """
    fields, found = read(body, known)
    return Request(body=body, fields=fields, items=found)


def changed_fields(before: Mapping[str, Raw], now: Mapping[str, Raw], tools: str) -> list[str]:
    """Names of the fields that differ, sorted. With ``tools="relaxed"`` tools are not compared."""
    if before == {name: raw for name, raw in now.items() if name not in _NOT_COMPARED}:
        return []  # byte for byte, as nearly always
    names = {*before, *now} - _NOT_COMPARED
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
