"""One turn of an embedded session: what is noted of it, and how an answer in one piece is read."""

from __future__ import annotations

import asyncio
import json
import weakref
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from engine.chain import Anchor
from engine.errors import TurnFailed
from engine.frozen import Applied
from engine.model import TurnFacts
from engine.outcome import Answer
from engine.turn import error_body_code


@dataclass(slots=True, eq=False)
class AgentTurn:
    """One turn, from ``send`` until its events are read."""

    id: str
    body: bytes
    sent: Applied
    """Its input: outputs that the model has seen are as it saw them. Empty when it has ended."""
    length: int
    """Items of the input."""
    headers: tuple[tuple[str, str], ...]
    group: str
    stream: weakref.ref[AsyncGenerator[dict[str, Any], None]] | None = None
    started: bool = False
    facts: TurnFacts | None = None
    anchor: Anchor | None = None
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ended(self) -> bool:
        return self.facts is not None or self.closed.is_set()

    @property
    def under_way(self) -> bool:
        """Its end is still to come, and somebody waits for it: the events were not dropped."""
        return not self.ended and self.stream is not None and self.stream() is not None


def whole(answer: Answer) -> dict[str, Any]:
    """The last event of an answer that came in one piece. Raises ``TurnFailed`` for an error."""
    if answer.status != 200:
        after = next((value for name, value in answer.headers if name == "retry-after"), "")
        seconds = float(after) if after.isascii() and after.isdigit() else None
        raise TurnFailed(answer.status, error_body_code(answer.body), answer.body, seconds)
    try:
        response = json.loads(answer.body)
        status = response["status"]
    except (ValueError, TypeError, KeyError):
        status = None
    if status not in ("completed", "incomplete", "failed"):
        raise TurnFailed(502, "unreadable_answer", answer.body)
    return {"type": f"response.{status}", "response": response}
