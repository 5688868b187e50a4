"""Bodies that stay below the limit of webhooks, whatever their texts hold. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.alerts.words import clean, cut

MOST_BYTES = 20_000
"""A body is smaller than this (Standard Webhooks asks for no more)."""


@dataclass(frozen=True, slots=True)
class Room:
    """How long things may be in one attempt to write a body."""

    text: int
    """Characters of a name or a sentence."""
    link: int
    """Characters of a link; half a link leads somewhere else, so a longer one is left out."""

    def line(self, text: str) -> str:
        """In one line, printable, and visibly cut where it is too long."""
        return cut(clean(text), self.text)

    def lines(self, texts: list[str]) -> str:
        return "\n".join(self.line(text) for text in texts)

    def url(self, url: str) -> str | None:
        return url if url and len(url) <= self.link else None


_ROOMS = (Room(1_000, 3_000), Room(400, 2_000), Room(160, 1_000), Room(60, 500), Room(20, 200))


def fit(build: Callable[[Room], dict[str, Any]]) -> bytes:
    """The body with the most room that stays below ``MOST_BYTES``.

    ``build`` bounds by its room every text that comes from outside.
    """
    for room in _ROOMS:
        body = json.dumps(
            build(room), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
        if len(body) < MOST_BYTES:
            return body
    raise AssertionError("a body has texts that its room does not bound")


def number(value: float | None) -> float | None:
    """JSON knows neither NaN nor infinity; such a value is unknown."""
    if value is None or not math.isfinite(value):
        return None
    return value
