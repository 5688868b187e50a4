"""Couriers with receivers of a test, and a sender that does as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy import Engine

from app.alerts.courier import Courier
from app.alerts.endpoints import Endpoint, Kind
from app.alerts.guard import Guard
from app.alerts.webhook import Result, Sender
from app.clock import Clock
from tests.support.deliveries import Party, logged, stored
from tests.support.receiver import SECRET, Receiver

LEASE = 60.0
Make = Callable[..., Courier]


class Directory:
    """Receivers of a test, by id."""

    def __init__(self, **receivers: Receiver | None) -> None:
        self.known = {name: Party(name, name) for name in receivers}
        self.endpoints: dict[str, Endpoint | Exception] = {
            name: Endpoint(receiver.url, (receiver.secret,), Kind.WEBHOOK, receiver.shown)
            for name, receiver in receivers.items()
            if receiver is not None
        }

    def all(self) -> list[Party]:
        return list(self.known.values())

    def endpoint(self, id_: str) -> Endpoint:
        found = self.endpoints[id_]
        if isinstance(found, Exception):
            raise found
        return found

    def disable(self, id_: str, why: str) -> None:
        self.known[id_] = replace(self.known[id_], disabled=why)


class Held:
    """A sender that holds every send until told what became of it."""

    def __init__(self) -> None:
        self.sends: dict[str, asyncio.Future[Result]] = {}
        self.begun: list[str] = []
        self.changed = asyncio.Condition()

    async def send(self, endpoint, delivery_id, body, timestamp) -> Result:
        answer = asyncio.get_running_loop().create_future()
        self.sends[delivery_id] = answer
        self.begun.append(delivery_id)
        async with self.changed:
            self.changed.notify_all()
        return await answer

    async def reached(self, count: int) -> None:
        async with asyncio.timeout(20), self.changed:
            await self.changed.wait_for(lambda: len(self.begun) >= count)

    def answer(self, delivery_id: str, status: int = 200) -> None:
        self.sends[delivery_id].set_result(Result(status, f"HTTP {status}"))


@asynccontextmanager
async def couriers(engine: Engine, clock: Clock) -> AsyncIterator[Make]:
    """``make(receivers, sender)`` gives a courier that stands for a process; without a sender it
    sends for real, to loopback. All are closed at the end."""
    made: list[Courier] = []
    loops: list[asyncio.Task[None]] = []

    def make(
        receivers: Any,
        sender: Any = None,
        *,
        on: Engine = engine,
        run: bool = False,
        **options: Any,
    ) -> Courier:
        sender = sender or Sender(Guard(["127.0.0.1"]), 20)
        options.setdefault("lease", LEASE)
        courier = Courier(on, clock, receivers, sender, lambda: 0.5, **options)
        made.append(courier)
        if run:
            loops.append(asyncio.ensure_future(courier.run()))
        return courier

    yield make
    for courier in made:
        await courier.aclose(grace=0)
    await asyncio.gather(*loops)


def endpoint(url: str = "http://a.example") -> Endpoint:
    return Endpoint(url, (SECRET,), Kind.WEBHOOK, url)


def directory(*names: str) -> Directory:
    """Receivers that only a ``Held`` sender gets to."""
    found = Directory(**dict.fromkeys(names))
    found.endpoints = {name: endpoint() for name in names}
    return found


def states(engine: Engine, *ids: str) -> list[str]:
    return [stored(engine, id_).state for id_ in ids]


def log_of(engine: Engine, delivery_id: str) -> list[tuple[int, int | None, str]]:
    return [(row.attempt, row.status, row.outcome) for row in logged(engine, delivery_id)]
