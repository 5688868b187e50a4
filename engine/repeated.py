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
comma = re.compile(rb"[ \t\n\r]*+,[ \t\n\r]*+").match
"""A comma and the blanks around it."""
_value = msgspec.json.Decoder(Raw)
_SPACE = b" \t\n\r"
_ENDS_A_TOKEN = frozenset((b"]", b" ", b"\t", b"\n", b"\r"))
_ENDS_AN_ITEM = frozenset((b",", *_ENDS_A_TOKEN))
_BLANKS = frozenset((b" ", b"\t", b"\n", b"\r"))
_BLOCK = 4096
_NEEDLE = 256
"""So many bytes of the next known item are looked for behind one that differs."""
_PLACES_TRIED = 4
"""Those bytes may stand in a text, too."""


def repeated(body: bytes, end: int, known: Sequence[Raw], *, first: bool) -> tuple[list[Raw], int]:
    """The items that stand in the places of ``known`` ones, and where the last one ends.

    They are the known ones themselves where the bytes are the same, else slices of ``body``.
    ``end`` is behind a complete item of a list of ``body``, or with ``first`` behind its bracket.
    It stops before what it cannot prove to be one item; known texts are UTF-8, and so are these.
    """
    view, found = memoryview(body), list[Raw]()
    parted = None if first else comma(body, end)
    if not first and parted is None:
        return found, end
    at = skip(body, end) if parted is None else parted.end()
    gap = b"," if parted is None else parted.group()
    for index, raw in enumerate(known, 1):
        is_same = body.startswith(raw, at)
        if not is_same and (behind := skip(body, at)) > at:
            gap, at = body[end:behind], behind  # one with more blanks than the gaps before it
            is_same = body.startswith(raw, at)
        if is_same:
            item = raw
        else:
            following = known[index] if index < len(known) else _NOTHING
            close = _end_of(body, at, len(raw), memoryview(following)[:_NEEDLE])
            if close <= at:
                break
            item = Raw(view[at:close])
        close = at + len(item)
        if body.startswith(gap, close):  # as nearly always
            found.append(item)
            end, at = close, close + len(gap)
            continue
        parted = comma(body, close)
        # A number goes on where its bytes do: 1 is not the first item of [12].
        if parted is not None or body[close : close + 1] in _ENDS_A_TOKEN:
            found.append(item)
            end = close
        if parted is None:
            break
        gap, at = parted.group(), parted.end()
    return found, end


def _end_of(body: bytes, at: int, length: int, needle: memoryview) -> int:
    """Where the item ends that begins at ``at``; -1 where it cannot be told.

    In another spelling most are as long as they were; else the next one that is known is behind it.
    """
    close = at + length
    is_parted = body[close : close + 1] in _ENDS_AN_ITEM and body[close - 1] not in _SPACE
    return close if is_parted and _is_value(body[at:close]) else _before(body, at, needle)


def _before(body: bytes, start: int, needle: memoryview) -> int:
    """Where the item ends that begins at ``start``, if the next one begins so; else -1.

    A reader that is at ``start`` finds this one value up to the comma: JSON has only one reading.
    """
    at = start if needle else len(body)
    for _ in range(_PLACES_TRIED):
        at = body.find(needle, at + 1)
        if at < 0:
            return -1
        parted = skip_back(body, at) - 1
        end = skip_back(body, parted)
        if body[parted : parted + 1] == b"," and end > start and _is_value(body[start:end]):
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
