"""What each kind of receiver gets: a message as the bytes of a request's body. Pure."""

from __future__ import annotations

from app.alerts import payload_alertmanager, payload_json, payload_slack
from app.alerts.fitting import fit
from app.alerts.message import Message

KINDS = ("webhook", "slack", "alertmanager")


def encode(kind: str, message: Message, receiver_name: str) -> bytes:
    """JSON in UTF-8 below 20,000 bytes, without NaN; long texts are visibly cut."""
    match kind:
        case "webhook":
            return fit(lambda room: payload_json.build(message, room))
        case "slack":
            return fit(lambda room: payload_slack.build(message, room))
        case "alertmanager":
            return fit(lambda room: payload_alertmanager.build(message, room, receiver_name))
        case _:
            raise ValueError(f"no payload for a receiver of kind {kind!r}")
