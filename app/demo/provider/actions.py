"""What the core asks the shell to do, step by step. A step is a delay in seconds and an action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .wire import Json


@dataclass(frozen=True, slots=True)
class Send:
    """Send one event: a text frame, or an SSE event."""

    event: Json


@dataclass(frozen=True, slots=True)
class Text:
    """Send this text as it is: a frame, or the data of an SSE event, that may not parse."""

    text: str


@dataclass(frozen=True, slots=True)
class Close:
    """Close the WebSocket with this code. Over HTTP: end the body cleanly."""

    code: int = 1000
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Abort:
    """Reset the TCP connection without a farewell."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Send nothing more for ``seconds`` (never scaled), or until the peer leaves."""

    seconds: float | None = None


class Gate:
    """What a response may wait for until a test opens it, with no clock involved."""

    def __init__(self) -> None:
        self.opened = False
        self._waiting: list[Callable[[], None]] = []

    def open(self) -> None:
        self.opened = True
        for wake in self._waiting:
            wake()
        self._waiting.clear()

    def on_open(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` when the gate opens, at once if it is open."""
        if self.opened:
            wake()
        else:
            self._waiting.append(wake)


@dataclass(frozen=True, slots=True)
class Wait:
    """Go on when the gate is open."""

    gate: Gate


Action = Send | Text | Close | Abort | Hang | Wait
Step = tuple[float, Action]
