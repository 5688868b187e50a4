"""A second gateway beside one that only observes: continuation is on, and its upstream answers alike.

The twin gets each request in the same order, and from its upstream the very events that the observed
one was answered with. So what it does is what the observed rows should say could have been.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from engine.driver import Answer, Call, Driver, Event, Upstream
from engine.errors import ConnectionLost
from engine.model import Policy, Reason, TurnFacts
from engine.sessions import Bounds
from tests.support.clock import ManualClock

_LOST = frozenset({"connection_lost", "first_event_timeout", "idle_timeout"})
"""What the gateway itself says of an upstream that it lost."""
_SAME = (
    "kind", "epoch", "epoch_turn", "epoch_reset_reason", "changed_fields", "evidence",
    "baseline_items", "items_total", "baseline_digest", "status",
)  # fmt: skip


@dataclass(slots=True, eq=False)
class _Script:
    """What the upstream answers to one turn, as it becomes known."""

    events: list[bytes] = field(default_factory=list)
    lost: bool = False
    whole: Answer | None = None
    """All that came, where it came in one piece."""
    is_over: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def at(self, place: int) -> bytes:
        while len(self.events) <= place:
            if self.lost or self.is_over:
                raise ConnectionLost(None, sent=True)
            self.news.clear()
            await self.news.wait()
        return self.events[place]

    def add(self, data: bytes) -> None:
        self.events.append(data)
        self.news.set()

    def end(self) -> None:
        self.is_over = True
        self.news.set()

    def lose(self) -> None:
        self.lost = True
        self.news.set()


_script: ContextVar[_Script] = ContextVar("script")
"""Of the turn that runs in this task."""


class _Connection:
    def __init__(self) -> None:
        self.closed = False
        self._script = _Script()
        self._place = 0

    async def send(self, frame: bytes) -> None:
        self._script, self._place = _script.get(), 0

    async def receive(self) -> bytes:
        try:
            data = await self._script.at(self._place)
        except ConnectionLost:
            self.closed = True
            raise
        self._place += 1
        return data

    def take(self) -> bytes | None:
        return None

    async def ping(self, within: float) -> bool:
        return True

    async def close(self) -> None:
        self.closed = True


class _Sockets:
    async def connect(self, url: str, headers: Any, within: float) -> _Connection:
        return _Connection()


class _HttpAnswer:
    def __init__(self, script: _Script) -> None:
        self.status = 200 if script.whole is None else script.whole.status
        kind = "text/event-stream" if script.whole is None else "application/json"
        self.headers = [("content-type", kind)]
        self._script = script

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._script.whole is not None:
            yield self._script.whole.body
            return
        for place in itertools.count():
            if self._script.is_over and place == len(self._script.events):
                return
            yield b"data: " + await self._script.at(place) + b"\n\n"

    async def close(self) -> None:
        """Nothing is open."""


class _Http:
    async def post(self, url: str, headers: Any, body: bytes, within: float) -> _HttpAnswer:
        return _HttpAnswer(_script.get())


class Twin:
    def __init__(
        self, policy: Policy, bounds: Bounds, clock: ManualClock, rows: list[TurnFacts]
    ) -> None:
        # It waits while others' turns take their time; what is lost it is told.
        self._policy = replace(
            policy, continuation="websocket", first_event_timeout=1e9, idle_timeout=1e9
        )
        self._observed = rows
        self.rows: dict[str, TurnFacts] = {}
        self._names: dict[str, str] = {}
        """Of sessions without a name, by the observed gateway's: the twin's."""
        ids = itertools.count()
        self.driver = Driver(
            websocket=_Sockets(),
            http=_Http(),
            clock=clock,
            new_id=lambda prefix: f"{prefix}{next(ids)}",
            key=b"test key",
            on_turn=lambda row: self.rows.__setitem__(row.turn_id, row),
            bounds=bounds,
        )

    async def begin(self, call: Call, answer: Answer) -> None:
        """The observed gateway has begun to answer: let the twin answer, step by step with it."""
        upstream = Upstream(call.upstream.name, call.upstream.base_url, self._policy)
        script = _Script()
        if not answer.streamed:
            self._whole(script, call, answer)
        task = asyncio.ensure_future(self._follow(replace(call, upstream=upstream), script))
        if not answer.streamed:
            await task
            return
        assert answer.events is not None
        answer.events = self._tee(call.turn_id, answer.events, script, task)
        answer.client_left = _both(
            answer.client_left, lambda: self.driver.client_left(call.turn_id)
        )
        for _ in range(4):
            await asyncio.sleep(0)  # it decides now, as the observed one has

    async def _follow(self, call: Call, script: _Script) -> None:
        _script.set(script)
        answer = await self.driver.run(call)
        if answer.streamed:
            async for _event in answer:
                pass

    def _whole(self, script: _Script, call: Call, answer: Answer) -> None:
        """An answer that came in one piece, as events; or an error."""
        if self._is_lost(call.turn_id):
            script.lose()
            return
        script.whole = answer
        if answer.status != 200:
            error = json.loads(answer.body or b"{}").get("error")
            frame = {"type": "error", "status": answer.status, "error": error}
            script.events = [answer.frame or json.dumps(frame).encode()]
        else:
            script.events = list(_events(answer.body))

    async def _tee(
        self, turn_id: str, events: AsyncIterator[Event], script: _Script, task: asyncio.Task[None]
    ) -> AsyncIterator[Event]:
        try:
            async for event in events:
                if self._is_lost(turn_id):
                    script.lose()
                elif event.data:
                    script.add(event.data)
                for _ in range(4):
                    await asyncio.sleep(0)
                yield event
            script.end()
            await task
        finally:
            await events.aclose()  # type: ignore[attr-defined]
            if not task.done():
                task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def reset_epoch(self, tenant: str, upstream: str, session: str, reason: str) -> None:
        """As the driver's, by the observed gateway's name of the session."""
        self.driver.reset_epoch(tenant, upstream, self._names.get(session, session), reason)

    def _is_lost(self, turn_id: str) -> bool:
        rows = (row for row in reversed(self._observed) if row.turn_id == turn_id)
        row = next(rows, None)
        return row is not None and row.error_code in _LOST

    def differs(self, row: TurnFacts) -> str | None:
        """What the observed row says that could have been, and the twin has not done."""
        mine = self.rows[row.turn_id]
        self._names[row.session] = mine.session
        if mine.attempts > 1 or mine.mode is None:
            return None  # it has sent again what the observed client was told to send again
        said, done = (row.shadow_mode, row.shadow_reason), (mine.mode, mine.reason)
        if said != done:
            return f"shadow {said[0]} {said[1]}, done was {done[0]} {done[1]}"
        if mine.reason is Reason.CLIENT_ANCHORED:
            return None
        for name in _SAME:
            if getattr(row, name) != getattr(mine, name):
                return f"{name} {getattr(row, name)}, not {getattr(mine, name)}"
        return None


def _both(one: Callable[[], None], other: Callable[[], None]) -> Callable[[], None]:
    def call() -> None:
        one()
        other()

    return call


class _Response(msgspec.Struct):
    output: list[msgspec.Raw] = []
    status: str = "completed"


def _events(body: bytes) -> Iterator[bytes]:
    """The events of an answer in one piece, its items as they stand there."""
    response = msgspec.json.decode(body, type=_Response)
    yield b'{"type": "response.created", "response": ' + body + b"}"
    for index, item in enumerate(response.output):
        head = f'{{"type": "response.output_item.done", "output_index": {index}, "item": '
        yield head.encode() + bytes(item) + b"}"
    yield f'{{"type": "response.{response.status}", "response": '.encode() + body + b"}"
