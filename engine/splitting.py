"""A request's body, cut into its top-level fields and its input items.

Read in full once; a body that goes on from one that was read is read from there on only. What the
short way cannot prove is left to the long one, which alone refuses.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from operator import is_not, itemgetter
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from engine.errors import UnreadableRequest
from engine.repeated import comma, repeated, skip, skip_back
from engine.spelling import Items, Known, Spelling

Fields: TypeAlias = dict[str, Raw]

_NULL = Raw(b"null")
_KEY = b'"input"'
_BLOCK = 4096
_NEEDLE = 32
"""So many bytes of the first known item are looked for in a body whose first fields are others."""
_PLACES_TRIED = 64
"""Other items may begin so, and texts; after so many places the body is read whole."""
_LISTS_TRIED = 4
"""Of these places that are the first of a list of that name: what is before them is read."""

object_of = msgspec.json.Decoder(dict[str, Raw])
_array = msgspec.json.Decoder(list[Raw])


def read(body: bytes, known: Sequence[Known] = ()) -> tuple[Mapping[str, Raw], Items]:
    """Fields in the client's order, and items. Raises ``UnreadableRequest`` rather than guess."""
    if known:
        continued = _continued(body, known)
        if continued is not None:
            return continued
    try:
        fields = object_of.decode(body)
        places = _places(body, fields)
        if places is None and _top_level_keys(body.decode("utf-8", "surrogatepass")) != len(fields):
            raise UnreadableRequest("a top-level key stands twice")
        _check_text(body)
        return fields, _items(body, fields, places)
    except (ValueError, RecursionError) as error:  # all decoding errors are ValueErrors
        raise UnreadableRequest("the body is not a JSON object that can be split") from error


def _items(body: bytes, fields: Fields, places: Mapping[str, int] | None) -> Items:
    raw = fields.get("input", _NULL)
    view = memoryview(raw)
    first = bytes(view[:1])
    if first == b'"':
        # A string input is one user message (DESIGN 4.3).
        return Items((Raw(b'{"role":"user","content":' + bytes(raw) + b"}"),))
    if first != b"[":
        raise UnreadableRequest("the input is neither a list nor a string")
    cut = tuple(_array.decode(raw))
    if places is None:
        return Items(cut)
    at = places["input"]
    close = at + len(view)
    head, tail = _around(fields)
    return Items(
        cut,
        spelling=Spelling(
            body, at + 1, _last_end(body, at + 1, close), close, _lengths(cut), head, tail
        ),
    )


def _lengths(cut: Iterable[Raw]) -> array[int]:
    return array("Q", map(len, cut))


def _last_end(body: bytes, start: int, close: int) -> int:
    """Where the last item of a list ends, by where the list opens and closes."""
    return max(start, skip_back(body, close - 1))


def _around(fields: Fields) -> tuple[Fields, Fields]:
    """The fields before and after the input, in memory of their own."""
    head: Fields = {}
    tail: Fields = {}
    part = head
    for name, raw in fields.items():
        if name == "input":
            part = tail
        else:
            part[name] = raw.copy()
    return head, tail


def _check_text(text: bytes) -> None:
    """The decoder cuts values out without looking whether they are UTF-8."""
    if not text.isascii():
        text.decode()


# --- the short way --------------------------------------------------------------------------------


class _Begun(NamedTuple):
    """The first items of this body, from ``start`` to ``end``.

    ``ahead`` of them stand so in a known one; behind those come the ``cut`` ones.
    """

    known: Known
    head: Mapping[str, Raw]
    start: int
    end: int
    ahead: int
    cut: Sequence[Raw] = ()


def _continued(body: bytes, known: Sequence[Known]) -> tuple[Mapping[str, Raw], Items] | None:
    """The parts of a body whose first items stand in a known one, byte for byte."""
    best: Known | None = None
    for one in known:
        spelling = one.spelling
        if (best is None or spelling.end > best.spelling.end) and spelling.begins(body):
            best = one
    if best is not None:
        spelling = best.spelling
        return _from_there(
            body, _Begun(best, spelling.head, spelling.start, spelling.end, spelling.count)
        )
    longest = sorted(known, key=lambda one: one.spelling.start - one.spelling.end)
    shared = [(one, *one.spelling.shared(body)) for one in longest]
    opened = _opened(body, [one for one, _, behind in shared if not behind])
    for one, head, start in opened:
        if one.spelling.stands_at(body, start):
            end = start + one.spelling.end - one.spelling.start
            return _from_there(body, _Begun(one, head, start, end, one.spelling.count))
    best, most, behind = max(shared, key=itemgetter(1))
    spelling = best.spelling
    if most:
        cut, end = repeated(body, behind, spelling.items()[most:], first=False)
        return _from_there(body, _Begun(best, spelling.head, spelling.start, end, most, cut))
    found = _from_first(body, best, spelling.head, behind) if behind else None
    if found or not opened:
        return found
    return _from_all(body, *opened[0]) or _from_first(body, *opened[0])


