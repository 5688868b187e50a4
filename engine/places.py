"""The place of a difference: pointer, offset, lengths and digests, and no word of the values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from engine import digests, items
from engine.model import Nature
from engine.nature import first_difference, of_texts

MISSING: Any = object()
"""What stands at a place that one of the values does not have."""
_COMPARED = 4_000
"""Elements of two lists that are compared each with each, to see what moved."""
_DEPTH = 4
"""JSON in a string in JSON in a string …: how far it is followed."""


@dataclass(frozen=True, slots=True)
class Place:
    """The first difference of two values. Offsets and lengths count characters, or elements."""

    path: str
    offset: int | None
    line: int | None
    """From 1; None where neither text has a second line."""
    length_before: int | None
    length_now: int | None
    digest_before: str | None
    digest_now: str | None
    nature: Nature

    def as_dict(self) -> dict[str, Any]:
        """What is known of it, under the names of ``field_details`` (docs/ledger.md)."""
        told = {
            "path": self.path or None,
            "line": self.line,
            "offset": self.offset,
            "length_before": self.length_before,
            "length_now": self.length_now,
            "digest_before": self.digest_before,
            "digest_now": self.digest_now,
            "nature": str(self.nature),
        }
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Teller:
    """How keys and values are told: known keys by name, all else as a digest under ``key``."""

    key: bytes
    shown: Collection[str]
    """The protocol's keys, and those that the setting ``visible_keys`` names."""

    def pointer(self, where: items.Path) -> str:
        return "".join(f"/{step if isinstance(step, int) else self.name(step)}" for step in where)

    def name(self, step: str) -> str:
        """One key as a step of a JSON pointer."""
        if step in self.shown:
            return step.replace("~", "~0").replace("/", "~1")
        return self.hashed(step)

    def hashed(self, name: str) -> str:
        return "~" + digests.mac(self.key, "key", name, size=4).hex()

    def digest(self, value: Any) -> str | None:
        """Equal for values that are equal as JSON; None for a value that is not there.

        Values nested too deeply to be written down have one digest in common.
        """
        if value is MISSING:
            return None
        try:
            text = value if isinstance(value, str) else canonical(value)
        except RecursionError:
            text = "too deep"
        return digests.mac(self.key, text, size=8).hex()

    def place(self, before: Any, now: Any, where: items.Path, *, inside_json: bool = True) -> Place:
        """The difference of two values that part at ``where``.

        ``inside_json``: a string that holds JSON on both sides is followed to the place in it.
        """
        where, one, other, nature = _told(before, now, where)
        depth = 0
        while inside_json and depth < _DEPTH and (inner := _inside(one, other)) is not None:
            parsed, step = inner
            if step is None:
                nature = Nature.RESERIALIZED
                break
            step, one, other, nature = _told(*parsed, step)
            where, depth = (*where, *step), depth + 1
        offset = line = None
        texts = isinstance(one, str) and isinstance(other, str)
        if texts and nature is not Nature.REORDERED:
            offset = first_difference(one, other)
            if "\n" in one or "\n" in other:
                line = one.count("\n", 0, offset) + 1
        return Place(
            path=self.pointer(where),
            offset=offset,
            line=line,
            length_before=_length(one),
            length_now=_length(other),
            digest_before=self.digest(one),
            digest_now=self.digest(other),
            nature=nature,
        )


def canonical(value: Any) -> str:
    """One text for all spellings of a JSON value; numbers keep their literals."""
    return json.dumps(value, sort_keys=True, default=_literal, ensure_ascii=True)


def _literal(number: Any) -> Mapping[str, str]:
    if isinstance(number, items.Number):
        return {"number": number.literal}
    raise TypeError(f"not JSON: {type(number).__name__}")


def value_at(value: Any, where: items.Path) -> Any:
    """What stands there; the short spelling of a message's content counts as its one text part."""
    for step in where:
        if isinstance(value, str) and step == 0:
            value = {"type": "output_text", "text": value}
            continue
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return value


def _told(before: Any, now: Any, where: items.Path) -> tuple[items.Path, Any, Any, Nature]:
    """The place, what stands there, and the nature of the change.

    A list that lost or won elements, or has them in another order, is told at the first of them.
    """
    for depth, step in enumerate(where):
        if not isinstance(step, int):
            continue
        one, other = (value_at(side, where[:depth]) for side in (before, now))
        if not isinstance(one, list) or not isinstance(other, list):
            continue
        if (nature := _of_lists(one, other, step)) is not None:
            first = one[step] if nature is not Nature.ADDED else MISSING
            second = other[step] if nature is not Nature.REMOVED else MISSING
            return where[: depth + 1], first, second, nature
    one, other = value_at(before, where), value_at(now, where)
    return where, one, other, _nature(one, other)


def _of_lists(one: list[Any], other: list[Any], at: int) -> Nature | None:
    """None where an element was changed in its place. ``at`` is the first that differs."""
    if len(one) + len(other) > _COMPARED:
        return None
    try:
        held, sent = ([canonical(element) for element in side[at:]] for side in (one, other))
    except RecursionError:
        return None
    if len(held) == len(sent):
        return Nature.REORDERED if Counter(held) == Counter(sent) else None
    if len(held) > len(sent):
        return Nature.REMOVED if held[len(held) - len(sent) :] == sent else None
    return Nature.ADDED if sent[len(sent) - len(held) :] == held else None


def _inside(one: Any, other: Any) -> tuple[tuple[Any, Any], items.Path | None] | None:
    """Both strings decoded, and where they part (None: nowhere); None if they hold no JSON."""
    if not isinstance(one, str) or not isinstance(other, str) or one == other:
        return None
    try:
        pair = items.parse(one), items.parse(other)
        where = items.plain_difference(*pair)
    except (ValueError, RecursionError):
        return None
    objects = all(isinstance(side, dict) for side in pair)
    lists = all(isinstance(side, list) for side in pair)
    return (pair, where) if objects or lists else None


def _nature(one: Any, other: Any) -> Nature:
    if one is MISSING or one is None:
        return Nature.ADDED
    if other is MISSING or other is None:
        return Nature.REMOVED
    if isinstance(one, str) and isinstance(other, str):
        return of_texts(one, other)
    if isinstance(one, items.Number) and isinstance(other, items.Number):
        return Nature.NUMBER
    return Nature.REWRITTEN if type(one) is type(other) else Nature.TYPE


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, str | list | dict) else None
