"""A request's body: collected once, decoded within bounds (gzip, zstd).

Neither the bytes received nor the bytes they inflate to ever exceed the limit by more than one
chunk, whatever the headers of the compressed data claim.
"""

from __future__ import annotations

import asyncio
import io
import zlib
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import zstandard

from app.gateway.headers import Headers, first
from app.gateway.wire import ClientGone, Receive, Refusal

Whole: TypeAlias = Callable[[Receive, int], Awaitable[bytes | None]]

_CHUNK = 256 * 1024
_SUPPORTED = (("accept-encoding", "gzip, zstd, identity"),)
_ZSTD_FRAME = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50


async def read(receive: Receive, headers: Headers, limit: int, whole: Whole | None = None) -> bytes:
    """The whole body in plain bytes; at most ``limit`` bytes, before and after decoding.

    ``whole`` is how the server gives it as a whole, where it does.

    Raises ``Refusal``: 413 too large, 415 an encoding that is not supported, 400 truncated or not
    what its header says. Raises ``ClientGone`` when the client leaves before its end.
    """
    encoding = _encoding(headers)
    declared = first(headers, "content-length")
    if declared is not None and declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)
    body = await (_gathered(receive, limit) if whole is None else _given(whole, receive, limit))
    if encoding is None:
        return body
    # Even a small body may inflate to the limit, which takes a while: off the event loop.
    return await asyncio.to_thread(inflate, encoding, body, limit)


async def _given(whole: Whole, receive: Receive, limit: int) -> bytes:
    try:
        body = await whole(receive, limit)
    except OverflowError:
        raise _too_large(limit) from None
    if body is None:
        raise ClientGone
    return body


async def _gathered(receive: Receive, limit: int) -> bytes:
    # Its bytes are taken over at the end, not copied; a large one grows by moving pages.
    gathered, size = io.BytesIO(), 0
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise _too_large(limit)
        gathered.write(piece)
        more = message.get("more_body", False)
    return gathered.getvalue()


def _encoding(headers: Headers) -> str | None:
    tokens = [
        token.strip().lower()
        for name, value in headers
        if name == "content-encoding"
        for token in value.split(",")
    ]
    tokens = [token for token in tokens if token not in ("", "identity")]
    if not tokens:
        return None
    if len(tokens) > 1 or tokens[0] not in ("gzip", "x-gzip", "zstd"):
        raise Refusal(
            415,
            "unsupported_content_encoding",
            "The request body's Content-Encoding is not supported. Send it as gzip, zstd or plain.",
            headers=_SUPPORTED,
        )
    return "zstd" if tokens[0] == "zstd" else "gzip"


def inflate(encoding: str, data: bytes, limit: int) -> bytes:
    """Decode ``gzip`` or ``zstd`` data to at most ``limit`` bytes. Raises ``Refusal``."""
    try:
        return _gunzip(data, limit) if encoding == "gzip" else _unzstd(data, limit)
    except (zlib.error, zstandard.ZstdError, EOFError):
        raise Refusal(
            400,
            "invalid_compressed_body",
            f"The request body is truncated or is not valid {encoding}, as its Content-Encoding "
            "says. Send it complete, or without compression.",
        ) from None


def _gunzip(data: bytes, limit: int) -> bytes:
    out = bytearray()
    rest = data
    while True:  # a gzip body may consist of several members
        member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        while not member.eof:
            piece = member.decompress(rest, _CHUNK)
            rest = member.unconsumed_tail
            out += piece
            if len(out) > limit:
                raise _too_large(limit)
            if not piece and not rest and not member.eof:
                raise EOFError
        rest = member.unused_data.lstrip(b"\0")  # padding is allowed after a member
        if not rest:
            return bytes(out)


def _unzstd(data: bytes, limit: int) -> bytes:
    # A window as large as the largest body suffices; a header may claim gigabytes.
    max_window = min(max(limit, 8 * 1024 * 1024), 1 << 30)
    declared, window = _zstd_sizes(data)
    if declared > limit or window > max_window:
        raise _too_large(limit)
    decompressor = zstandard.ZstdDecompressor(max_window_size=max_window)
    out = bytearray()
    with decompressor.stream_reader(io.BytesIO(data), read_across_frames=True) as reader:
        while piece := reader.read(_CHUNK):
            out += piece
            if len(out) > limit:
                raise _too_large(limit)
    return bytes(out)


def _zstd_sizes(data: bytes) -> tuple[int, int]:
    """Walk the frames and blocks of zstd data: the size that they declare, the largest window.

    The library's reader takes a truncated frame for the end of the data, so the structure is
    checked here (RFC 8878, 3.1). Raises ``EOFError`` when something is missing.
    """
    position = declared = window = 0
    if not data:
        raise EOFError
    while position < len(data):
        magic = _number(data, position, 4)
        if magic & 0xFFFFFFF0 == _ZSTD_SKIPPABLE:
            position += 8 + _number(data, position + 4, 4)
        elif magic == _ZSTD_FRAME:
            frame = zstandard.get_frame_parameters(data[position : position + 18])
            if frame.content_size < 1 << 62:  # beyond it stand the marks of an unknown size
                declared += frame.content_size
            window = max(window, frame.window_size)
            position += zstandard.frame_header_size(data[position : position + 18])
            last = False
            while not last:
                header = _number(data, position, 3)
                last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
                position += 3 + (1 if kind == 1 else size)
            position += 4 if frame.has_checksum else 0
        else:
            raise EOFError
        if position > len(data):
            raise EOFError
    return declared, window


def _number(data: bytes, position: int, length: int) -> int:
    piece = data[position : position + length]
    if len(piece) < length:
        raise EOFError
    return int.from_bytes(piece, "little")


def _too_large(limit: int) -> Refusal:
    return Refusal(
        413,
        "request_too_large",
        f"The request body is larger than {limit} bytes. Shorten the input, or raise the setting "
        "max_body_bytes of Warmline.",
    )
