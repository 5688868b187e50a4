"""However a turn ends, it holds no chain and no lease behind: DESIGN 4.1 and 4.2."""

from __future__ import annotations

import asyncio

import pytest

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from engine.chain import ChainState
from engine.errors import ConnectionLost
from engine.model import Reason
from tests.support.first_turns import FIRST, stack, warm
from tests.support.insides import bounded, chains, settled, slow_ping
from tests.support.provider import user


async def test_a_turn_cancelled_during_the_ping_leaves_no_busy_chain():
    s = stack()
    body = await warm(s)
    begun, _ = slow_ping(s)
    task = asyncio.create_task(s.answer(body))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await settled()
    assert [] == [c for c in chains(s) if c.state is ChainState.BUSY]
    assert s.sockets.opened[0].closed
    assert 2 == len(s.facts)


async def test_a_ping_that_fails_in_any_way_costs_only_its_connection():
    s = stack()
    body = await warm(s)

    async def broken(within: float) -> bool:
        raise RuntimeError("ping")

    s.sockets.opened[0].ping = broken
    s.clock.advance(11)
    events = await s.turn(body)
    assert "response.completed" == events[-1]["type"]
    assert [] == [c for c in chains(s) if c.state is ChainState.BUSY]


async def test_a_frame_refused_with_1009_leaves_no_busy_chain():
    s = stack()
    body = await warm(s)

    async def too_big(frame: bytes) -> None:
        raise ConnectionLost(1009, sent=False)

    s.sockets.opened[0].send = too_big
    await s.turn(body)
    await settled()
    assert Reason.PAYLOAD_TOO_LARGE == s.last.reason
    assert [] == [c for c in chains(s) if c.state is ChainState.BUSY]
    assert s.sockets.opened[0].closed


async def test_a_turn_on_another_sessions_response_leaves_no_busy_chain():
    s = stack()
    first = {**FIRST, "store": True}
    await s.turn(first, transport="ws", socket="c")
    named = {**first, "input": [user("x")], "previous_response_id": s.last.response_id}
    s.core.faults.on_request(faults.abort(after=1))
    await s.turn(named, transport="ws", socket="c", session="other")
    await settled()
    assert [] == [c for c in chains(s) if c.state is ChainState.BUSY]
    assert all(c.closed for c in s.sockets.opened)
    assert len(chains(s)) == len(s.driver._keeper.connections) == 0


async def test_a_socket_leases_only_the_chain_that_last_answered_it():
    s = bounded(stack(), chains_per_session=2)
    for n in range(6):
        await s.turn({**FIRST, "input": [user(f"fork {n}")]}, transport="ws", socket="c")
    assert len(chains(s)) <= 2
    assert 1 == sum(c.leased_by is not None for c in chains(s))


async def test_a_socket_that_ends_during_its_turn_leases_nothing():
    s = stack()
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=2))
    answer = await s.answer(FIRST, transport="ws", socket="c")
    answer.client_left()
    s.driver.socket_closed("c")
    gate.open()
    async for _ in answer:
        pass
    assert [None] == [c.leased_by for c in chains(s)]


async def test_an_answer_that_is_never_read_still_is_one_row():
    s = stack()
    answer = await s.answer(FIRST)
    await answer.events.aclose()
    del answer
    await settled()
    assert 1 == len(s.facts)
    assert [] == [c for c in chains(s) if c.state is ChainState.BUSY]


@pytest.mark.parametrize("code", [1009])
async def test_an_anchored_frame_of_a_client_that_is_too_big_goes_over_http_as_one_row(code):
    s = stack()
    first = {**FIRST, "store": True}
    await s.turn(first, transport="ws", socket="c")
    named = {**first, "input": [user("x")], "previous_response_id": s.last.response_id}
    s.core.faults.on_request(faults.close(code))
    await s.turn(named, transport="ws", socket="c")
    await settled()
    assert (Reason.CLIENT_ANCHORED, None) == (s.last.reason, s.last.connection)
    assert 2 == len(s.facts)
    assert [] == chains(s)
