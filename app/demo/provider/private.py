"""Events and headers that only the Codex backend sends."""

from __future__ import annotations

from collections.abc import Mapping

from .log import Attempt
from .wire import Json

TURN_STATE = "x-codex-turn-state"


def turn_state(attempt: Attempt, fresh: str) -> str:
    """The sticky token of the client's turn: the one that the client sent back, else a new one."""
    metadata = attempt.body.get("client_metadata")
    if isinstance(metadata, Mapping):
        sent = metadata.get(TURN_STATE)
        if isinstance(sent, str):
            return sent
    return attempt.header(TURN_STATE) or fresh


def private_events(*, model: str, state: str, warmup: bool) -> list[Json]:
    """What a WebSocket response has beside the standard events."""
    window = {"used_percent": 12.5, "window_minutes": 300, "reset_after_seconds": 9000}
    limits: Json = {
        "type": "codex.rate_limits",
        "plan_type": "plus",
        "rate_limits": {"allowed": True, "limit_reached": False, "primary": window},
    }
    metadata: Json = {
        "type": "response.metadata",
        "headers": {"openai-model": model, TURN_STATE: state},
    }
    if warmup:
        return [metadata]
    return [
        limits,
        {"type": "codex.response.metadata", "headers": {"x-models-etag": 'W/"models-1"'}},
        metadata,
        {"type": "keepalive"},
    ]


def private_headers(state: str) -> tuple[tuple[str, str], ...]:
    """The same knowledge over HTTP, where it travels in the response's headers."""
    return (
        (TURN_STATE, state),
        ("x-codex-primary-used-percent", "12.5"),
        ("x-codex-primary-window-minutes", "300"),
        ("x-models-etag", 'W/"models-1"'),
    )
