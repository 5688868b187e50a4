"""What an input item is, and under which projection two items are the same (DESIGN 4.3).

Clients never give back the provider's bytes: they drop fields that they do not model, reorder keys,
add nulls, re-serialize arguments. What the model has made is therefore compared under a projection;
everything else has to be equal as JSON. A rule here that is too loose makes the model continue from
a history that does not exist, one that is too strict makes the client upload everything again.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgspec import Raw

Path: TypeAlias = tuple[str | int, ...]


class AmbiguousJSON(ValueError):
    """An object names one key twice: readers differ on which counts, so nothing is proven."""


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number by its literal: 1, 1.0 and 1e0 are three, as they are to a tokenizer."""

    literal: str


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise AmbiguousJSON("an object names one key twice")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=Number, parse_float=Number, parse_constant=Number
)


def parse(raw: Raw | bytes | str) -> Any:
    """Decode JSON without losing what distinguishes two texts: number literals stay.

    Raises ``AmbiguousJSON`` on a key that stands twice in one object, ``ValueError`` on bad JSON.
    """
    text = raw if isinstance(raw, str) else bytes(raw).decode("utf-8", "surrogatepass")
    return _DECODER.decode(text)


# What a provider regenerates or a client does not keep; never part of what the model reads.
REGENERATED = frozenset(
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

# Keys of model-made items that the model reads back. One side lacking such a key is a difference,
# unless the other side's value is null (or empty, for the two below).
_CONTENT = frozenset(
    {
        "type",
        "role",
        "content",
        "text",
        "refusal",
        "phase",
        "call_id",
        "name",
        "namespace",
        "arguments",
        "input",
        "output",
        "summary",
        "encrypted_content",
        "action",
        "actions",
        "queries",
        "results",
        "code",
        "outputs",
        "result",
        "operation",
        "server_label",
        "error",
        "tools",
    }
)

_EMPTY_IS_ABSENT = frozenset({"content", "summary"})
_MODEL_TYPES = frozenset(
    {
        "reasoning",
        "compaction",
        "compaction_summary",
        "context_compaction",
        "mcp_list_tools",
        "mcp_approval_request",
        "agent_message",
        "program",
    }
)


def kind(value: Any) -> str:
    """The word for an item in evidence: its type, or ``message:<role>``; never content."""
    if not isinstance(value, dict):
        return "value"
    type_ = value.get("type")
    role = value.get("role")
    if type_ in (None, "message") and isinstance(role, str):
        return f"message:{role}" if role in _ROLES else "message:other"
    return type_[:64] if isinstance(type_, str) and type_.isidentifier() else "unknown"


_ROLES = frozenset({"user", "assistant", "system", "developer", "tool", "critic", "discriminator"})


def made_by_model(value: Any) -> bool:
    """Assistant messages, reasoning, every kind of call, compaction (DESIGN 4.3)."""
    if not isinstance(value, dict):
        return False
    type_ = value.get("type")
    if type_ in (None, "message"):
        return value.get("role") == "assistant"
    return isinstance(type_, str) and (type_ in _MODEL_TYPES or type_.endswith("_call"))


def difference(held: Any, now: Any, *, model_made: bool) -> Path | None:
    """Where two decoded items part: None if they are the same, else the keys down to the place.

    ``held`` is what the provider holds, ``now`` what the client sends in its place.
    """
    if not isinstance(held, dict) or not isinstance(now, dict):
        return _plain(held, now)
    if (id_ := _id(held)) and (other := _id(now)) and id_ != other:
        return ("id",)
    if held.get("type") == "item_reference" and _id(held) != _id(now):
        return ("id",)  # a reference is nothing but its id
    if not model_made:
        return _plain_item(held, now)
    if (where := _projected(_spelled_out(held), _spelled_out(now))) is not None:
        return where
    if held.get("type") == "reasoning" and not _reasoning_is_identified(held, now):
        return ("encrypted_content",)
    return None


def equals_itself(value: dict[str, Any]) -> tuple[bool, bool]:
    """Whether an item of the model is the same as itself, and as itself without its id.

    As ``difference`` would find, which has nothing else to say of two that have the same values.
    """
    match value.get("type"):
        case "reasoning":
            bare = {key: part for key, part in value.items() if key != "id"}
            return _reasoning_is_identified(value, value), _reasoning_is_identified(value, bare)
        case "item_reference":
            return True, _id(value) is None
    return True, True


def plain_difference(held: Any, now: Any) -> Path | None:
    """Where two JSON values part; None if they are equal."""
    return _plain(held, now)


def same_json(one: Any, other: Any) -> bool:
    """Equal as JSON values: key order is irrelevant, array order and number literals are not."""
    return _plain(one, other) is None


def _id(value: dict[str, Any]) -> Any:
    return value.get("id")


def _plain_item(held: dict[str, Any], now: dict[str, Any]) -> Path | None:
    """As ``_plain``, but for the metadata; of their ids it is known that they do not differ."""
    one, other = (
        {key: value for key, value in item.items() if key not in ("metadata", "id")}
        for item in (held, now)
    )
    return _plain(one, other)


def _plain(held: Any, now: Any) -> Path | None:
    """First place where two JSON values differ; the key order of objects does not matter."""
    if isinstance(held, dict) and isinstance(now, dict):
        for key, value in held.items():
            if key not in now:
                return (key,)
            if (where := _plain(value, now[key])) is not None:
                return (key, *where)
        return next(((key,) for key in now if key not in held), None)
    if isinstance(held, list) and isinstance(now, list):
        for index, (one, other) in enumerate(zip(held, now, strict=False)):
            if (where := _plain(one, other)) is not None:
                return (index, *where)
        return None if len(held) == len(now) else (min(len(held), len(now)),)
    # bool is the only JSON type that Python mixes with another; numbers are Number here.
    return None if type(held) is type(now) and held == now else ()


def _spelled_out(item: dict[str, Any]) -> dict[str, Any]:
    """The long spelling of a message: with its type, its content a list of text parts."""
    if "type" in item and item["type"] not in (None, "message"):
        return item
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "output_text", "text": content}]
    return {**item, "type": "message", "content": content}


