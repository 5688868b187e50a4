"""The events of a turn as server-sent events, for HTTP clients."""

from __future__ import annotations

import re

import msgspec

from engine.driver import Event

# Providers write the type first; this spares decoding a whole event for one word.
_TYPE_FIRST = re.compile(rb'\{"type":"([a-zA-Z0-9_.:-]+)"')
_LINE_END = re.compile(rb"\r\n|\r|\n")


class _Typed(msgspec.Struct):
    type: msgspec.Raw = msgspec.Raw(b"null")


_decoder = msgspec.json.Decoder(_Typed)


def encode(event: Event) -> bytes:
    """The bytes for the client: as the upstream sent them, else the event in SSE framing."""
    if event.raw is not None:
        return event.raw
    data = event.data
    if b"\n" in data or b"\r" in data:
        # Only white space between JSON tokens can hold a line end; a reader joins the lines again.
        data = b"\ndata: ".join(_LINE_END.split(data))
    kind = _type(event.data)
    if kind is None:
        return b"data: " + data + b"\n\n"
    return b"event: " + kind + b"\ndata: " + data + b"\n\n"


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
