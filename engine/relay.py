"""The events of an answer on their way to the client: relayed as received, and noted.

The turn is concluded before its terminal event is handed out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from functools import partial

from engine import failures
from engine.aside import LARGE, aside
from engine.endings import Endings
from engine.errors import UpstreamError
from engine.keeper import Keeper
from engine.model import ColdCause
from engine.outcome import Answer, Singly, nested
from engine.stream import is_delta
from engine.transports.base import Clock
from engine.turn import Event, Turn
from engine.waiting import Patience
from engine.wires import HttpWire, Wire

_MOST_AT_ONCE = 64 * 1024
"""Bytes of events that are handed out together, at most one event more."""

_SMALL = 64 * 1024
"""Bytes of a request whose turn is concluded in no time. The first event of the answer to a larger
one is handed out before what came with it, which takes its time."""


class Relay:
    """One for all turns: what it knows of each is in the turn."""

    def __init__(self, *, keeper: Keeper, endings: Endings, clock: Clock) -> None:
        self._keeper, self._endings, self._clock = keeper, endings, clock

    def client_left(self, turn: Turn) -> None:
        """The client of this turn is gone: drain what is under way, within the policy's bound."""
        if turn.gone or turn.fold.terminal is not None:
            return
        turn.gone = True
        # What was not sent yet has nothing to be drained.
        drain = turn.call.upstream.policy.drain_timeout if turn.attempts else 0.0
        turn.deadline = asyncio.get_running_loop().time() + drain
        if turn.timer is not None and (turn.timer.when() or 0) > turn.deadline:
            turn.timer.reschedule(turn.deadline)

    async def look_ahead(self, turn: Turn, size: int) -> None:
        """While the upstream works on a large request: what its end needs to know of it."""
        if size >= LARGE and turn.staged is not None:
            staged = turn.staged
            await aside(size, lambda: self._keeper.digest_of(staged))

    async def respond(
        self,
        turn: Turn,
        wire: Wire,
        held_back: list[Event],
        status: int,
        headers: list[tuple[str, str]],
    ) -> Answer:
        """Stream the events, or gather them for a client that wants one JSON answer."""
        batches = _Relayed(self, turn, wire, held_back)
        await batches.begin()
        if turn.call.transport != "http":
            answer = self._endings.plain(turn, status, b"", headers)
            answer.batches, answer.events = batches, Singly(batches)
            answer.is_over = batches.is_over
            answer.client_left = partial(self.client_left, turn)
            return answer
        last = Event(b"")
        async for batch in batches:
            last = batch[-1]
        body = turn.fold.complete_response()
        if body is not None and turn.lost is None:
            return self._endings.plain(turn, 200, body, [("content-type", "application/json")])
        failure = failures.read(last.data)
        return self._endings.plain(turn, 502 if turn.lost else failure.status, failure.body, [])

    def batch(self, turn: Turn, wire: Wire, first: Event) -> list[Event]:
        """An event, and those behind it that need not be waited for; none behind the terminal."""
        batch: list[Event] = []
        size, fold, take = 0, turn.fold, wire.take
        event: Event | None = first
        while event is not None:
            data = event.data
            if data and not (fold.has_output and is_delta(data)):
                kind = fold.feed(data)
                if turn.ttft_ms is None or fold.turn_state is not None or fold.terminal is not None:
                    self.note(turn)
                if kind == "error" and turn.call.transport == "ws":
                    event = nested(event)
            batch.append(event)
            size += len(data)
            if fold.terminal is not None or size > _MOST_AT_ONCE:
                break
            event = take()
        return batch

    def note(self, turn: Turn) -> None:
        """What the events so far say of the turn; the terminal one concludes it."""
        fold = turn.fold
        if turn.first_event_ms is None:
            turn.first_event_ms = turn.since(self._clock.monotonic())
        if turn.ttft_ms is None and fold.has_output:
            turn.ttft_ms = turn.since(self._clock.monotonic())
        if fold.turn_state is not None and turn.call.turn_group:
            turn.scope.turn_states[turn.call.turn_group] = fold.turn_state
        if fold.terminal is not None and not turn.ended:
            self._endings.conclude(turn)

    def broken_off(self, turn: Turn, error: Exception) -> Event:
        """The one ``response.failed`` that tells a client its stream was lost."""
        timed_out = isinstance(error, TimeoutError)
        late = "drain_timeout" if turn.gone else "idle_timeout"
        turn.lost = late if timed_out else "connection_lost"
        if not turn.gone and turn.over_socket:
            self._keeper.lost_one(turn)
        cold = ColdCause.AFTER_TIMEOUT if timed_out else ColdCause.CLOSED
        self._keeper.abandon(turn, ColdCause.AFTER_CANCEL if turn.gone else cold)
        self._endings.emit(turn)
        return Event(
            failures.failed_event(
                turn.fold.response_id, "server_error", "The upstream connection was lost."
            )
        )

    def leave(self, turn: Turn) -> None:
        """Nobody takes the events any more: a turn that is not over ends here."""
        if not turn.ended:
            turn.gone = turn.gone or turn.lost is None
            self._keeper.abandon(turn, ColdCause.AFTER_CANCEL)
            self._endings.emit(turn)

    def limit(self, turn: Turn, within: float) -> AbstractAsyncContextManager[None]:
        """A time-out for what the turn waits for; it comes sooner once its client has left."""
        when = asyncio.get_running_loop().time() + within
        if turn.deadline is not None:
            when = min(when, turn.deadline)
        timer = turn.timer = turn.timer or Patience()
        return timer.until(when)

    async def next(self, turn: Turn, wire: Wire, within: float) -> Event:
        """The wire's next event. Raises ``TimeoutError`` after ``within`` seconds."""
        event = wire.take()
        if event is not None:
            return event
        async with self.limit(turn, within):
            return await wire.next()

    async def whole(self, turn: Turn, wire: HttpWire) -> bytes:
        """The body of an answer that is no stream. Raises ``TimeoutError``."""
        async with self.limit(turn, turn.call.upstream.policy.idle_timeout):
            try:
                return await wire.whole()
            finally:
                await wire.close()


