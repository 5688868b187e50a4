"""Which differences of two items a freeze policy allows: an oracle, written without the engine.

Plain and slow. A text is read character by character and written again without the members that a
key names. ``same_under`` says whether a client's item is still the one that the provider holds;
``written_without`` is what both come down to.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from app.demo.provider.oracle import Literal, same_item, strict

Json: TypeAlias = dict[str, Any]
Unit: TypeAlias = tuple[str, str]
"""A character, and how it is written: in a string inside a string ``"`` is ``\\"``."""
_DEEPEST = 4
_BLANK = " \t\n\r"


def same_under(keys: Collection[str], held: str, sent: str, *, made: bool = False) -> bool:
    """Whether two items, given as JSON texts, are the same one where ``keys`` are frozen.

    ``made``: the provider made the held one.
    """
    if same_item(held, sent, made=made):
        return True
    a, b = strict(held), strict(sent)
    if not (_is_output(a) and _is_output(b)):
        return False
    return same_item(_text(_thawed(a, keys)), _text(_thawed(b, keys)), made=made)


@lru_cache(maxsize=1 << 14)
def one_form(keys: Collection[str], text: str) -> str:
    """The form of an item in which all those are equal that are the same where ``keys`` are frozen.

    ``keys`` as a tuple.
    """
    if "_output" not in text:
        return text
    item = strict(text)
    return _text(_thawed(item, keys)) if _is_output(item) else text


def _is_output(item: Json) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind.endswith("_output") and _name(kind) in item


def _name(kind: str) -> str:
    return {"program_output": "result"}.get(kind, "output")


def _thawed(item: Json, keys: Collection[str]) -> Json:
    name = _name(item["type"])
    return {**item, name: _value(item[name], keys)}


def _value(value: Any, keys: Collection[str]) -> Any:
    if isinstance(value, dict):
        return {key: _value(each, keys) for key, each in value.items() if key not in keys}
    if isinstance(value, list):
        return [_value(each, keys) for each in value]
    return written_without(keys, value) if isinstance(value, str) else value


def _text(value: Any) -> str:
    """As JSON, numbers as they were written."""
    if isinstance(value, Literal):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_text(each) for each in value) + "]"
    return json.dumps(value)


def written_without(keys: Collection[str], text: str) -> str:
    """The text without the named members; as it is where it is no JSON object or list."""
    written = _rewritten([(char, char) for char in text], keys, _DEEPEST)
    return text if written is None else written


def _rewritten(units: Sequence[Unit], keys: Collection[str], deep: int) -> str | None:
    text = "".join(char for char, _ in units)
    if deep == 0 or not text.strip(_BLANK).startswith(("{", "[")) or not _is_plain_json(text):
        return None
    return _Writer(units, keys, deep).whole()


def _is_plain_json(text: str) -> bool:
    def once(pairs: list[tuple[str, Any]]) -> None:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a key stands twice")

    try:
        json.loads(text, object_pairs_hook=once, parse_int=str)
    except ValueError:
        return False
    return True


@dataclass
class _Member:
    before: str
    """Blanks before it, and behind it."""
    written: str
    behind: str
    is_named: bool


class _Writer:
    def __init__(self, units: Sequence[Unit], keys: Collection[str], deep: int) -> None:
        self.units, self.keys, self.deep, self.at = units, keys, deep, 0

    def whole(self) -> str:
        return self.blanks() + self.value() + self.blanks()

    @property
    def char(self) -> str:
        return self.units[self.at][0] if self.at < len(self.units) else ""

    def take(self) -> str:
        self.at += 1
        return self.units[self.at - 1][1]

    def blanks(self) -> str:
        taken = ""
        while self.char and self.char in _BLANK:
            taken += self.take()
        return taken

    def value(self) -> str:
        if self.char == "{":
            return self.members()
        if self.char == "[":
            return self.elements()
        if self.char == '"':
            return self.string()[0]
        taken = ""
        while self.char and self.char not in ",]}" + _BLANK:
            taken += self.take()
        return taken

    def elements(self) -> str:
        written = self.take() + self.blanks()
        while self.char != "]":
            written += self.value() + self.blanks()
            if self.char == ",":
                written += self.take() + self.blanks()
        return written + self.take()

    def members(self) -> str:
        opening, found = self.take(), list[_Member]()
        inner = self.blanks()
        while self.char != "}":
            key, name = self.string(rewrite=False)
            colon = self.blanks() + self.take() + self.blanks()
            written = key + colon + self.value()
            found.append(_Member(inner, written, self.blanks(), name in self.keys))
            if self.char == ",":
                self.take()
                inner = self.blanks()
        closing = self.take()
        if not found:
            return opening + inner + closing
        if all(member.is_named for member in found):
            return opening + closing
        text = ""
        for number, member in enumerate(found):
            if not member.is_named:
                comma = found[number - 1].behind + "," + member.before
                text += (comma if text else found[0].before) + member.written
        return opening + text + found[-1].behind + closing

    def string(self, *, rewrite: bool = True) -> tuple[str, str]:
        """As it is written from now on, and what it says."""
        opening, inside = self.take(), list[Unit]()
        while self.char != '"':
            inside.append(self.letter())
        written = _rewritten(inside, self.keys, self.deep - 1) if rewrite else None
        if written is None:
            written = "".join(spelled for _, spelled in inside)
        return opening + written + self.take(), "".join(char for char, _ in inside)

    def letter(self) -> Unit:
        """One character of a string; half a surrogate pair is read with its other half."""
        escape, spelled = self.escape()
        if "\ud800" <= json.loads(f'"{escape}"') <= "\udbff" and len(escape) == 6:
            here = self.at
            if self.char == "\\":
                other, more = self.escape()
                pair = json.loads(f'"{escape}{other}"')
                if len(pair) == 1:
                    return pair, spelled + more
            self.at = here
        return json.loads(f'"{escape}"'), spelled

    def escape(self) -> tuple[str, str]:
        count = 1
        if self.char == "\\":
            count = 6 if self.units[self.at + 1][0] == "u" else 2
        chars = "".join(char for char, _ in self.units[self.at : self.at + count])
        return chars, "".join(self.take() for _ in range(count))
