"""Which headers pass through the gateway, in both directions.

Credentials and everything unknown pass untouched. What belongs to one hop, to the encoding of a
body that is read here, or to Warmline itself, does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Headers = tuple[tuple[str, str], ...]

# RFC 9110, 7.6.1, and the older names that proxies still send.
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "trailers",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_FORWARDED = _HOP_BY_HOP | {"host", "content-length", "expect"}
# The gateway reads these bodies, so that they travel on in plain bytes.
_ENCODING = frozenset({"content-encoding", "accept-encoding"})
# Alternative services are places of the upstream's own origin, not of the gateway's; the date is
# set by the server that the client talks to.
_NOT_RETURNED = _HOP_BY_HOP | {"content-length", "alt-svc", "date"}
_OWN = "x-warmline-"
# Some proxies drop headers with an underscore, so that clients changed the spelling over time.
SPELT_BOTH_WAYS = frozenset({"thread-id", "session-id", "x-session-id", "x-warmline-session"})


def decode(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Header names in lower case; values as UTF-8 where they are, else as Latin-1."""
    return tuple((name.decode("latin-1").lower(), _text(value)) for name, value in raw)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def encode(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1", "replace"), value.encode()) for name, value in headers]


def first(headers: Sequence[tuple[str, str]], name: str) -> str | None:
    """The first value of a header; None when it is absent or empty."""
    for key, value in headers:
        if key == name and value.strip():
            return value.strip()
    return None


def forwarded(headers: Headers, *, body_is_read: bool) -> Headers:
    """The request headers for the upstream.

    ``body_is_read``: the gateway decodes the request's body and must be able to read the answer,
    so the encodings of both are its own affair.
    """
    named = _named_by_connection(headers)
    names = {name for name, _ in headers}
    return tuple(
        (name, kept)
        for name, value in headers
        if name not in _NOT_FORWARDED
        and name not in named
        and not (body_is_read and name in _ENCODING)
        and not name.replace("_", "-").startswith((_OWN, "sec-websocket-"))
        and not _respelt(name, names)
        and (kept := _without_own_cookies(value) if name == "cookie" else value)
    )


def returned(headers: Iterable[tuple[str, str]], *, keep_length: bool = False) -> Headers:
    """The upstream's response headers for the client."""
    given = tuple((name.lower(), value) for name, value in headers)
    named = _named_by_connection(given)
    return tuple(
        (name, value)
        for name, value in given
        if (name not in _NOT_RETURNED or (keep_length and name == "content-length"))
        and name not in named
        and not name.startswith(_OWN)
    )


def _named_by_connection(headers: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Headers that the ``Connection`` header declares to belong to this hop."""
    return frozenset(
        token.strip().lower()
        for name, value in headers
        if name == "connection"
        for token in value.split(",")
    )


def _respelt(name: str, names: set[str]) -> bool:
    """An underscore spelling beside the hyphen's: one header, and the hyphen wins."""
    hyphens = name.replace("_", "-")
    return name != hyphens and hyphens in SPELT_BOTH_WAYS and hyphens in names


def _without_own_cookies(value: str) -> str:
    """The dashboard's cookie is no business of the upstream's."""
    kept = (part.strip() for part in value.split(";"))
    return "; ".join(part for part in kept if part and not part.startswith("warmline"))
