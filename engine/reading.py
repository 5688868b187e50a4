"""Items decoded for a comparison; what was decoded last is not decoded again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Raw

from engine import items

Reader: TypeAlias = Callable[[Raw], Any]
"""Decodes an item as ``items.parse`` does."""

_LATELY = 8
"""So many values are known at most: those of a whole body take ten times its memory."""


class LatelyRead:
    """A reader that knows the values that it has read last: evidence is told of the same two."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[int, tuple[Raw, Any]] = {}

    def __call__(self, raw: Raw) -> Any:
        known = self._values.get(id(raw))
        if known is None:
            value = items.parse(raw)
            if len(self._values) == _LATELY:
                self._values.clear()
            known = self._values[id(raw)] = raw, value
        return known[1]
