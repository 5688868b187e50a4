"""Keyed digests: they tell two values apart, and tell nothing of the values (DESIGN 4.4).

BLAKE2b with its own key is the MAC; parts carry their length, so that ("a", "bc") and ("ab", "c")
never give the same digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

import msgspec
from msgspec import Raw

_any = msgspec.json.Decoder()


@lru_cache(maxsize=16)
def _keyed(key: bytes, size: int) -> hashlib.blake2b:
    """Where every digest begins: setting a key up takes as long as all that follows."""
    return hashlib.blake2b(key=key, digest_size=size)


def mac(key: bytes, *parts: str | bytes | Raw, size: int = 16) -> bytes:
    """A digest of ``size`` bytes over the parts, in order."""
    state = _keyed(key, size).copy()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else memoryview(part)
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.digest()


def value_digest(key: bytes, raw: Raw | None) -> str | None:
    """A digest of a JSON value whatever its key order; None when it is absent or null."""
    if raw is None or bytes(memoryview(raw)[:4]) == b"null":
        return None
    try:
        text = msgspec.json.encode(_any.decode(raw), order="sorted")
    except (msgspec.MsgspecError, RecursionError):
        text = bytes(raw)
    return mac(key, text).hex()


EMPTY = b""
"""The transcript digest of a conversation in which nothing was said."""


def extend(key: bytes, digest: bytes, items: Iterable[Raw]) -> bytes:
    """The transcript digest after these items: a hash chain, so that a delta costs its own size."""
    for item in items:
        digest = mac(key, digest, item)
    return digest
