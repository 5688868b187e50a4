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
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from engine import items

Keys: TypeAlias = tuple[str, ...]
"""JSON keys, as a policy names them."""

_DEPTH = 4
"""JSON in a string in JSON in a string …: how far it is followed; evidence goes no deeper."""


def difference(held: Any, now: Any, *, model_made: bool, freeze: Keys = ()) -> items.Path | None:
    """Where two decoded items part, apart from the keys of ``freeze``; None if they are the same.

    The place is the same in both items as they are and in what ``seen`` makes of them.
    """
    return items.difference(seen(held, freeze), seen(now, freeze), model_made=model_made)


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
    if not _looks_like_json(text) or _hint(freeze).search(text) is None:
        return text
    return _but_for(text, _cuts(text, freeze, _DEPTH))


def _looks_like_json(text: str) -> bool:
    return text.lstrip(" \t\n\r")[:1] in ("{", "[")


_SIMPLE = re.compile(r"[A-Za-z0-9_.:@$ -]+")


@lru_cache(maxsize=64)
def _hint(freeze: Keys) -> re.Pattern[str]:
    """Found in every string that names one of the keys; a key in escapes has a backslash and u."""
    if all(map(_SIMPLE.fullmatch, freeze)):
        return re.compile("|".join((*map(re.escape, freeze), r"\\u")))
    return re.compile('"')


def _but_for(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, at = list[str](), 0
    for start, end in spans:
        pieces.append(text[at:start])
        at = end
    return "".join((*pieces, text[at:]))


_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_UNIT = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]"
)
"""What one character of a string may be spelled as."""
_SPACE = re.compile(r"[ \t\n\r]*+")


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise items.AmbiguousJSON


# A number may have more digits than Python turns into an integer.
_check = json.JSONDecoder(object_pairs_hook=_once, parse_int=str).decode
_skip_value = json.JSONDecoder(parse_int=str).raw_decode


def _cuts(text: str, freeze: Keys, depth: int) -> list[tuple[int, int]]:
    """What is to be cut out of a text, as offsets [start, end); nothing where it is no JSON."""
    try:
        _check(text)
        return [*_runs(text, freeze, depth)]
    except (ValueError, RecursionError):
        return []


def _runs(text: str, freeze: Keys, depth: int) -> Iterator[tuple[int, int]]:
    """One pass over a text that is known to be JSON, from one string that matters to the next."""
    at, hint = 0, _hint(freeze)
    while (found := hint.search(text, at)) is not None:
        token = _string_at(text, at, found.start())
        if token is None:
            at = found.end()
            continue
        at, literal = token.end(), token[0]
        colon = _space(text, at)
        if text[colon : colon + 1] != ":":
            start = token.start()
            cuts = _cuts_inside(literal, freeze, depth - 1)
            yield from ((start + one, start + other) for one, other in cuts)
        elif _string(literal) in freeze:
            at = _end_of_run(text, colon, freeze)
            yield _around(text, token.start(), at)


def _string_at(text: str, outside: int, place: int) -> re.Match[str] | None:
    """The string that a place is in; ``outside`` is a place before it that is in none."""
    before = text[outside:place]
    if "\\" not in before:
        quotes = before.count('"')
        start = outside + before.rindex('"') if quotes % 2 else place
        return _STRING.match(text, start)
    token = next((one for one in _STRING.finditer(text, outside) if one.end() > place), None)
    return token if token is not None and token.start() <= place else None


def _end_of_run(text: str, colon: int, freeze: Keys) -> int:
    """Where the last of the members ends that stand there side by side and are all frozen."""
    while True:
        _, end = _skip_value(text, _space(text, colon + 1))
        comma = _space(text, end)
        key = _STRING.match(text, _space(text, comma + 1)) if text[comma] == "," else None
        if key is None or _string(key[0]) not in freeze:
            return end
        colon = _space(text, key.end())


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """What goes with these members: a comma and the blanks at it, or all that is in the object."""
    before, behind = _space_back(text, start), _space(text, end)
    if text[before - 1] == ",":
        return _space_back(text, before - 1), end
    # The first member that stays takes the place of those before it.
    return (before, behind) if text[behind] == "}" else (start, _space(text, behind + 1))


def _space(text: str, at: int) -> int:
    """Where the next thing stands that is not blank."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _space_back(text: str, at: int) -> int:
    while text[at - 1] in " \t\n\r":
        at -= 1
    return at


def _cuts_inside(literal: str, freeze: Keys, depth: int) -> list[tuple[int, int]]:
    """The same for the text of a string literal; offsets count from its opening quote."""
    if depth == 0:
        return []
    text = _string(literal)
    spans = _cuts(text, freeze, depth) if _looks_like_json(text) else []
    if not spans or len(text) == len(literal) - 2:
        return [(start + 1, end + 1) for start, end in spans]
    places = [unit.start() for unit in _UNIT.finditer(literal, 1, len(literal) - 1)]
    places.append(len(literal) - 1)
    return [(places[start], places[end]) for start, end in spans]


def _string(literal: str) -> str:
    return json.loads(literal) if "\\" in literal else literal[1:-1]
