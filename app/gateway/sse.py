"""The events of a turn as server-sent events, for HTTP clients."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from engine.driver import Event

# Providers write the type first; this spares decoding a whole event for one word.
_TYPE_FIRST = re.compile(rb'\{"type":"([a-zA-Z0-9_.:-]+)"')
_LINE_END = re.compile(rb"\r\n|\r|\n")


class _Typed(msgspec.Struct):
    type: msgspec.Raw = msgspec.Raw(b"null")


_decoder = msgspec.json.Decoder(_Typed)


def encode(events: Iterable[Event]) -> bytes:
    """The bytes for the client: as the upstream sent them, else the events in SSE framing."""
    parts: list[bytes] = []
    add = parts.extend
    for event in events:
        if event.raw is not None:
            parts.append(event.raw)
            continue
        data = event.data
        match = _TYPE_FIRST.match(data)
        if match is None or b"\n" in data or b"\r" in data:
            add(_framed(data))
        else:
            add((b"event: ", match[1], b"\ndata: ", data, b"\n\n"))
    return b"".join(parts)


def _framed(data: bytes) -> Iterable[bytes]:
    kind = _type(data)
    if kind is not None:
        yield b"event: " + kind + b"\n"
    # Only white space between JSON tokens can hold a line end; a reader joins the lines again.
    for line in _LINE_END.split(data):
        yield b"data: " + line + b"\n"
    yield b"\n"


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
