"""Request headers in one form, and the credential in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .errors import unauthorized

Headers = tuple[tuple[str, str], ...]
HeadersLike = Mapping[str, str] | Iterable[tuple[str, str]]


def lower_headers(headers: HeadersLike) -> Headers:
    """Pairs with lower-case names, in their order."""
    pairs: Iterable[tuple[str, str]]
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((name.lower(), value) for name, value in pairs)


def credential_of(headers: Headers) -> str:
    """What separates one customer's data from another's. Raises ``ApiError`` if there is none."""
    values = dict(headers)
    scheme, _, token = values.get("authorization", "").partition(" ")
    key = token.strip() if scheme.lower() == "bearer" else ""
    key = key or values.get("api-key", "")
    if not key:
        raise unauthorized()
    return "\n".join((key, values.get("chatgpt-account-id", "")))
