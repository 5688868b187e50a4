"""How each known client writes its own items, and gives back what it was answered.

Shapes of the real clients, seen late in 2026: Codex (custom and built-in provider), the openai SDK
(objects, and ``model_dump``), the Agents SDK, pi, opencode, and one that uses the short spelling.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Spelling = Callable[[Json], Json | None]

_KNOWN = frozenset(
    {
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "web_search_call",
        "compaction",
    }
)


def _ordered(item: Json, *names: str) -> Json:
    first = {name: item[name] for name in names if name in item}
    return {**first, **{name: value for name, value in item.items() if name not in first}}


def _without(item: Json, *names: str) -> Json:
    return {name: value for name, value in item.items() if name not in names}


def _parts(item: Json, *dropped: str) -> Json:
    """The message with its parts freed of these keys."""
    if not isinstance(item.get("content"), list):
        return item
    return {**item, "content": [_without(part, *dropped) for part in item["content"]]}


def _compact_arguments(item: Json) -> Json:
    """As a client that parses the arguments of calls and writes them anew."""
    if "arguments" not in item:
        return item
    try:
        value = json.loads(item["arguments"])
    except ValueError:
        return item
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return {**item, "arguments": text}


def codex(item: Json) -> Json | None:
    """Keeps ids and texts; drops kinds that it does not know, and messages without text."""
    kind = item.get("type")
    if kind not in _KNOWN:
        return None
    if kind == "message":
        parts = [part for part in item["content"] if part["type"] != "refusal"]
        if not parts:
            return None
        return _ordered({**item, "content": parts}, "type", "status", "id", "role", "content")
    if kind == "reasoning":
        return {**_ordered(item, "type", "id", "summary"), "content": None}
    if kind == "web_search_call":
        item = {**item, "action": _without(item["action"], "sources")}
    return _ordered(item, "type", "status", "id", "name", "arguments", "call_id")


def codex_built_in(item: Json) -> Json | None:
    """The same with its own metadata on every item."""
    given = codex(item)
    if given is None:
        return None
    return {**given, "internal_chat_message_metadata_passthrough": {"turn_id": "t1"}}


def sdk_object(item: Json) -> Json:
    """The objects of the SDK: all values, in the order of its models."""
    return dict(sorted(item.items()))


def sdk_dump(item: Json) -> Json:
    """``model_dump()``: what a model has and the answer had not is null."""
    if item.get("type") == "reasoning":
        return {
            "id": item["id"],
            "content": None,
            "status": None,
            "encrypted_content": None,
            **item,
        }
    if item.get("type") in ("function_call", "message"):
        return {"namespace" if item["type"] == "function_call" else "phase": None, **item}
    return dict(item)


def agents_sdk(item: Json) -> Json:
    return _ordered(item, "arguments", "call_id", "name", "type", "id", "status")


def pi(item: Json) -> Json:
    """Arguments anew, no status on calls, no logprobs."""
    if item.get("type") == "function_call":
        return _compact_arguments(_without(item, "status"))
    return _parts(item, "logprobs")


def opencode(item: Json) -> Json:
    """The loosest: no ids, no status, no annotations, no type on messages, arguments anew."""
    given = _compact_arguments(_parts(_without(item, "id", "status"), "annotations", "logprobs"))
    return _without(given, "type") if given.get("type") == "message" else given


def short(item: Json) -> Json:
    """The short spelling of a message."""
    content = item.get("content")
    if item.get("type") == "message" and len(content or ()) == 1 and "text" in content[0]:
        return {**item, "content": content[0]["text"]}
    return item


@dataclass(frozen=True, slots=True)
class Client:
    """A client by its habits. ``transports``: those it is seen with."""

    name: str
    spelled: Spelling
    transports: tuple[str, ...]
    fields: Json
    typed: bool = False
    """Its own messages have type, id and parts."""
    parts: bool = False
    """Its own messages have their text in parts."""
    string_input: bool = False
    """A first message is sent as a string."""
    anchors: bool = False
    """It may name the response before and send only what is new."""
    warms_up: bool = False


_INCLUDE = {"include": ["reasoning.encrypted_content"]}
CLIENTS = (
    Client(
        "codex",
        codex,
        ("sse", "ws"),
        {**_INCLUDE, "store": False, "tool_choice": "auto", "parallel_tool_calls": True},
        typed=True,
        anchors=True,
        warms_up=True,
    ),
    Client(
        "codex_built_in",
        codex_built_in,
        ("ws",),
        {
            **_INCLUDE,
            "store": False,
            "reasoning": {"effort": "medium"},
            "text": {"verbosity": "low"},
        },
        typed=True,
        anchors=True,
        warms_up=True,
    ),
    Client(
        "openai_objects",
        sdk_object,
        ("http", "sse", "ws"),
        {"instructions": "be brief"},
        string_input=True,
        anchors=True,
    ),
    Client(
        "openai_dump",
        sdk_dump,
        ("http", "sse"),
        {**_INCLUDE, "store": False, "instructions": "be brief"},
        string_input=True,
    ),
    Client(
        "agents_sdk",
        agents_sdk,
        ("http", "ws"),
        {"include": [], "instructions": "probe"},
        anchors=True,
    ),
    Client(
        "pi",
        pi,
        ("sse", "ws"),
        {
            **_INCLUDE,
            "store": False,
            "max_output_tokens": 8000,
            "reasoning": {"effort": "medium", "summary": "auto"},
        },
        parts=True,
        anchors=True,
    ),
    Client(
        "opencode",
        opencode,
        ("sse",),
        {**_INCLUDE, "store": False, "tool_choice": "auto"},
        parts=True,
    ),
    Client("short", short, ("http", "sse"), {**_INCLUDE, "store": False, "temperature": 1.0}),
)


def said(client: Client, text: str, number: int) -> Json:
    """A message of the user."""
    if client.typed:
        content = [{"type": "input_text", "text": text}]
        return {"type": "message", "id": f"msg_u{number}", "role": "user", "content": content}
    if client.parts:
        return {"role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"role": "user", "content": text}


def answered(client: Client, call: Json, output: Any, number: int) -> Json:
    """What a tool gave for the call."""
    kind = call["type"] + "_output"
    if client.typed:
        prefix = "fco" if call["type"] == "function_call" else "ctco"
        return {
            "type": kind,
            "id": f"{prefix}_{number}",
            "call_id": call["call_id"],
            "output": output,
        }
    return {"call_id": call["call_id"], "output": output, "type": kind}
