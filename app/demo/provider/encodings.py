"""Content encodings of request bodies."""

from __future__ import annotations

import gzip
import io
import zlib

import zstandard

from .errors import ApiError


def decode_body(raw: bytes, encoding: str) -> bytes:
    """Undo the request's content encoding. ``ApiError``: 415 for an unknown one, 400 if broken."""
    name = encoding.strip().lower()
    try:
        if name in ("", "identity"):
            return raw
        if name == "gzip":
            return gzip.decompress(raw)
        if name == "deflate":
            return zlib.decompress(raw)
        if name == "zstd":
            return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(raw)).read()
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise ApiError(f"The request body is not valid {name}: {error}") from None
    raise ApiError(f"Unsupported content encoding: '{encoding}'.", status=415)
