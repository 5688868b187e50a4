"""The body of a Slack incoming webhook: a fallback text, and blocks within Slack's limits. Pure."""

from __future__ import annotations

from typing import Any

from app.alerts.fitting import Room
from app.alerts.message import Message, cause_lines, lines, link_pairs, title
from app.alerts.words import cut, label_text

HEADER, SECTION, CONTEXT, BUTTON_URL = 150, 3_000, 2_000, 3_000
"""Slack's limits, in characters."""


def build(message: Message, room: Room) -> dict[str, Any]:
    heading = room.line(title(message))
    causes = cause_lines(message)
    said = [line for line in lines(message) if line not in causes]
    blocks = [
        {"type": "header", "text": _plain(heading, HEADER)},
        _section(room.lines(said or [heading])),
    ]
    if causes:
        blocks.append(_section(room.lines(causes)))
    blocks.append({"type": "context", "elements": [_marked(_context(message, room), CONTEXT)]})
    buttons = [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": name, "emoji": False},
            "url": url,
            "action_id": f"open_{number}",
        }
        for number, (name, url) in enumerate(link_pairs(message), 1)
        if len(url) <= BUTTON_URL and room.url(url)
    ]
    if buttons:
        blocks.append({"type": "actions", "elements": buttons})
    return {"text": escape(room.lines([heading, *said]), SECTION), "blocks": blocks}


def _context(message: Message, room: Room) -> str:
    rule = message.rule
    parts = [f"Severity: {rule.severity.value}"]
    if rule.owner:
        parts.append(f"Owner: {room.line(rule.owner)}")
    if rule.labels:
        parts.append(label_text({name: room.line(text) for name, text in rule.labels.items()}))
    return " · ".join(parts)


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _marked(text, SECTION)}


def _marked(text: str, most: int) -> dict[str, Any]:
    """``verbatim``: Slack makes no links, channels or mentions of what looks like them."""
    return {"type": "mrkdwn", "text": escape(text, most), "verbatim": True}


def _plain(text: str, most: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": escape(text, most), "emoji": False}


def escape(text: str, most: int) -> str:
    """With Slack's three control characters escaped, so that no name of a model or an agent calls
    a channel together; at most ``most`` characters afterwards, and no escape cut in the middle."""
    kept = most
    while True:
        escaped = cut(text, kept).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        if len(escaped) <= most:
            return escaped
        kept = min(kept, len(text)) - max(1, (len(escaped) - most) // 5)