def _from_first(
    body: bytes, known: Known, head: Mapping[str, Raw], start: int
) -> tuple[Mapping[str, Raw], Items] | None:
    """The parts of a body whose list of items opens before ``start``, if its first can be cut."""
    items = known.spelling.items()
    cut, end = repeated(body, start, items, first=True)
    if not cut:
        return None
    same = next((n for n, other in enumerate(map(is_not, cut, items)) if other), len(cut))
    return _from_there(body, _Begun(known, head, start, end, same, cut[same:]))


def _from_all(
    body: bytes, known: Known, head: Mapping[str, Raw], start: int
) -> tuple[Mapping[str, Raw], Items] | None:
    """The same, if all known items are there, and the gaps between them are alike."""
    first = skip(body, start)
    gap = comma(body, first + known.spelling.lengths[0])
    end = known.spelling.end_at(body, first, b"," if gap is None else gap.group())
    if end is None:
        return None
    return _from_there(body, _Begun(known, head, start, end, known.spelling.count))


def _opened(body: bytes, known: Iterable[Known]) -> list[tuple[Known, Fields, int]]:
    """Those whose first item the list begins with, the fields before it, and where it opens."""
    openings: dict[bytes, tuple[Fields, int] | None] = {}
    found = []
    for one in known:
        first = one.spelling.glance(_NEEDLE)
        if first not in openings:
            openings[first] = _opening(body, first)
        if (opening := openings[first]) is not None:
            found.append((one, *opening))
    return found


def _opening(body: bytes, first: bytes) -> tuple[Fields, int] | None:
    """The fields before the list of items, and where it opens, if its first item begins so."""
    start, lists = -1, 0
    for _ in range(_PLACES_TRIED if first else 0):
        start = body.find(first, start + 1)
        key = None if start < 0 else _key_before(body, start)
        if key is not None:
            if (head := _head_before(body, key)) is not None:
                return head, body.rindex(b"[", key, start) + 1
            lists += 1
        if start < 0 or lists == _LISTS_TRIED:
            break
    return None


def _from_there(body: bytes, begun: _Begun) -> tuple[Mapping[str, Raw], Items] | None:
    """Read what comes after the proven items.

    Behind an item that is complete in itself nothing is valid but what may follow any item; with
    one (``[]``) in the place of the proven items, bytes that would lengthen the last of them (1,
    then 2) end the short way.
    """
    try:
        return _with_same_tail(body, begun) or _with_other_tail(body, begun)
    except (ValueError, RecursionError):
        return None


def _with_same_tail(body: bytes, begun: _Begun) -> tuple[Mapping[str, Raw], Items] | None:
    """The list's closing bracket and all behind it are known too: only the new items are read.

    They are a list by themselves, so that the bracket closes this one in both bodies.
    """
    known, head, start, end, ahead, found = begun
    proven = known.spelling
    tail = memoryview(proven.body)[proven.close - 1 :]
    close = len(body) - len(tail) + 1
    if close <= end or not body.endswith(tail):
        return None
    if head is not proven.head and not proven.tail.keys().isdisjoint(head):
        return None
    goes_on = ahead + len(found) > 0
    text = b"".join((b"[[]" if goes_on else b"[", memoryview(body)[end:close]))
    _check_text(text)
    rest = _array.decode(text)
    cut = (*found, *(rest[1:] if goes_on else rest))
    spelling = Spelling(
        body,
        start,
        _last_end(body, start, close),
        close,
        proven.lengths[:ahead] + _lengths(cut),
        head,
        proven.tail,
    )
    fields = {**head, "input": Raw(memoryview(body)[start - 1 : close]), **proven.tail}
    return fields, Items(cut, spelling=spelling, proven=proven, ahead=ahead)


_OPENERS = (b'{"input":[', b'{"input":[[]')


