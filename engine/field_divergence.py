"""Where two sets of fields part: tools by name, instructions by line, all else by pointer.

Old and new value are told only where they are words of the protocol or of the provider (a model, an
effort, a number, true or false), never a text of the user's (DESIGN 4.4).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Raw

from engine import items
from engine.places import MISSING, Teller

Detail = dict[str, Any]

FIELDS = frozenset(
    {"background", "background_options", "context_management", "conversation", "image"}
    | {"include", "instructions"}
    | {"max_output_tokens", "max_tool_calls", "model", "moderation", "parallel_tool_calls"}
    | {"prompt", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"}
    | {"reasoning", "safety_identifier", "service_tier", "store", "temperature", "text"}
    | {"tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user", "verbosity"}
)
"""Top-level fields of a request; any other is told as a digest, unless it is made visible."""

# Keys below them: of settings, of tools, and of the JSON schema of parameters.
KEYS = frozenset(
    {"allowed_tools", "anyOf", "background", "compact_threshold", "const", "container", "context"}
    | {"defer_loading", "description", "effort", "enum", "exclusiveMaximum", "exclusiveMinimum"}
    | {"external_web_access", "file_ids", "filters", "format", "generate_summary", "headers"}
    | {"input_schema", "items", "json_schema", "maximum", "max_num_results", "maxItems"}
    | {"maxLength", "minimum", "minItems", "minLength", "mode", "model", "multipleOf", "name"}
    | {"nullable", "oneOf", "output_schema", "parameters", "pattern", "properties", "quality"}
    | {"ranking_options", "required", "require_approval", "role", "schema", "search_context_size"}
    | {"server_description", "server_label", "server_url", "size", "strict", "summary", "syntax"}
    | {"tool", "tools", "ttl", "type", "user_location", "vector_store_ids", "verbosity", "version"}
    | {"additionalProperties", "allOf", "annotations", "authorization", "connector_id"}
    | {"default", "definition", "$defs", "$ref", "title", "text", "id", "variables"}
)

# Places whose strings are words of the protocol or names of the provider's.
_WORDS = frozenset(
    {"model", "service_tier", "truncation", "prompt_cache_retention", "verbosity"}
    | {"reasoning/effort", "reasoning/summary", "reasoning/generate_summary", "reasoning/context"}
    | {"reasoning/mode", "text/verbosity", "text/format/type", "tool_choice", "tool_choice/type"}
    | {"tool_choice/mode", "prompt_cache_options/mode", "prompt_cache_options/ttl"}
)
_NUMBERS = frozenset(
    {"max_output_tokens", "max_tool_calls", "temperature", "top_logprobs", "top_p"}
)
_MODEL = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,63}", re.ASCII)
_WORD = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_][\w.:-]{0,63}", re.ASCII)
_INCLUDED = frozenset(
    {"code_interpreter_call.outputs", "computer_call_output.output.image_url"}
    | {"file_search_call.results", "message.input_image.image_url"}
    | {"message.output_text.logprobs", "reasoning.encrypted_content"}
    | {"web_search_call.action.sources", "web_search_call.results"}
)
# Not compared (engine.request), so that they are no change either.
_DIAGNOSTICS = frozenset({"comparison_response_id", "prewarm"})
MOST = 24
"""Details of one field; ``left_out`` counts the rest."""


def describe_fields(
    before: Mapping[str, Raw], now: Mapping[str, Raw], changed: Sequence[str], teller: Teller
) -> tuple[Detail, ...]:
    """What is known of each changed field, in the order of the names."""
    told: list[Detail] = []
    for name in changed:
        field = field_name(name, teller)
        try:
            details = list(_details(name, _value(before.get(name)), _value(now.get(name)), teller))
        except RecursionError:
            details = [{"change": "changed"}]
        told += ({"field": field, **each} for each in details[:MOST])
        if rest := len(details[MOST:]):
            told.append({"field": field, "left_out": rest})
    return tuple(told)


def field_name(name: str, teller: Teller) -> str:
    """A field by its name if the protocol knows it, else as a digest."""
    return name if name in FIELDS else teller.name(name)


def _value(raw: Raw | None) -> Any:
    """The decoded field; null is as good as absent, and what cannot be read is its bytes."""
    if raw is None:
        return MISSING
    try:
        value = items.parse(raw)
    except (ValueError, RecursionError):
        return bytes(raw).decode("utf-8", "replace")
    return MISSING if value is None else value


def _details(name: str, one: Any, other: Any, teller: Teller) -> Iterator[Detail]:
    if name == "tools" and _is_list(one) and _is_list(other):
        return tools(_list(one), _list(other), teller)
    if name == "include" and _is_list(one) and _is_list(other):
        return _included(_list(one), _list(other), teller)
    if isinstance(one, dict) and isinstance(other, dict):
        return _by_key(name, one, other, teller)
    return iter((_whole(name, one, other, teller),))


def _is_list(value: Any) -> bool:
    return value is MISSING or isinstance(value, list)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def tools(before: Sequence[Any], now: Sequence[Any], teller: Teller) -> Iterator[Detail]:
    """Which tool was added, removed or changed, and where; or that they come in another order."""
    held, sent = _named(before, teller), _named(now, teller)
    for key, tool in sent.items():
        if key not in held:
            yield {"change": "added", "name": key[0], "digest_now": teller.digest(tool)}
    for key, tool in held.items():
        if key not in sent:
            yield {"change": "removed", "name": key[0], "digest_before": teller.digest(tool)}
    for key, tool in held.items():
        if key in sent and (where := items.plain_difference(tool, sent[key])) is not None:
            yield {
                "change": "changed",
                "name": key[0],
                **teller.place(tool, sent[key], where, inside_json=False).as_dict(),
                **_parts(tool, sent[key], teller),
            }
    both = [key for key in held if key in sent], [key for key in sent if key in held]
    if both[0] != both[1]:
        at = next(i for i, (one, other) in enumerate(zip(*both, strict=True)) if one != other)
        moved = sum(one != other for one, other in zip(*both, strict=True))
        yield {"change": "reordered", "at": at, "moved": moved}


def _named(given: Sequence[Any], teller: Teller) -> dict[tuple[str, int], Any]:
    """Tools by name; of several with the same name the first is 0, the second 1 …"""
    seen: Counter[str] = Counter()
    found = {}
    for tool in given:
        name = tool_name(tool, teller)
        found[name, seen[name]] = tool
        seen[name] += 1
    return found


def tool_name(tool: Any, teller: Teller) -> str:
    """The name of a function, the label of an MCP server, the type of all else."""
    if not isinstance(tool, dict):
        return "unknown"
    label, name, type_ = (tool.get(key) for key in ("server_label", "name", "type"))
    if isinstance(label, str) and type_ == "mcp":
        return f"mcp:{_tool_word(label, teller)}"
    word = name if isinstance(name, str) else type_
    return _tool_word(word, teller) if isinstance(word, str) else "unknown"


def _tool_word(word: str, teller: Teller) -> str:
    return word if _TOOL_NAME.fullmatch(word) else teller.hashed(word)


def _parts(one: Any, other: Any, teller: Teller) -> Detail:
    """Which parts of the tool differ, where it is more than one."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return {}
    differing = _differing(one, other)
    return {"parts": [teller.name(key) for key in differing][:MOST]} if len(differing) > 1 else {}


