"""The items of a list, cut out by the help of known ones that most of them repeat.

Only what differs is read: an item that stands in another spelling between two known ones ends where
the next known one begins, if what lies between is one JSON value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec import Raw

_NOTHING = Raw(b"")
_comma = re.compile(rb"[ \t\n\r]*+,[ \t\n\r]*+").match
_value = msgspec.json.Decoder(Raw)
_SPACE = b" \t\n\r"
_ENDS_A_TOKEN = frozenset((b"]", b" ", b"\t", b"\n", b"\r"))
_BLANKS = frozenset((b" ", b"\t", b"\n", b"\r"))
_BLOCK = 4096
_NEEDLE = 256
"""So many bytes of the next known item are looked for behind one that differs."""
_PLACES_TRIED = 4
"""Those bytes may stand in a text, too."""


def repeated(body: bytes, end: int, known: Sequence[Raw], *, first: bool) -> tuple[list[Raw], int]:
    """Slices of the items that stand in the places of ``known`` ones, and where the last one ends.

    ``end`` is behind a complete item of a list of ``body``, or with ``first`` behind its bracket.
    It stops before what it cannot prove to be one item; known texts are UTF-8, and so are these.
    """
    view, found = memoryview(body), list[Raw]()
    comma = None if first else _comma(body, end)
    if not first and comma is None:
        return found, end
    at = skip(body, end) if comma is None else comma.end()
    for index, raw in enumerate(known, 1):
        part = memoryview(raw)
        if body.startswith(part, at):
            close = at + len(part)
        else:
            following = known[index] if index < len(known) else _NOTHING
            close = _before(body, at, memoryview(following)[:_NEEDLE])
        if close <= at:
            break
        comma = _comma(body, close)
        # A number goes on where its bytes do: 1 is not the first item of [12].
        if comma is not None or body[close : close + 1] in _ENDS_A_TOKEN:
            found.append(Raw(view[at:close]))
            end = close
        if comma is None:
            break
        at = comma.end()
    return found, end


def _before(body: bytes, start: int, needle: memoryview) -> int:
    """Where the item ends that begins at ``start``, if the next one begins so; else -1.

    A reader that is at ``start`` finds this one value up to the comma: JSON has only one reading.
    """
    at = start if needle else len(body)
    for _ in range(_PLACES_TRIED):
        at = body.find(needle, at + 1)
        if at < 0:
            return -1
        comma = skip_back(body, at) - 1
        end = skip_back(body, comma)
        if body[comma : comma + 1] == b"," and end > start and _is_value(body[start:end]):
            return end
    return -1


def _is_value(text: bytes) -> bool:
    try:
        _value.decode(text)
        if not text.isascii():
            text.decode()
    except (ValueError, RecursionError):
        return False
    return True


def skip(text: bytes, at: int) -> int:
    """Where the next thing stands that is not blank."""
    while text[at : at + 1] in _BLANKS:
        # In blocks: a body may be nothing but space, and nobody else waits for that.
        block = text[at : at + _BLOCK]
        at += len(block) - len(block.lstrip(_SPACE))
    return at


def skip_back(text: bytes, at: int) -> int:
    """Where the last thing ends that is not blank."""
    while at > 0 and text[at - 1] in _SPACE:
        block = text[max(0, at - _BLOCK) : at]
        at -= len(block) - len(block.rstrip(_SPACE))
    return at
