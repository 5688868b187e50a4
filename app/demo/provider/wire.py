"""JSON as it stands on the wire: compact output, and input items kept as the text that was sent."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def dumps(value: Any) -> str:
    """Compact JSON in UTF-8 characters; escapes only where a lone surrogate leaves no other way."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


@dataclass(frozen=True, slots=True)
class Parsed:
    """A decoded object, and the exact text of each element of its ``input`` array."""

    value: Json
    input_texts: tuple[str, ...]
    """Empty when ``input`` is absent or not an array."""


def parse_object(text: str) -> Parsed:
    """Decode a JSON object. ``ValueError`` says what is wrong with it."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("the body is not a JSON object")  # noqa: TRY004 - callers see one kind
    texts: tuple[str, ...] = ()
    if isinstance(value.get("input"), list):
        texts = _elements(text, _member(text, "input"))
    return Parsed(value, texts)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _member(text: str, name: str) -> int:
    """Where the value of the last member ``name`` of the object begins (the last one counts)."""
    at = _skip(text, _skip(text, 0) + 1)
    found = -1
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)  # over the colon
        if key == name:
            found = at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _elements(text: str, start: int) -> tuple[str, ...]:
    out = []
    at = _skip(text, start + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        out.append(text[at:end])
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return tuple(out)
