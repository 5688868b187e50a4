"""The events of a turn as server-sent events, for HTTP clients."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from engine.driver import Event

# Providers write the type first; this spares decoding a whole event for one word.
_TYPE_FIRST = re.compile(rb'\{"type":"([a-zA-Z0-9_.:-]+)"')
_LINE_END = re.compile(rb"\r\n|\r|\n")


class _Typed(msgspec.Struct):
    type: msgspec.Raw = msgspec.Raw(b"null")


_decoder = msgspec.json.Decoder(_Typed)


def encode(events: Sequence[Event]) -> bytes:
    """The bytes for the client: as the upstream sent them, else the events in SSE framing."""
    text = _of_one_line_each(events)
    return b"".join(map(_framed, events)) if text is None else text


def _of_one_line_each(events: Sequence[Event]) -> bytes | None:
    """What nearly all are: typed first, without a line end inside; None where one is not.

    Most are of the type of the one before them, and are put together in one go.
    """
    parts: list[bytes] = []
    head, before, run = b"", b"", list[bytes]()
    for event in events:
        data = event.data
        if event.raw is not None:
            return None
        if not run or not data.startswith(head):
            match = _TYPE_FIRST.match(data)
            if match is None:
                return None
            parts.append(before.join(run))
            head, before = match[0], b"\n\nevent: %b\ndata: " % match[1]
            run = [b""]
        run.append(data)
    parts.append(before.join(run))
    text = b"".join((*parts, b"\n\n"))[2:]
    return text if text.count(b"\n") == 3 * len(events) and b"\r" not in text else None


def _framed(event: Event) -> bytes:
    if event.raw is not None:
        return event.raw
    kind = _type(event.data)
    parts = [] if kind is None else [b"event: ", kind, b"\n"]
    # Only white space between JSON tokens can hold a line end; a reader joins the lines again.
    for line in _LINE_END.split(event.data):
        parts += (b"data: ", line, b"\n")
    return b"".join((*parts, b"\n"))


def _type(data: bytes) -> bytes | None:
    match = _TYPE_FIRST.match(data)
    if match:
        return match[1]
    try:
        value = msgspec.json.decode(_decoder.decode(data).type)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if not isinstance(value, str) or not value or "\n" in value or "\r" in value:
        return None
    return value.encode()
