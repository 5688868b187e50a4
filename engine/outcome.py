"""How a turn can end before its stream begins, and what its client is answered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from engine import failures
from engine.model import ColdCause, Mode, Reason
from engine.turn import Event, Turn


@dataclass(slots=True, eq=False)
class Answer:
    """What the client is answered. Iterate it if ``streamed``, else ``body`` is complete.

    ``frame`` is the provider's own error frame for a client WebSocket, to be relayed as it is.
    """

    turn_id: str
    mode: Mode | None
    reason: Reason | None
    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""
    frame: bytes | None = None
    events: AsyncIterator[Event] | None = None
    batches: AsyncIterator[list[Event]] | None = None
    """The same events, together those that came at once. Iterate one of the two."""
    is_over: Callable[[], bool] = lambda: False
    """Nothing follows the batch that was handed out last."""
    client_left: Callable[[], None] = lambda: None
    """Call it when the client has gone, and keep iterating: the driver drains within its bound."""

    @property
    def streamed(self) -> bool:
        return self.events is not None

    def __aiter__(self) -> AsyncIterator[Event]:
        assert self.events is not None
        return self.events


class Batches(Protocol):
    """The events of an answer, together those that came at once. To be taken to the end or closed.

    It is no generator: one that is not closed would be closed by the event loop some time later,
    which costs every answer more than all that is done here.
    """

    def __aiter__(self) -> Batches: ...

    async def __anext__(self) -> list[Event]: ...

    async def aclose(self) -> None: ...


class OverHttp(Exception):
    """The turn has to go over HTTP, for this reason."""

    def __init__(self, reason: Reason, cause: str | None) -> None:
        super().__init__(reason)
        self.reason, self.cause = reason, cause


class Again(Exception):
    """The turn was provably not processed: once more, in full, on a fresh connection."""

    def __init__(self, cold: ColdCause, reason: Reason, cause: str | None) -> None:
        super().__init__(reason)
        self.cold, self.reason, self.cause = cold, reason, cause


class Ended(Exception):
    """The turn ends here with an answer that is no stream."""

    def __init__(
        self,
        status: int,
        body: bytes,
        headers: list[tuple[str, str]] | None = None,
        frame: bytes | None = None,
    ) -> None:
        super().__init__(status)
        self.status, self.body, self.headers, self.frame = status, body, headers or [], frame


def lost(turn: Turn, cause: str) -> Ended:
    """The upstream was lost before anything was answered; what it did with the turn is unknown."""
    turn.error_code = cause
    timed_out = cause.endswith("timeout")
    message = "The upstream did not answer in time." if timed_out else "The upstream was lost."
    if cause.startswith("connect_"):
        message = "The upstream could not be reached. Check its address and the network."
    status = 504 if timed_out else 502
    return Ended(status, failures.synthetic(status, cause, message))


def left() -> Ended:
    """The client has gone, and what was under way is not waited for any longer."""
    return Ended(499, b"")


def timed_out(turn: Turn, cause: str) -> Ended:
    """Nothing came in time. For a client that has left that is the end of the drain."""
    if not turn.gone:
        return lost(turn, cause)
    turn.error_code = "drain_timeout"
    return left()


def name_of(error: BaseException) -> str:
    """What may be logged of an exception: its text may repeat what was sent."""
    return type(error).__name__


def nested(event: Event) -> Event:
    """An error in the middle of a stream, for a client socket: flatter ones hang Codex."""
    failure = failures.read(event.data)
    return event if failure.has_status else Event(failure.frame())


class Singly:
    """The events of batches, one by one; closing it closes the batches."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._events: Iterator[Event] = iter(())

    def __aiter__(self) -> Singly:
        return self

    async def __anext__(self) -> Event:
        while True:
            event = next(self._events, None)
            if event is not None:
                return event
            self._events = iter(await anext(self._batches))

    async def aclose(self) -> None:
        await self._batches.aclose()
