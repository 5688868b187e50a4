"""Who may see the dashboard (DESIGN 7, Access).

- Always: the ``Host`` must be one of ours, against a foreign name that resolves to this machine.
- With a token: every route but the open ones needs it, as a Bearer token or as the cookie that
  the login form sets. A WebSocket is refused before it is accepted.
- Always: calls that change something, and WebSockets, need this server's own ``Origin``; the
  former JSON as well, or for a file that is sent a header that no form can set. A call without
  an ``Origin`` comes from no web page; it is let through with a Bearer token, which no page of
  another site can send.

The cookie holds no token: it is an expiry date, signed with a key that is made of the token. It
ends by itself and with any change of the token.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from urllib.parse import quote

from starlette.responses import RedirectResponse

from app.clock import Clock
from app.errors import AppError
from app.gateway.access import HostPolicy, same_origin
from app.web.answers import Asgi, Receive, Scope, Send, refuse

COOKIE = "warmline_session"
COOKIE_SECONDS = 30 * 24 * 3600
OPEN = frozenset({"/healthz", "/readyz", "/login", "/favicon.ico"})
OPEN_PREFIX = "/static/"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
UPLOAD_HEADER = "x-warmline-upload"
UPLOADS = "/api/import/"
_FORM = "application/x-www-form-urlencoded"
_OF_CLIENTS = ("/responses", "/chat/completions")
"""Ends of the paths that SDKs add to a base URL; nothing of the dashboard ends so."""

NO_TOKEN = AppError(
    "unauthorized",
    "This server needs its token.",
    "Log in at /login, or send the header Authorization: Bearer TOKEN.",
    status=401,
)
WRONG_HOST = AppError(
    "host_not_allowed",
    "This server is not known by that Host.",
    "Use its address, or add the name to the setting allowed_hosts.",
    status=403,
)
WRONG_ORIGIN = AppError(
    "origin_not_allowed",
    "This call must come from a page of this server.",
    "Scripts send Authorization: Bearer TOKEN, or where no token is set this server's own Origin.",
    status=403,
)
NO_V1 = AppError(
    "not_found",
    "There is nothing at this address: the client's base URL lacks /v1.",
    "It ends in /v1; for an upstream of another name in /u/NAME/v1.",
    status=404,
)
NO_JSON = AppError(
    "json_required",
    "This call takes JSON only.",
    "Send it with Content-Type: application/json.",
    status=415,
)


class Tickets:
    """Makes and checks what the login form's cookie holds."""

    def __init__(self, token: str | None, clock: Clock) -> None:
        self._token = token
        self._clock = clock
        self._key = hashlib.sha256(b"warmline dashboard\0" + (token or "").encode()).digest()

    @property
    def token_set(self) -> bool:
        return self._token is not None

    def accepts_token(self, given: str) -> bool:
        """In constant time, whatever was given."""
        if self._token is None:
            return False
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def issue(self) -> str:
        expiry = str(int(self._clock.now()) + COOKIE_SECONDS)
        return f"{expiry}.{self._sign(expiry)}"

    def accepts(self, ticket: str) -> bool:
        expiry, _, signature = ticket.partition(".")
        if not hmac.compare_digest(
            signature.encode("utf-8", "replace"), self._sign(expiry).encode()
        ):
            return False
        return int(expiry) > self._clock.now()  # signed by us, hence a number

    def _sign(self, expiry: str) -> str:
        return hmac.new(self._key, expiry.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


class Guard:
    """Pure ASGI, so that it stands before WebSockets too and does not hide disconnects."""

    def __init__(self, app: Asgi, *, hosts: HostPolicy, tickets: Tickets) -> None:
        self._app = app
        self._hosts = hosts
        self._tickets = tickets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = _Headers(scope["headers"])
        error = self._check(scope, headers)
        if error is None:
            await self._app(scope, receive, send)
        elif error is NO_TOKEN and _is_page(scope, headers):
            target = scope["path"] + (
                f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
            )
            answer = RedirectResponse(f"/login?next={quote(target, safe='')}", status_code=303)
            await answer(scope, receive, send)
        else:
            await refuse(scope, receive, send, error)

    def _check(self, scope: Scope, headers: _Headers) -> AppError | None:
        host = headers.get("host")
        if not self._hosts.allows(host):
            return WRONG_HOST
        path = scope["path"]
        if path.endswith(_OF_CLIENTS):
            return NO_V1
        bearer = self._has_bearer(headers)
        if (
            self._tickets.token_set
            and path not in OPEN
            and not path.startswith(OPEN_PREFIX)
            and not bearer
            and not self._has_cookie(headers)
        ):
            return NO_TOKEN
        origin = headers.get("origin")
        if scope["type"] == "websocket":
            return None if same_origin(origin, host) else WRONG_ORIGIN
        if scope["method"] in _SAFE:
            return None
        if not (bearer if origin is None else same_origin(origin, host)):
            return WRONG_ORIGIN
        kind = (headers.get("content-type") or "").partition(";")[0].strip().lower()
        if kind == "application/json" or (path == "/login" and kind == _FORM):
            return None
        upload = scope["method"] == "PUT" and path.startswith(UPLOADS)
        if upload and headers.get(UPLOAD_HEADER) == "1":
            return None
        return NO_JSON

    def _has_bearer(self, headers: _Headers) -> bool:
        scheme, _, given = (headers.get("authorization") or "").partition(" ")
        return scheme.lower() == "bearer" and self._tickets.accepts_token(given.strip())

    def _has_cookie(self, headers: _Headers) -> bool:
        return any(self._tickets.accepts(ticket) for ticket in headers.cookies(COOKIE))


class _Headers:
    """The few look-ups that are made before a request has been let in."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._raw = [
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw
        ]

    def get(self, name: str) -> str | None:
        """None when it is absent, and also when it is there twice: nobody sends two Hosts or
        Origins in good faith."""
        values = [value.strip() for key, value in self._raw if key == name]
        return values[0] if len(values) == 1 else None

    def cookies(self, name: str) -> list[str]:
        """All of that name: another application on the same host may have set one too."""
        parts = (part for key, value in self._raw if key == "cookie" for part in value.split(";"))
        pairs = (part.strip().partition("=") for part in parts)
        return [value for key, _, value in pairs if key == name]


def _is_page(scope: Scope, headers: _Headers) -> bool:
    """Whether a person is looking: such a one is led to the login form."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return False
    return not scope["path"].startswith("/api/") and "text/html" in (headers.get("accept") or "")
