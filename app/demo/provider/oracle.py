"""The judge: which turns could have been continued, and whether the transcripts agree.

Written from the rules, not from the engine, and meant to be obviously right rather than fast: every
pair of items is compared in full (and the answer kept by its texts, for nothing else decides it).

Here are the equalities; ``verdict`` has the ``Oracle`` that applies them to what happened.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .items import Item, kind_of
from .wire import Json

# --- when two items are the same ---------------------------------------------------------------

IGNORED = frozenset(
    {
        "status",
        "created_at",
        "completed_at",
        "created_by",
        "annotations",
        "logprobs",
        "obfuscation",
        "metadata",
        "internal_chat_message_metadata_passthrough",
    }
)
_COMPARED = """
type role text phase call_id name namespace arguments input output summary content refusal
encrypted_content
"""
COMPARED = frozenset(_COMPARED.split())
"""Of an item made by the model. Other keys count only where both sides have them."""


@dataclass(frozen=True)
class Literal:
    """A number as it is written: 1, 1.0 and 1e0 are three different ones."""

    text: str


_STRICT = json.JSONDecoder(parse_int=Literal, parse_float=Literal, parse_constant=Literal)


def strict(value: Any) -> Any:
    """A JSON text, or a value, with its numbers as ``Literal``."""
    return _STRICT.decode(value if isinstance(value, str) else json.dumps(value))


def same_item(held: Item | Json | str, sent: Item | Json | str, *, made: bool = False) -> bool:
    """Whether the provider's item and the client's are the same one.

    Each is an ``Item``, a value, or a JSON text (in which number literals are exact).
    ``made``: it was received as an output item, so that the projection applies whatever its type.
    """
    from_string = isinstance(sent, Item) and sent.from_string
    if isinstance(held, Item):
        made, from_string = made or held.made, from_string or held.from_string
    return _same_texts(_text(held), _text(sent), made, from_string)


@lru_cache(maxsize=1 << 16)
def _same_texts(held: str, sent: str, made: bool, from_string: bool, /) -> bool:
    """A function of nothing but its texts, so that a pair that was judged is not judged again."""
    a, b = decoded(held), decoded(sent)
    if isinstance(a.get("id"), str) and isinstance(b.get("id"), str) and a["id"] != b["id"]:
        return False
    if made or made_by_model(a) or made_by_model(b):
        return _same_made(a, b)
    if from_string:
        a, b = spelled_out(a), spelled_out(b)
    return _without(a, "metadata", "id") == _without(b, "metadata", "id")


@lru_cache(maxsize=1 << 14)
def decoded(text: str) -> Json:
    """Shared by all who ask: not to be changed."""
    value = strict(text)
    assert isinstance(value, dict)
    return value


def _text(item: Item | Json | str) -> str:
    if isinstance(item, Item):
        return item.text
    return item if isinstance(item, str) else json.dumps(item)


def made_by_model(value: Json) -> bool:
    kind = kind_of(value)
    if kind == "message":
        return value.get("role") == "assistant"
    return kind in ("reasoning", "compaction", "compaction_summary") or kind.endswith("_call")


def _without(value: Json, *names: str) -> Json:
    return {k: v for k, v in value.items() if k not in names}


def spelled_out(value: Json) -> Json:
    """A message in its long form: with a type, and its text in a part."""
    if kind_of(value) != "message" or not isinstance(value.get("content"), str):
        return {"type": "message", **value} if kind_of(value) == "message" else value
    kind = "output_text" if value.get("role") == "assistant" else "input_text"
    content = [{"type": kind, "text": value["content"]}]
    return {**value, "type": "message", "content": content}


def _same_made(a: Json, b: Json) -> bool:
    a, b = spelled_out(a), spelled_out(b)
    if kind_of(a) != kind_of(b):
        return False
    if kind_of(a) == "reasoning" and not _same_thought(a, b):
        return False
    return _same_members(_without(a, "id"), _without(b, "id"))


def _same_thought(a: Json, b: Json) -> bool:
    """Two reasoning items with nothing in common but emptiness are not the same."""
    if isinstance(a.get("id"), str) and a.get("id") == b.get("id"):
        return True
    if a.get("encrypted_content") and a["encrypted_content"] == b.get("encrypted_content"):
        return True
    return bool(_thought(a)) and _thought(a) == _thought(b)


def _thought(value: Json) -> str:
    parts = [*(value.get("summary") or ()), *(value.get("content") or ())]
    return "".join(p.get("text") or "" for p in parts if isinstance(p, dict))


def _same_members(a: Json, b: Json) -> bool:
    for name in a.keys() | b.keys():
        if name in IGNORED:
            continue
        left, right = a.get(name), b.get(name)
        if name in ("summary", "content"):
            left, right = (None if value == [] else value for value in (left, right))
        if name == "arguments" and _same_arguments(left, right):
            continue
        if name not in COMPARED and (left is None or right is None):
            continue
        if not _same_value(left, right, exact=name in ("output", "input", "arguments")):
            return False
    return True


def _same_value(a: Any, b: Any, *, exact: bool) -> bool:
    if exact:
        return bool(a == b)
    if isinstance(a, dict) and isinstance(b, dict):
        return _same_members(a, b)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(
            _same_value(x, y, exact=False) for x, y in zip(a, b, strict=True)
        )
    return bool(a == b)


class _Twice(ValueError):
    """A key stands twice in one object: readers differ on what that means."""


def _once(pairs: list[tuple[str, Any]]) -> Json:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise _Twice
    return out


def _same_arguments(a: Any, b: Any) -> bool:
    """As strings, or as the JSON values that they spell."""
    if a == b:
        return True
    if not isinstance(a, str) or not isinstance(b, str):
        return False
    try:
        left, right = (
            json.loads(
                text,
                parse_int=Literal,
                parse_float=Literal,
                parse_constant=Literal,
                object_pairs_hook=_once,
            )
            for text in (a, b)
        )
    except ValueError:
        return False
    return bool(left == right)


# --- transcripts -------------------------------------------------------------------------------

Input = str | Sequence[Item | Json | str] | None


def items_of(given: Input) -> list[Item | Json | str]:
    """A request's ``input`` as a list; a string is one user message."""
    if given is None:
        return []
    if isinstance(given, str):
        content = [{"type": "input_text", "text": given}]
        value: Json = {"type": "message", "role": "user", "content": content}
        return [Item(json.dumps(value), value, from_string=True)]
    return list(given)


