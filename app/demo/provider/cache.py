"""The prompt cache: an exact prefix of what the model is shown, in blocks, for a while.

A token is four bytes of the rendered request. That is not a tokenizer, but it is the same for the
same bytes, grows with them, and an edit changes exactly the blocks behind it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from .items import Item
from .parameters import writes_are_reported
from .wire import Json

BYTES_PER_TOKEN = 4
MINIMUM = 1_024
BLOCK = 128
MINUTE = 60.0
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request as the model is shown it."""

    space: bytes
    """Whatever separates caches: credential, key, model, and the settings before the first byte."""
    blocks: tuple[bytes, ...]
    """Chained digests: block ``n`` stands for everything up to its end."""
    tokens: int
    settings: tuple[tuple[str, bytes], ...] = ()
    """Digests of what stands before the first item, by name."""


@dataclass(frozen=True, slots=True)
class Looked:
    cached: int
    written: int


def tokens_of(size: int) -> int:
    """Tokens of so many rendered bytes, rounded up."""
    return -(-size // BYTES_PER_TOKEN)


def render(credential: str, body: Json, items: Sequence[Item]) -> Prompt:
    reasoning = body.get("reasoning") or {}
    text = body.get("text") or {}
    apart = {
        "model": body.get("model"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "service_tier": body.get("service_tier"),
        "parallel_tool_calls": body.get("parallel_tool_calls"),
        "reasoning_effort": reasoning.get("effort"),
        "text_format": text.get("format"),
        "text_verbosity": text.get("verbosity"),
    }
    shown = {"tools": body.get("tools") or [], "instructions": body.get("instructions") or ""}
    space = json.dumps([credential, *apart.values()]).encode()
    head = json.dumps(list(shown.values())).encode()
    settings = tuple((name, _digest(value)) for name, value in (apart | shown).items())
    return _blocks(space, [head, *(item.rendered for item in items)], settings)


def _digest(value: Any) -> bytes:
    return blake2b(json.dumps(value).encode(), digest_size=8).digest()


def _blocks(
    space: bytes, parts: Sequence[bytes], settings: tuple[tuple[str, bytes], ...]
) -> Prompt:
    size = BLOCK * BYTES_PER_TOKEN
    whole = b"\n".join(parts)
    state = blake2b(digest_size=16)
    blocks = []
    for start in range(0, len(whole) - size + 1, size):
        state.update(whole[start : start + size])
        blocks.append(state.digest())
    return Prompt(
        blake2b(space, digest_size=16).digest(), tuple(blocks), tokens_of(len(whole)), settings
    )


class PromptCache:
    """Entries live ``ttl`` seconds after their last use.

    ``overflow_rpm``: requests per minute on one key that one machine serves; those beyond it meet
    another, colder machine. None: one machine serves all.
    """

    def __init__(self, *, overflow_rpm: int | None = None, limit: int = 400_000) -> None:
        self._expiry: dict[tuple[bytes, int, bytes], float] = {}
        self._arrivals: dict[bytes, list[float]] = {}
        self._overflow_rpm = overflow_rpm
        self._limit = limit

    def look_up(self, prompt: Prompt, body: Json, now: float) -> Looked:
        """Count the cached tokens of the prompt and write the rest. One call is one request."""
        machine = self._machine(prompt.space, now)
        keys = [(prompt.space, machine, block) for block in prompt.blocks]
        hits = 0
        for key in keys:
            if self._expiry.get(key, 0.0) <= now:
                break
            hits += 1
        cached = hits * BLOCK
        if cached < MINIMUM:
            cached = 0
        writable = len(keys) * BLOCK
        if writable < MINIMUM:
            return Looked(0, 0)
        expiry = now + lifetime(body)
        for key in keys:
            self._expiry.pop(key, None)  # to the end: the order is the order of use
            self._expiry[key] = expiry
        while len(self._expiry) > self._limit:
            del self._expiry[next(iter(self._expiry))]
        return Looked(cached, writable - cached)

    def clear(self) -> None:
        """Forget everything, as if the machines had been replaced."""
        self._expiry.clear()

    def _machine(self, space: bytes, now: float) -> int:
        if self._overflow_rpm is None:
            return 0
        arrivals = [t for t in self._arrivals.get(space, ()) if t > now - MINUTE]
        self._arrivals[space] = [*arrivals, now]
        return len(arrivals) // self._overflow_rpm


def lifetime(body: Json) -> float:
    """Seconds that an entry lives after its last use."""
    options = body.get("prompt_cache_options") or {}
    if options.get("ttl") == "12h":
        return 12 * HOUR
    if writes_are_reported(str(body.get("model"))):
        return 30 * MINUTE
    if body.get("prompt_cache_retention") == "24h":
        return 24 * HOUR
    return 10 * MINUTE
