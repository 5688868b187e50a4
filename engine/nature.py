"""What kind of change turned one text into another: one word, and no content (``Nature``).

The words are guesses for people: they choose the sentence and the remedy, never the mode of a turn.
"""

from __future__ import annotations

import re
import unicodedata

from engine.model import Nature

_MONTHS = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_TIME = re.compile(
    r"(?<![0-9])(?:"
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?"
    r"(?: ?(?:Z|[+-][0-9]{2}:?[0-9]{2}))?)?"
    r"|[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}|[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{4}"
    r"|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?: ?[AaPp]\.?[Mm]\.?)?"
    r"|[0-9]{1,2}(?:st|nd|rd|th)? " + _MONTHS + r"(?:,? [0-9]{4})?"
    r"|1[0-9]{9}(?:[0-9]{3}){0,3}(?:\.[0-9]{1,9})?"
    r")(?![0-9])"
    r"|\b" + _MONTHS + r" [0-9]{1,2}(?:st|nd|rd|th)?(?![0-9])(?:,? [0-9]{4})?"
    r"|\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs?)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b"
)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_IDENTIFIER = re.compile(
    r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|(?<![0-9A-Za-z])(?=[0-9A-Za-z]*[0-9])(?:[0-9a-fA-F]{6,}|[0-9A-Za-z]{10,})(?![0-9A-Za-z])"
)
_AROUND = 64
"""Characters of equal text that are kept on both sides of a difference: a date may begin there."""
_CHUNK = 4096
_MASKED = 1 << 16
"""Longer differences are told by their lengths alone: evidence must not hold up the event loop."""


def first_difference(before: str, now: str) -> int:
    """Offset of the first character that differs; the shorter length where one begins the other."""
    shared = min(len(before), len(now))
    start, step = 0, _CHUNK
    while start < shared:
        stop = min(start + step, shared)
        if before[start:stop] == now[start:stop]:
            start = stop
        elif step == 1:
            return start
        else:
            step //= 2
    return shared


def of_texts(before: str, now: str) -> Nature:
    """The nature of the change between two texts that differ."""
    head = first_difference(before, now)
    tail = first_difference(before[head:][::-1], now[head:][::-1])
    start = max(0, head - _AROUND)
    one = before[start : len(before) - max(0, tail - _AROUND)]
    other = now[start : len(now) - max(0, tail - _AROUND)]
    if _spaceless(one) == _spaceless(other):
        return Nature.WHITESPACE
    if unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other):
        return Nature.UNICODE
    if max(len(one), len(other)) > _MASKED:
        return _by_length(len(before), len(now), head + tail)
    if (one := _TIME.sub("\0", one)) == (other := _TIME.sub("\0", other)):
        return Nature.TIME
    if _NUMBER.sub("\0", one) == _NUMBER.sub("\0", other):
        return Nature.NUMBER
    one, other = (_NUMBER.sub("\0", _IDENTIFIER.sub("\0", side)) for side in (one, other))
    if one == other:
        return Nature.IDENTIFIER
    return _by_length(len(before), len(now), head + tail)


def _by_length(before: int, now: int, kept: int) -> Nature:
    if _cut(before, now, kept):
        return Nature.SHORTENED
    return Nature.LENGTHENED if _cut(now, before, kept) else Nature.REWRITTEN


def _cut(longer: int, shorter: int, kept: int) -> bool:
    """Less than half is left; or a tenth is gone, and what is left was nearly all there."""
    return 2 * shorter < longer or (10 * shorter <= 9 * longer and 5 * kept >= 4 * shorter)


def _spaceless(text: str) -> str:
    return "".join(text.split())
