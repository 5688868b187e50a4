"""Who may talk to this server: hosts, origins and the gateway's token (DESIGN 7, Access).

The host rule holds for every route, the pages and the gateway alike, also on loopback: a page of
a foreign site may resolve its own name to 127.0.0.1 and then read the answers.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from app.gateway.headers import Headers, first
from app.gateway.wire import Refusal

TOKEN_HEADER = "x-warmline-token"  # noqa: S105 - the name of a header
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_EVERY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, never bound to


def is_loopback(host: str) -> bool:
    """Whether a bind address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=64)
def host_of(header: str | None) -> str | None:
    """The host of a ``Host`` header without port and brackets, in lower case; None if unusable."""
    if not header or any(character in header for character in "/@?# \t"):
        return None
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """The names and addresses by which this server may be addressed."""

    names: frozenset[str]
    any_address: bool = False
    """Bound to every address: an address literal cannot be rebound, so each is accepted."""

    @classmethod
    def for_bind(cls, host: str, allowed: Iterable[str] = ()) -> HostPolicy:
        """``host`` is the bind address, ``allowed`` the further names from the settings."""
        names = {name.strip().strip("[]").rstrip(".").lower() for name in allowed}
        if host not in _EVERY_ADDRESS:
            names.add(host.strip("[]").lower())
        return cls(frozenset(names - {""}) | _LOOPBACK_NAMES, any_address=host in _EVERY_ADDRESS)

    def allows(self, header: str | None) -> bool:
        """``header`` is the value of ``Host``."""
        host = host_of(header)
        if host is None:
            return False
        host = host.rstrip(".")
        if host in self.names:
            return True
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return self.any_address


def same_origin(origin: str | None, host: str | None) -> bool:
    """Whether ``Origin`` names the server that the request was sent to.

    True without an ``Origin``: browsers send one with every WebSocket and every write, and other
    clients need none.
    """
    if origin is None:
        return True
    try:
        netloc = urlsplit(origin).netloc
    except ValueError:
        return False
    return host is not None and netloc.lower() == host.lower()


def check(
    headers: Headers, *, hosts: HostPolicy, token: str | None, websocket: bool
) -> Refusal | None:
    """The refusal of a request to one of the gateway's routes; None when it may pass."""
    host = _only(headers, "host")
    if not hosts.allows(host):
        return Refusal(
            403,
            "host_not_allowed",
            "This server is not known by that Host. Use its address, or add the name to the "
            "setting allowed_hosts.",
        )
    if websocket and not same_origin(first(headers, "origin"), host):
        return Refusal(
            403, "origin_not_allowed", "WebSockets of web pages of other origins are refused."
        )
    if token is not None and not _equal(first(headers, TOKEN_HEADER), token):
        return Refusal(
            401,
            "invalid_gateway_token",
            f"Send Warmline's gateway_token in the header {TOKEN_HEADER}. It is not the provider's "
            "key, which stays in Authorization.",
        )
    return None


def _only(headers: Headers, name: str) -> str | None:
    """The value of a header that may stand once; None also where it stands twice."""
    values = [value.strip() for key, value in headers if key == name]
    return values[0] if len(values) == 1 else None


def _equal(given: str | None, expected: str) -> bool:
    """In constant time, whatever was given."""
    return hmac.compare_digest((given or "").encode(), expected.encode())