def _projected(held: dict[str, Any], now: dict[str, Any]) -> Path | None:
    for key in held | now:
        if key in REGENERATED:
            continue
        one, other = held.get(key), now.get(key)
        if key == "id" and not (one and other):
            continue
        if key in _EMPTY_IS_ABSENT:
            one, other = (None if value == [] else value for value in (one, other))
        if key == "arguments" and _same_arguments(one, other):
            continue
        if key == "action" and held.get("type") == "web_search_call":
            one, other = _without_dropped_sources(one, other)
        if key in _EMPTY_IS_ABSENT and isinstance(one, list) and isinstance(other, list):
            where = _parts(one, other)
        elif key not in _CONTENT and (key not in held or key not in now):
            continue
        elif key == "arguments":
            where = _plain(one, other)  # a null in them may be meant
        else:
            where = _without_nulls(one, other)
        if where is not None:
            return (key, *where)
    return None


def _without_dropped_sources(held: Any, now: Any) -> tuple[Any, Any]:
    """Codex drops the sources of a web search; they count only where both sides have them."""
    if not isinstance(held, dict) or not isinstance(now, dict):
        return held, now
    if "sources" in held and "sources" in now:
        return held, now
    one, other = ({k: v for k, v in side.items() if k != "sources"} for side in (held, now))
    return one, other


def _parts(held: list[Any], now: list[Any]) -> Path | None:
    for index, (one, other) in enumerate(zip(held, now, strict=False)):
        where = (
            _projected(one, other)
            if isinstance(one, dict) and isinstance(other, dict)
            else _plain(one, other)
        )
        if where is not None:
            return (index, *where)
    return None if len(held) == len(now) else (min(len(held), len(now)),)


def _without_nulls(held: Any, now: Any) -> Path | None:
    """As ``_plain``, with null and absent as one."""
    if isinstance(held, dict) and isinstance(now, dict):
        for key in held | now:
            if (where := _without_nulls(held.get(key), now.get(key))) is not None:
                return (key, *where)
        return None
    if isinstance(held, list) and isinstance(now, list):
        for index, (one, other) in enumerate(zip(held, now, strict=False)):
            if (where := _without_nulls(one, other)) is not None:
                return (index, *where)
        return None if len(held) == len(now) else (min(len(held), len(now)),)
    return _plain(held, now)


def _same_arguments(held: Any, now: Any) -> bool:
    """Arguments match as strings, or as the JSON that they hold: some clients re-serialize them."""
    if not isinstance(held, str) or not isinstance(now, str):
        return False
    if held == now:
        return True
    try:
        return _plain(parse(held), parse(now)) is None
    except (ValueError, RecursionError):
        return False


def _reasoning_is_identified(held: dict[str, Any], now: dict[str, Any]) -> bool:
    """Equal emptiness proves nothing: an id, a ciphertext or a text has to be there and equal.

    The projection has already found everything equal that both sides hold.
    """
    if _id(held) and _id(held) == _id(now):
        return True
    if held.get("encrypted_content"):
        return True
    lists = [value for key in ("summary", "content") if isinstance(value := held.get(key), list)]
    return any(isinstance(part, dict) and part.get("text") for parts in lists for part in parts)


def echo_key(value: Any) -> tuple[bytes, str | None]:
    """A digest, and the id, by which a model-made item and its echo are found again.

    It serves to tell which anchor a request was meant to extend, never to prove that it does.
    """
    if isinstance(value, dict):
        value = _spelled_out(value)
        core = {
            key: part
            for key in _CONTENT & value.keys()
            if (part := _core(key, value[key])) not in (None, [], {})
        }
        if core.keys() <= {"type"}:  # of an unknown kind: all that it has tells it from another
            core = {key: value[key] for key in value.keys() - REGENERATED - {"id"}}
    else:
        core = {"value": value}
    text = json.dumps(core, sort_keys=True, default=_literal)
    id_ = value.get("id") if isinstance(value, dict) else None
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return digest, id_ if isinstance(id_, str) and id_ else None


def _core(key: str, value: Any) -> Any:
    if key == "arguments" and isinstance(value, str):
        with suppress(ValueError, RecursionError):
            return parse(value)
    if key in _EMPTY_IS_ABSENT and isinstance(value, list):
        return [
            {name: part[name] for name in _CONTENT & part.keys()}
            if isinstance(part, dict)
            else part
            for part in value
        ]
    if key == "action" and isinstance(value, dict):
        # Codex drops the sources of a web search: its echo is one all the same.
        return {name: part for name, part in value.items() if name != "sources"}
    return value


def _literal(number: Any) -> Any:
    if isinstance(number, Number):
        return {"number": number.literal}
    raise TypeError(f"not JSON: {type(number).__name__}")
