"""What the gateway says itself, in the shapes that clients of the Responses API understand.

Errors have OpenAI's shape. On a WebSocket they are nested and carry ``status``: Codex ignores
anything flatter and waits until its idle time-out.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]


def extension(scope: Scope, name: str) -> Any:
    """What the server offers beside ASGI under this name; None where it offers nothing."""
    return (scope.get("extensions") or {}).get(name)


@dataclass(eq=False)
class Refusal(Exception):
    """Warmline itself answers with ``status``; nothing is sent upstream.

    ``message`` says what is wrong and what to do about it. It holds nothing of the request.
    """

    status: int
    code: str
    message: str
    param: str | None = None
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def body(self) -> bytes:
        return _dump({"error": self._error()})

    @property
    def frame(self) -> bytes:
        """The same error for a WebSocket."""
        return _dump({"type": "error", "status": self.status, "error": self._error()})

    def _error(self) -> dict[str, Any]:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"message": self.message, "type": kind, "param": self.param, "code": self.code}


class ClientGone(Exception):
    """The client left before its request was complete."""


def error_frame(status: int, body: bytes) -> bytes:
    """A provider's error body as a WebSocket error frame: ``{"type","status","error"}``.

    The error object is kept as it is. A body that is not of the provider's shape (a proxy's HTML
    page) is not quoted: clients parse frames as JSON and read ``error.message``.
    """
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        error = None
    if isinstance(error, str):
        error = {"message": error}
    if not isinstance(error, dict):
        error = {"message": f"The upstream answered with status {status}.", "code": None}
    kind = "invalid_request_error" if status < 500 else "server_error"
    return _dump({"type": "error", "status": status, "error": {"type": kind, **error}})


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


async def respond(
    send: Send, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes
) -> None:
    """One complete HTTP answer."""
    head = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def refuse(send: Send, refusal: Refusal, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """Answer an HTTP request with a refusal."""
    await respond(send, refusal.status, [*_refusal_headers(refusal), *headers], refusal.body)


async def refuse_upgrade(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Answer a WebSocket upgrade with a status instead of accepting it."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008})  # servers answer this with 403
        return
    body = refusal.body
    head = [*_refusal_headers(refusal), (b"content-length", b"%d" % len(body))]
    await send({"type": "websocket.http.response.start", "status": refusal.status, "headers": head})
    await send({"type": "websocket.http.response.body", "body": body, "more_body": False})


def _refusal_headers(refusal: Refusal) -> RawHeaders:
    extra = [(name.encode(), value.encode()) for name, value in refusal.headers]
    return [(b"content-type", b"application/json"), *extra]