def extends(held: Sequence[Item | Json | str], given: Input) -> list[Item | Json | str] | None:
    """What the request has beyond the held items; None if it does not begin with all of them."""
    items = items_of(given)
    if len(items) < len(held):
        return None
    if not all(same_in_order(a, b) for a, b in zip(held, items, strict=False)):
        return None
    return items[len(held) :]


def same_in_order(held: Item | Json | str, sent: Item | Json | str) -> bool:
    """``same_item``, also when it is the client's side that gave a string as the whole input."""
    return same_item(held, sent)


def same_transcript(held: Sequence[Item | Json | str], logical: Input) -> bool:
    """Whether the provider holds exactly what the client means: its input and its answers."""
    return extends(held, logical) == []


def first_difference(held: Sequence[Item | Json | str], logical: Input) -> int | None:
    """The index at which two transcripts part, or None. For the message of a failing test."""
    items = items_of(logical)
    for index, (a, b) in enumerate(zip(held, items, strict=False)):
        if not same_in_order(a, b):
            return index
    return None if len(held) == len(items) else min(len(held), len(items))


# --- fields ------------------------------------------------------------------------------------

_UNCOMPARED = """
input stream stream_options client_metadata metadata previous_response_id generate stream_id
background type access_programs
"""
UNCOMPARED_FIELDS = frozenset(_UNCOMPARED.split())


def changed_fields(before: Json, now: Json) -> list[str]:
    """Names of the fields that count and differ; an absent field and ``null`` are one."""
    out = []
    for name in sorted((before.keys() | now.keys()) - UNCOMPARED_FIELDS):
        a, b = before.get(name), now.get(name)
        if name == "prompt_cache_options":
            a, b = (_without(v or {}, "comparison_response_id", "prewarm") or None for v in (a, b))
        if strict([a]) != strict([b]):
            out.append(name)
    return out
