"""Takes a receiver's address and secrets out of what it answered. Pure.

Receivers echo: an error page quotes the path, a debugging endpoint the whole request. Before the
beginning of an answer is kept, each stretch of it that it has in common with the path, the query
or a secret is replaced, also where it is escaped (percent, JSON, HTML) or cut off by the end.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from yarl import URL

from app.alerts.endpoints import SECRET_PREFIX

REMOVED = "[removed]"
PART = 6
"""A part of the address this long may be a password; shorter ones only count as a whole."""
STRETCH = 8
"""So many characters in common are no accident."""
TAIL = 3
"""At the very end, where the rest may have been cut off, so many count."""
_ESCAPES = re.compile(
    r"%(?P<percent>[0-9a-fA-F]{2})|\\u(?P<code>[0-9a-fA-F]{4})|\\(?P<plain>[/\"\\])"
    r"|\\x(?P<hex>[0-9a-fA-F]{2})|&#?[0-9A-Za-z]{1,8};"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff]")
_CUT = re.compile(r"(?:%[0-9a-f]?|\\(?:[ux][0-9a-f]{0,3})?|&#?[0-9a-z]{0,8})\Z")
"""The beginning of an escape, at the end."""
PASSES = 3
"""Escapes within escapes that are seen through."""

_Cell = tuple[str, int, int]
"""A character, and from where to where it stands in the text."""


class Scrub:
    def __init__(self, url: str, secrets: Iterable[str]) -> None:
        needles = {_flat(needle) for needle in (*_of_url(url), *_of_secrets(secrets))}
        self._needles = sorted(needles - {""}, key=len, reverse=True)
        self._stretches = {
            needle[start : start + STRETCH]
            for needle in self._needles
            for start in range(len(needle) - STRETCH + 1)
        }

    def __call__(self, data: bytes) -> str:
        """The text of ``data``, as far as it is UTF-8."""
        text = _CONTROLS.sub("", data.decode("utf-8", "replace"))
        cells = _cells(text)
        flat = "".join(cell[0] for cell in cells)
        hidden = self._hidden(flat)
        return _replace(text, sorted((cells[a][1], cells[b - 1][2]) for a, b in hidden))

    def _hidden(self, flat: str) -> list[tuple[int, int]]:
        """From where to where something shows that must not."""
        found = [
            (start, start + STRETCH)
            for start in range(len(flat) - STRETCH + 1)
            if flat[start : start + STRETCH] in self._stretches
        ]
        cut = _CUT.search(flat)
        ends = {len(flat), len(flat) if cut is None else cut.start()}
        for needle in self._needles:
            if len(needle) < STRETCH:
                found += [(at, at + len(needle)) for at in _all(needle, flat)]
            found += [
                (end - length, len(flat))
                for end in ends
                for length in range(TAIL, min(len(needle), end, STRETCH) + 1)
                if flat.startswith(needle[:length], end - length)
            ]
        return found


def _all(needle: str, flat: str) -> Iterable[int]:
    at = flat.find(needle)
    while at >= 0:
        yield at
        at = flat.find(needle, at + 1)


def _of_url(url: str) -> Iterable[str]:
    path, marked, query = url.partition("://")[2].partition("?")
    path = "/" + path.partition("/")[2]
    for one in (path, URL(url).raw_path):
        if one.strip("/"):
            yield one
        if len(one.strip("/")) > TAIL:
            yield one.strip("/")
    if query:
        yield marked + query
        if len(query) > TAIL:
            yield query
    for part in re.split(r"[/?&=;,:]", f"{path}?{query}"):
        if len(part) >= PART:
            yield part


def _of_secrets(secrets: Iterable[str]) -> Iterable[str]:
    for secret in secrets:
        bare = secret.removeprefix(SECRET_PREFIX)
        yield secret
        yield bare
        yield bare.replace("+", "-").replace("/", "_")


def _flat(text: str) -> str:
    return "".join(cell[0] for cell in _cells(text))


def _cells(text: str) -> list[_Cell]:
    """The text without escapes and in lower case, as single bytes."""
    cells = [
        (chr(byte), place, place + 1)
        for place, character in enumerate(text)
        for byte in character.lower().encode("utf-8", "replace")
    ]
    for _ in range(PASSES):
        flat = "".join(cell[0] for cell in cells)
        plain, end = [], 0
        for match in _ESCAPES.finditer(flat):
            plain += cells[end : match.start()]
            start, end = match.span()
            place = cells[start][1], cells[end - 1][2]
            plain += [(byte, *place) for byte in _plain(match)]
        if not end:
            break
        cells = plain + cells[end:]
    return cells


def _plain(match: re.Match[str]) -> str:
    if code := match["percent"] or match["code"] or match["hex"]:
        text = chr(int(code, 16))
        if match["percent"]:
            return text.lower()
    else:
        text = match["plain"] or html.unescape(match[0])
    return "".join(chr(byte) for byte in text.lower().encode("utf-8", "replace"))


def _replace(text: str, places: list[tuple[int, int]]) -> str:
    parts, end = [], 0
    merged: list[list[int]] = []
    for start, stop in places:
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], stop)
        else:
            merged.append([start, stop])
    for start, stop in merged:
        parts += [text[end:start], REMOVED]
        end = stop
    return "".join([*parts, text[end:]])
