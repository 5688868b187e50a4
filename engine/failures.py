"""What an error frame or a failed response means for the turn: pass it on, or send again.

The same rejection comes in many shapes: its code nested, flat, or inside ``response.failed``, with
a status or without. All are read here and nowhere else (CASES C).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

_any = msgspec.json.Decoder()

# What an error without a status stands for, by code and by type.
_STATUS_OF = {
    "previous_response_not_found": 400,
    "websocket_connection_limit_reached": 400,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "usage_limit_reached": 429,
    "server_is_overloaded": 503,
    "slow_down": 503,
}


class Remedy(Enum):
    """What is to be done about a failure that came before any output."""

    RELAY = "relay"
    """It is the client's to see."""
    NOT_FOUND = "not_found"
    """The continuation was rejected: send once in full."""
    LIMIT_REACHED = "limit_reached"
    """The connection is too old: send once in full on a fresh one."""
    SERVER_ERROR = "server_error"
    """A bare server error: send once more on a fresh connection."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of the provider, read from whatever shape it came in."""

    status: int
    code: str | None
    type: str | None
    message: str
    param: str | None
    retry_after: str | None
    headers: tuple[tuple[str, str], ...]
    has_status: bool
    body: bytes
    """The provider-shaped ``{"error": {...}}``, as an HTTP answer would carry it."""

    def remedy(self, *, continued: bool) -> Remedy:
        """What to do, given whether the request that it answers was a continuation of ours."""
        if continued and self._rejects_the_anchor():
            return Remedy.NOT_FOUND
        if self.code == "websocket_connection_limit_reached":
            return Remedy.LIMIT_REACHED
        if not self.has_status and not self.code and self.type == "server_error":
            return Remedy.SERVER_ERROR
        return Remedy.RELAY

    def _rejects_the_anchor(self) -> bool:
        if self.code == "previous_response_not_found":
            return True
        # The flat shape has no type of the error: its ``type`` is the event's.
        return self.type in (None, "invalid_request_error") and (
            self.param == "previous_response_id"
            or "previous_response_id" in self.message
            or "previous response" in self.message.lower()
        )

    def frame(self) -> bytes:
        """The error as a WebSocket frame: nested, with a status; anything flatter hangs Codex."""
        error = _any.decode(self.body)["error"]
        return json.dumps({"type": "error", "status": self.status, "error": error}).encode()


def read(data: bytes) -> Failure:
    """Read an ``error`` event, a ``response.failed`` or an error body."""
    try:
        event = _any.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        event = {}
    event = event if isinstance(event, dict) else {}
    error = _error_in(event)
    code, type_ = _text(error.get("code")), _text(error.get("type"))
    status = event.get("status", event.get("status_code"))
    if not isinstance(status, int) or not 100 <= status <= 599:
        status = None
    headers = _headers(event, error)
    return Failure(
        status=status or _STATUS_OF.get(code or "") or _STATUS_OF.get(type_ or "") or 500,
        code=code,
        type=type_,
        message=_text(error.get("message")) or "",
        param=_text(error.get("param")),
        retry_after=_retry_after(headers, error),
        headers=tuple(headers.items()),
        has_status=status is not None,
        body=json.dumps({"error": error}).encode(),
    )


def _error_in(event: Mapping[str, Any]) -> dict[str, Any]:
    response = event.get("response")
    if isinstance(response, dict) and isinstance(response.get("error"), dict):
        return dict(response["error"])
    if isinstance(event.get("error"), dict):
        return dict(event["error"])
    envelope = {"type", "sequence_number", "status", "status_code", "headers", "stream_id"}
    return {key: value for key, value in event.items() if key not in envelope}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _headers(event: Mapping[str, Any], error: Mapping[str, Any]) -> dict[str, str]:
    """Codex reads them at the top of the frame, the SDK's type has them inside the error."""
    found: dict[str, str] = {}
    for holder in (error.get("headers"), event.get("headers")):
        if isinstance(holder, dict):
            found.update({str(k).lower(): str(v) for k, v in holder.items()})
    return found


def _retry_after(headers: Mapping[str, str], error: Mapping[str, Any]) -> str | None:
    if "retry-after" in headers:
        return headers["retry-after"]
    seconds = error.get("resets_in_seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
        return None
    return str(int(seconds))


def synthetic(status: int, code: str, message: str) -> bytes:
    """An error body of our own, in the provider's shape."""
    type_ = "invalid_request_error" if status < 500 else "server_error"
    return json.dumps(
        {"error": {"message": message, "type": type_, "param": None, "code": code}}
    ).encode()


def not_found(response_id: str) -> bytes:
    """The provider's own answer to an id that it does not hold."""
    return json.dumps(
        {
            "error": {
                "message": f"Previous response with id '{response_id}' not found.",
                "type": "invalid_request_error",
                "param": "previous_response_id",
                "code": "previous_response_not_found",
            }
        }
    ).encode()


def failed_event(response_id: str | None, code: str, message: str) -> bytes:
    """The one ``response.failed`` that ends a stream which was lost after output began."""
    return json.dumps(
        {
            "type": "response.failed",
            "response": {
                "id": response_id,
                "object": "response",
                "status": "failed",
                "error": {"code": code, "message": message},
                "incomplete_details": None,
                "output": [],
                "usage": None,
            },
        }
    ).encode()
