"""Token counts of a response."""

from __future__ import annotations

from collections.abc import Sequence

from .cache import Looked, Prompt, tokens_of
from .items import kind_of
from .parameters import writes_are_reported
from .wire import Json, dumps


def output_tokens(items: Sequence[Json]) -> tuple[int, int]:
    """(all, of which reasoning) tokens of the output items."""
    total = reasoning = 0
    for value in items:
        tokens = tokens_of(len(dumps(_visible(value)).encode()))
        total += tokens
        if kind_of(value) == "reasoning":
            reasoning += tokens
    return total, reasoning


def _visible(value: Json) -> Json:
    return {k: v for k, v in value.items() if k not in ("id", "status", "type", "call_id")}


def usage_of(model: str, prompt: Prompt, looked: Looked, items: Sequence[Json]) -> Json:
    """``cache_write_tokens`` is there only for models whose writes are billed."""
    total, reasoning = output_tokens(items)
    details = {"cached_tokens": looked.cached}
    if writes_are_reported(model):
        details["cache_write_tokens"] = looked.written
    return {
        "input_tokens": prompt.tokens,
        "input_tokens_details": details,
        "output_tokens": total,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": prompt.tokens + total,
    }
