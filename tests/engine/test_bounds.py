"""What is kept is bounded, and what is in use is spared (DESIGN 4.2)."""

from __future__ import annotations

import asyncio

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from engine.model import Mode
from tests.support.first_turns import FIRST, after, stack
from tests.support.insides import bounded, chains, scopes, settled
from tests.support.provider import user


async def test_a_session_in_use_is_not_forgotten():
    s = bounded(stack(), sessions=1)
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=1))
    s.sockets.connect, connect = None, s.sockets.connect
    waiting = asyncio.Event()

    async def slow(*args):
        s.sockets.connect = connect
        await waiting.wait()
        return await connect(*args)

    s.sockets.connect = slow
    task = asyncio.create_task(s.turn(FIRST, session="a"))
    await settled()
    gate.open()
    await s.turn(FIRST, session="b")
    waiting.set()
    events = await task
    assert len(chains(s)) == len(s.driver._keeper.connections)
    await s.turn(after(events, FIRST), session="a")
    assert Mode.WS_INCREMENTAL == s.last.mode


async def test_sessions_whose_turns_fail_are_bounded_like_all_others():
    s = bounded(stack(), sessions=2)
    for n in range(10):
        s.core.faults.on_request(faults.ErrorFrame("invalid_prompt", status=400))
        await s.turn(FIRST, session=f"s{n}")
    assert scopes(s) <= 2
    assert 10 == len(s.facts)


async def test_connections_that_are_being_opened_count_towards_the_limit():
    s = bounded(stack(), connections=1)
    connect, gate = s.sockets.connect, asyncio.Event()

    async def slow(*args):
        await gate.wait()
        return await connect(*args)

    s.sockets.connect = slow
    first = asyncio.create_task(s.turn(FIRST, session="a"))
    await settled()
    await s.turn(FIRST, session="b")
    assert (Mode.HTTP_FULL, "no_connection_free") == (s.last.mode, s.last.fallback_reason)
    gate.set()
    await first
    assert 1 == len(s.sockets.opened)


async def test_live_baselines_are_within_the_byte_bound_too():
    s = bounded(stack(), bytes=3000)
    for n in range(12):
        await s.turn({**FIRST, "input": [user("x" * 500)]}, session=f"s{n}")
    assert s.driver.sessions._bytes <= 3000
    assert len(chains(s)) == len(s.driver._keeper.connections)
