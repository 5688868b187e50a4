"""What a model answers: a reply is a list of output items, a responder chooses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .wire import Json


@dataclass(frozen=True, slots=True)
class Reply:
    """``verbatim``: send the items exactly as given; else missing ids and statuses are filled."""

    items: tuple[Json, ...]
    verbatim: bool = False
    usage: Json | None = None
    """Instead of the usage that the cache model computes."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the model meets it."""

    body: Json
    transcript: tuple[Json, ...]
    """Everything held: the previous response's transcript and the request's input."""
    input: tuple[Json, ...]
    """The items of this request alone."""
    new_id: Callable[[str], str] = field(repr=False)
    transport: str = "http"


class Responder(Protocol):
    def __call__(self, asked: Asked, /) -> Reply: ...


class Replies:
    """Gives each request the next of a list of replies, then asks ``after``.

    A reply is a ``Reply``, a list of items, one item, or a text (one assistant message).
    """

    def __init__(
        self, replies: Iterable[Reply | Sequence[Json] | Json | str], after: Responder | None = None
    ) -> None:
        self._replies = [reply_of(reply) for reply in replies]
        self._after = after

    def add(self, reply: Reply | Sequence[Json] | Json | str) -> None:
        self._replies.append(reply_of(reply))

    def __call__(self, asked: Asked, /) -> Reply:
        if self._replies:
            return self._replies.pop(0)
        if self._after is None:
            raise LookupError("the list of replies is used up; give more, or a responder `after`")
        return self._after(asked)


def reply_of(reply: Reply | Sequence[Json] | Json | str) -> Reply:
    if isinstance(reply, Reply):
        return reply
    if isinstance(reply, str):
        return Reply((message(reply),))
    if isinstance(reply, dict):
        return Reply((reply,))
    return Reply(tuple(reply))


def message(text: str, *, phase: str | None = None, **more: Any) -> Json:
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    out: Json = {"type": "message", "role": "assistant", "content": [part]}
    if phase is not None:
        out["phase"] = phase
    return {**out, **more}


def refusal(text: str, **more: Any) -> Json:
    part = {"type": "refusal", "refusal": text}
    return {"type": "message", "role": "assistant", "content": [part], **more}


def reasoning(encrypted: str | None = None, summary: Sequence[str] = (), **more: Any) -> Json:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    out: Json = {"type": "reasoning", "summary": parts}
    if encrypted is not None:
        out["encrypted_content"] = encrypted
    return {**out, **more}


def function_call(name: str, arguments: Any, call_id: str, **more: Any) -> Json:
    """``arguments`` that are not a string are written as JSON, spaced as the provider does."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {
        "type": "function_call",
        "arguments": text,
        "call_id": call_id,
        "name": name,
        **more,
    }


def custom_tool_call(name: str, text: str, call_id: str, **more: Any) -> Json:
    return {
        "type": "custom_tool_call",
        "call_id": call_id,
        "input": text,
        "name": name,
        **more,
    }


def unknown_item(**more: Any) -> Json:
    """An item of a type that no client knows."""
    return {"type": "hologram_call", "projection": "front", **more}
