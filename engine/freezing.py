"""A freeze policy: an old tool output may differ in some JSON keys and is still the one that the
model has seen (DESIGN 4.5).

A harness hangs metadata on the newest tool result and takes it off the older ones, or keeps it up
to date in all of them. The provider holds the output as the model saw it. With ``freeze`` naming
the key, such an output is treated as the seen one: nothing of it is sent again.

The keys count at any depth of an output, also inside texts that hold JSON. All else has to be the
same: values under the rules for items, and a text to the letter, once the named members are cut out
of it, each with one comma. So both are brought into one form, and being the same is transitive.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from engine import items

Keys = Collection[str]

_DEPTH = 4
"""JSON in a string in JSON in a string …: how far it is followed; evidence goes no deeper."""


def difference(held: Any, now: Any, *, model_made: bool, freeze: Keys = ()) -> items.Path | None:
    """Where two decoded items part, apart from the keys of ``freeze``; None if they are the same.

    The place is the same in both items as they are and in what ``seen`` makes of them.
    """
    where = items.difference(held, now, model_made=model_made)
    if not where or not freeze or not (is_output(held) and is_output(now)):
        return where
    return items.difference(seen(held, freeze), seen(now, freeze), model_made=model_made)


def is_output(item: Any) -> bool:
    """Whether the item is what a tool gave back: the only kind that a policy may freeze."""
    return isinstance(item, Mapping) and _content(item) is not None


def _content(item: Mapping[str, Any]) -> str | None:
    """The key under which an output has what the tool gave back; None for all other items."""
    type_ = item.get("type")
    if not isinstance(type_, str) or not type_.endswith("_output"):
        return None
    name = "result" if type_ == "program_output" else "output"
    return name if name in item else None


def seen(item: Any, freeze: Keys) -> Any:
    """The item without what the policy ignores; equal for all that it calls the same."""
    name = _content(item) if freeze and isinstance(item, Mapping) else None
    if name is None:
        return item
    try:
        return {**item, name: _without(item[name], freeze)}
    except RecursionError:
        return item


def _without(value: Any, freeze: Keys) -> Any:
    if isinstance(value, dict):
        return {key: _without(each, freeze) for key, each in value.items() if key not in freeze}
    if isinstance(value, list):
        return [_without(each, freeze) for each in value]
    return cut(value, freeze) if isinstance(value, str) else value


def cut(text: str, freeze: Keys) -> str:
    """A text that holds a JSON object or list, without the members that ``freeze`` names.

    Every other text is as it was; so is one in which an object names a key twice.
    """
    if not _may_name(text, freeze):
        return text
    return _but_for(text, _cuts(text, freeze, _DEPTH))


_SIMPLE = re.compile(r"[A-Za-z0-9_.:@$ -]+")


def _may_name(text: str, freeze: Keys) -> bool:
    """A key that needs no escapes stands there as it is, if it does not stand there in escapes."""
    if text.lstrip(" \t\n\r")[:1] not in ("{", "["):
        return False
    return "\\u" in text or any(key in text or not _SIMPLE.fullmatch(key) for key in freeze)


def _but_for(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, at = list[str](), 0
    for start, end in sorted(spans):
        pieces.append(text[at:start])
        at = end
    return "".join((*pieces, text[at:]))


_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_UNIT = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]",
    re.DOTALL,
)
"""What one character of a string may be spelled as."""


def _cuts(text: str, freeze: Keys, depth: int) -> list[tuple[int, int]]:
    """What is to be cut out of a text, as offsets [start, end); nothing where it is no JSON."""
    try:
        items.parse(text)  # which also finds keys that stand twice
        return _Reader(text, freeze, depth).spans()
    except (ValueError, RecursionError):
        return []


def _cuts_inside(literal: str, freeze: Keys, depth: int) -> list[tuple[int, int]]:
    """The same for the text of a string literal; offsets count from its opening quote."""
    text = _string(literal)
    if depth == 0 or not _may_name(text, freeze):
        return []
    spans = _cuts(text, freeze, depth)
    if not spans or len(text) == len(literal) - 2:
        return [(start + 1, end + 1) for start, end in spans]
    places = [unit.start() for unit in _UNIT.finditer(literal, 1, len(literal) - 1)]
    places.append(len(literal) - 1)
    return [(places[start], places[end]) for start, end in spans]


def _string(literal: str) -> str:
    return json.loads(literal) if "\\" in literal else literal[1:-1]


class _Reader:
    """One pass over a text that is known to be JSON."""

    def __init__(self, text: str, freeze: Keys, depth: int) -> None:
        self._text, self._freeze, self._depth = text, freeze, depth
        self._tokens: Iterator[re.Match[str]] = _TOKEN.finditer(text)
        self._spans: list[tuple[int, int]] = []

    def spans(self) -> list[tuple[int, int]]:
        self._value(next(self._tokens))
        return self._spans

    def _value(self, token: re.Match[str]) -> int:
        """Read the value that begins with this token; where it ends."""
        match self._text[token.start()]:
            case "{":
                return self._object(token.end())
            case "[":
                return self._list()
            case '"':
                at, found = token.start(), _cuts_inside(token[0], self._freeze, self._depth - 1)
                self._spans.extend((at + start, at + end) for start, end in found)
        return token.end()

    def _list(self) -> int:
        while (token := next(self._tokens))[0] != "]":
            if token[0] != ",":
                self._value(token)
        return token.end()

    def _object(self, opened: int) -> int:
        ends, starts, frozen = [opened], list[int](), list[bool]()
        while (token := next(self._tokens))[0] != "}":
            if token[0] == ",":
                continue
            key = _string(token[0])
            next(self._tokens)  # the colon
            before = len(self._spans)
            starts.append(token.start())
            ends.append(self._value(next(self._tokens)))
            frozen.append(key in self._freeze)
            if frozen[-1]:
                del self._spans[before:]
        if frozen and all(frozen):
            self._spans.append((opened, token.start()))
            return token.end()
        # The first member that stays takes the place of those before it; the comma goes with them.
        first = frozen.index(False) if frozen else 0
        if first:
            self._spans.append((starts[0], starts[first]))
        self._spans.extend(
            (ends[number], ends[number + 1])
            for number in range(first, len(frozen))
            if frozen[number]
        )
        return token.end()
