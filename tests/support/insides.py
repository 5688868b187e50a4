"""A look into the driver: its chains, its scopes, and what it does between two steps."""

from __future__ import annotations

import asyncio

from engine.chain import Chain
from engine.driver import Driver
from engine.sessions import Bounds
from tests.support.loopback import LoopbackHttp, Stack


def bounded(s: Stack, **bounds: int) -> Stack:
    s.driver = Driver(
        websocket=s.sockets,
        http=LoopbackHttp(s.core),
        clock=s.clock,
        new_id=lambda prefix: f"{prefix}{next(s._ids)}",
        key=b"test key",
        on_turn=s.facts.append,
        bounds=Bounds(**bounds),
    )
    return s


def chains(s: Stack) -> list[Chain]:
    return [c for scope in s.driver.sessions.scopes() for c in scope.chains.values()]


def scopes(s: Stack) -> int:
    return len(list(s.driver.sessions.scopes()))


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def slow_ping(s: Stack) -> tuple[asyncio.Event, asyncio.Event]:
    """The first connection's ping waits: it has begun, it may end."""
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def ping(within: float) -> bool:
        begun.set()
        await may_end.wait()
        return True

    s.sockets.opened[0].ping = ping
    s.clock.advance(11)
    return begun, may_end
