"""The events that announce, stream and finish one output item, and the response around them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from .cache import tokens_of
from .items import kind_of
from .wire import Json

CHUNK = 24
"""Characters per delta."""

TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})

Weighted = tuple[int, Json]
"""Output tokens that were generated before this event could be sent, and the event."""


def item_events(value: Json, index: int) -> Iterator[Weighted]:
    """``output_item.added`` … ``output_item.done`` of one item."""
    kind = kind_of(value)
    shell = {"output_index": index, "item_id": value.get("id")}
    yield 0, _item("added", _announced(value, kind), index)
    if kind == "message":
        yield from _message(value, shell)
    elif kind == "reasoning":
        yield from _reasoning(value, shell)
    elif kind == "function_call":
        yield from _text(
            "response.function_call_arguments", "arguments", value.get("arguments"), shell
        )
    elif kind == "custom_tool_call":
        yield from _text("response.custom_tool_call_input", "input", value.get("input"), shell)
    yield 0, _item("done", value, index)


def _item(what: str, value: Json, index: int) -> Json:
    return {"type": f"response.output_item.{what}", "output_index": index, "item": value}


def _announced(value: Json, kind: str) -> Json:
    """The item before any of it was generated."""
    out = copy.deepcopy(value)
    if "status" in out:
        out["status"] = "in_progress"
    if kind == "message":
        out["content"] = []
    elif kind == "reasoning":
        out["summary"] = []
        out.pop("encrypted_content", None)
    elif kind == "function_call":
        out["arguments"] = ""
    elif kind == "custom_tool_call":
        out["input"] = ""
    return out


def _message(value: Json, shell: Json) -> Iterator[Weighted]:
    content = value.get("content")
    for part_index, part in enumerate(content if isinstance(content, list) else ()):
        at = {**shell, "content_index": part_index}
        refusal = part.get("type") == "refusal"
        field, name = ("refusal", "refusal") if refusal else ("text", "output_text")
        empty = {**part, field: ""}
        yield 0, {"type": "response.content_part.added", **at, "part": empty}
        extra: Json = {} if refusal else {"logprobs": []}
        yield from _text(f"response.{name}", field, part.get(field), at, extra)
        yield 0, {"type": "response.content_part.done", **at, "part": part}


def _reasoning(value: Json, shell: Json) -> Iterator[Weighted]:
    ciphertext = value.get("encrypted_content")
    thought = tokens_of(len(ciphertext)) if isinstance(ciphertext, str) else 0
    summary = value.get("summary")
    for part_index, part in enumerate(summary if isinstance(summary, list) else ()):
        at = {**shell, "summary_index": part_index}
        name = "response.reasoning_summary_part"
        yield thought, {"type": f"{name}.added", **at, "part": {**part, "text": ""}}
        thought = 0
        yield from _text("response.reasoning_summary_text", "text", part.get("text"), at)
        yield 0, {"type": f"{name}.done", **at, "part": part}
    content = value.get("content")
    for part_index, part in enumerate(content if isinstance(content, list) else ()):
        at = {**shell, "content_index": part_index}
        yield from _text("response.reasoning_text", "text", part.get("text"), at)


def _text(
    name: str, field: str, text: Any, at: Json, extra: Json | None = None
) -> Iterator[Weighted]:
    if not isinstance(text, str):
        return
    more = extra or {}
    for start in range(0, len(text), CHUNK):
        delta = text[start : start + CHUNK]
        weight = tokens_of(len(delta.encode(errors="surrogatepass")))
        yield weight, {"type": f"{name}.delta", **at, "delta": delta, **more}
    yield 0, {"type": f"{name}.done", **at, field: text, **more}


def response_object(
    body: Json,
    *,
    response_id: str,
    created_at: float,
    status: str,
    output: list[Json],
    usage: Json | None,
) -> Json:
    """The ``response`` of an event, a JSON answer or a stored response."""
    return {
        "id": response_id,
        "object": "response",
        "created_at": int(created_at),
        "status": status,
        "background": bool(body.get("background", False)),
        "completed_at": int(created_at) if status == "completed" else None,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": body.get("max_tool_calls"),
        "metadata": body.get("metadata") or {},
        "model": body.get("model"),
        "output": output,
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "reasoning": {"effort": None, "summary": None, **(body.get("reasoning") or {})},
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": body.get("service_tier") or "default",
        "store": body.get("store") is not False,
        "temperature": body.get("temperature", 1.0),
        "text": {"format": {"type": "text"}, **(body.get("text") or {})},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_logprobs": body.get("top_logprobs", 0),
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation") or "disabled",
        "usage": usage,
        "user": body.get("user"),
    }