def _differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    keys = [*one, *(key for key in other if key not in one)]
    return [
        key
        for key in keys
        if key not in one or key not in other or not items.same_json(one[key], other[key])
    ]


def _included(one: list[Any], other: list[Any], teller: Teller) -> Iterator[Detail]:
    def name(word: Any) -> str:
        known = isinstance(word, str) and word in _INCLUDED
        return str(word) if known else teller.hashed(str(word))

    held, sent = [name(word) for word in one], [name(word) for word in other]
    yield from ({"change": "added", "name": word} for word in sent if word not in held)
    yield from ({"change": "removed", "name": word} for word in held if word not in sent)
    if set(held) == set(sent):
        yield {"change": "reordered"}


def _by_key(
    name: str, one: dict[str, Any], other: dict[str, Any], teller: Teller
) -> Iterator[Detail]:
    """One detail for each key of a setting that differs."""
    for key in _differing(one, other):
        if name == "prompt_cache_options" and key in _DIAGNOSTICS:
            continue
        pair = one.get(key, MISSING), other.get(key, MISSING)
        inner = () if MISSING in pair else items.plain_difference(*pair) or ()
        yield _told(name, (one, other), (key, *inner), teller)


def _whole(name: str, one: Any, other: Any, teller: Teller) -> Detail:
    where: items.Path = ()
    if isinstance(one, list) and isinstance(other, list):
        where = items.plain_difference(one, other) or ()
    return _told(name, (one, other), where, teller)


def _told(name: str, pair: tuple[Any, Any], where: items.Path, teller: Teller) -> Detail:
    place = teller.place(*pair, where, inside_json=False)
    change = str(place.nature) if place.nature in ("added", "removed", "reordered") else "changed"
    detail = {"change": change, **place.as_dict()}
    words = name, *(step for step in where if isinstance(step, str))
    if words[0] in FIELDS and set(words[1:]) <= KEYS and len(words) == len(where) + 1:
        for side, key in zip(pair, ("before", "now"), strict=True):
            if (value := _plain(words, _at(side, where))) is not None:
                detail[key] = value
    return detail


def _at(value: Any, where: items.Path) -> Any:
    for step in where:
        if not isinstance(value, dict) or step not in value:
            return MISSING
        value = value[str(step)]
    return value


def _plain(words: Sequence[str], value: Any) -> str | bool | None:
    """A value that may be told: true, false, and at known places numbers and words."""
    if isinstance(value, bool):
        return value
    if isinstance(value, items.Number):
        known = "/".join(words) in _NUMBERS and len(value.literal) <= 32
        return value.literal if known else None
    if isinstance(value, str) and (place := "/".join(words)) in _WORDS:
        return value if (_MODEL if place == "model" else _WORD).fullmatch(value) else None
    return None