class _Relayed:
    """All events of an answer as received.

    The turn is concluded before its terminal event is handed out.
    """

    __slots__ = ("_ahead", "_is_over", "_relay", "_rest", "_turn", "_wire")

    def __init__(self, relay: Relay, turn: Turn, wire: Wire, held_back: list[Event]) -> None:
        self._relay, self._turn, self._wire = relay, turn, wire
        self._ahead = held_back
        self._rest: AsyncGenerator[Event, None] | None = None
        self._is_over = False

    def is_over(self) -> bool:
        """Nothing follows what was handed out."""
        return self._is_over and not self._ahead

    async def begin(self) -> None:
        """Note what was held back, or wait for the first events."""
        turn = self._turn
        if not self._ahead:
            self._ahead = await anext(self, [])
            return
        try:
            self._relay.note(turn)
            if turn.fold.terminal is None and turn.bytes_sent < _SMALL:
                event = self._wire.take()
                if event is not None:
                    self._ahead += self._relay.batch(turn, self._wire, event)
            if turn.fold.terminal is not None:
                await self._end()
        except BaseException:  # a fault of ours; how the turn ends is for the driver to say
            await self._wire.close()
            raise

    def __aiter__(self) -> _Relayed:
        return self

    async def __anext__(self) -> list[Event]:
        if self._ahead:
            ahead, self._ahead = self._ahead, []
            return ahead
        if self._is_over:
            raise StopAsyncIteration
        try:
            if self._rest is not None:
                return [await anext(self._rest)]
            return await self._following()
        except BaseException:
            await self.aclose()
            raise

    async def _following(self) -> list[Event]:
        relay, turn, wire = self._relay, self._turn, self._wire
        try:
            event = await relay.next(turn, wire, turn.call.upstream.policy.idle_timeout)
        except (UpstreamError, TimeoutError) as error:
            broken_off = relay.broken_off(turn, error)
            await self.aclose()
            return [broken_off]
        batch = relay.batch(turn, wire, event)
        if turn.fold.terminal is not None:
            await self._end()
        return batch

    async def _end(self) -> None:
        """The terminal event was seen: what may follow it is not of the response."""
        self._rest = self._wire.rest()
        if self._rest is None:
            await self.aclose()

    async def aclose(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        try:
            self._relay.leave(self._turn)
            if self._rest is not None:
                await self._rest.aclose()
        finally:
            await self._wire.close()