def _with_other_tail(body: bytes, begun: _Begun) -> tuple[Mapping[str, Raw], Items] | None:
    known, head, start, end, ahead, found = begun
    goes_on = ahead + len(found) > 0
    opener = _OPENERS[goes_on]
    text = b"".join((opener, memoryview(body)[end:]))
    rest = object_of.decode(text)
    if not rest.keys().isdisjoint(head) or names_a_key_twice(text, rest):
        return None
    _check_text(text)
    array = rest.pop("input")
    new = _array.decode(array)
    cut = (*found, *(new[1:] if goes_on else new))
    for name, raw in rest.items():
        same = known.fields.get(name)
        # What the anchor holds already has memory of its own.
        rest[name] = same if same is not None and same == raw else raw.copy()
    close = end - len(opener) + 9 + len(array)
    lengths = known.spelling.lengths[:ahead] + _lengths(cut)
    spelling = Spelling(body, start, _last_end(body, start, close), close, lengths, head, rest)
    fields = {**head, "input": Raw(memoryview(body)[start - 1 : close]), **rest}
    return fields, Items(cut, spelling=spelling, proven=known.spelling, ahead=ahead)


def _head_before(body: bytes, key: int) -> Fields | None:
    """The fields before the key ``input`` at ``key``; None if this is not one of the top level.

    What stands before a key is a top-level object up to there if it is one with the key, a value
    and a closing brace behind it: JSON has only one reading.
    """
    # Blanks before it say nothing; without them the text is mostly as short as it can be.
    text = body[: skip_back(body, key)] + b'"input":0}'
    try:
        head = object_of.decode(text)
        _check_text(text)
    except (ValueError, RecursionError):
        return None
    if next(reversed(head)) != "input" or names_a_key_twice(text, head):
        return None
    del head["input"]
    return head


def _key_before(body: bytes, start: int) -> int | None:
    """Where the key stands whose list opens before ``start``; None if it is not ``input``."""
    at = skip_back(body, start)
    if body[at - 1 : at] != b"[":
        return None
    at = skip_back(body, at - 1)
    if body[at - 1 : at] != b":":
        return None
    at = skip_back(body, at - 1)
    return at - len(_KEY) if body.endswith(_KEY, 0, at) else None


# --- keys that stand twice ------------------------------------------------------------------------


def names_a_key_twice(text: bytes, fields: Mapping[str, Raw]) -> bool:
    """The decoder keeps the last of two equal keys; what it threw away shows in the bytes."""
    # No object is shorter than its compact form, so that nothing more can stand in one.
    if len(text) == length_of(fields):
        return False
    if _places(text, fields) is not None:
        return False
    return _top_level_keys(text.decode("utf-8", "surrogatepass")) != len(fields)


def length_of(fields: Mapping[str, Raw]) -> int:
    """Bytes of the compact form of an object with these fields."""
    names = "".join(fields)
    own = len(names if names.isascii() else _encoded(names)) + sum(map(len, fields.values()))
    return max(2, 1 + 4 * len(fields) + own)


def _places(text: bytes, fields: Mapping[str, Raw]) -> dict[str, int] | None:
    """Where each value stands, if the object is these fields in this order, and nothing else.

    None also where a key is spelled with escapes: then it has to be read to be compared.
    """
    places: dict[str, int] = {}
    at, sign = skip(text, 0), b"{"
    for name, raw in fields.items():
        if text[at : at + 1] != sign or '"' in name or "\\" in name:
            return None
        key = _plain(name)
        at = skip(text, at + 1)
        if not text.startswith(key, at):
            return None
        # The text is an object that was decoded: behind a key there is a colon.
        at = skip(text, skip(text, at + len(key)) + 1)
        value = memoryview(raw)
        if not text.startswith(value, at):
            return None
        places[name] = at
        at, sign = skip(text, at + len(value)), b","
    if not fields and text[at : at + 1] == b"{":
        at = skip(text, at + 1)
    ends = text[at : at + 1] == b"}" and skip(text, at + 1) == len(text)
    return places if ends else None


def _plain(name: str) -> bytes:
    return b'"' + _encoded(name) + b'"'


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


_skim = json.JSONDecoder(parse_int=str, parse_float=str)


def _top_level_keys(text: str) -> int:
    """How many keys the (valid) object names, each time it names one."""
    count, at = 0, text.index("{") + 1
    while True:
        at = _skip_space(text, at)
        if text[at] == "}":
            return count
        _, at = _skim.raw_decode(text, at)
        at = _skip_space(text, _skip_space(text, at) + 1)
        _, at = _skim.raw_decode(text, at)
        at = _skip_space(text, at)
        count += 1
        at += text[at] == ","


def _skip_space(text: str, at: int) -> int:
    while text[at] in " \t\n\r":
        block = text[at : at + _BLOCK]
        at += len(block) - len(block.lstrip(" \t\n\r"))
    return at
