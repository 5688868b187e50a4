"""A client that leaves before anything was answered: noticed at once, drained within its bound."""

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock

import pytest

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from engine.errors import ConnectFailed
from engine.model import Mode, Policy, Reason, Status
from tests.support.first_turns import FIRST, stack, warm
from tests.support.insides import slow_ping
from tests.support.loopback import LoopbackConnection, Stack
from tests.support.storing import kept, said

PATIENCE = {"first_event_timeout": 600.0, "answer_timeout": 600.0, "idle_timeout": 600.0}
POLICIES = {
    "websocket": Policy(drain_timeout=0.0, **PATIENCE),
    "off": Policy(continuation="off", drain_timeout=0.0, **PATIENCE),
    "store": Policy(continuation="store", drain_timeout=0.0, **PATIENCE),
}


async def left(s: Stack, body: dict, **call) -> None:
    """The turn's client leaves while it waits for an upstream that says nothing."""
    run = s.call(body, **call)
    task = asyncio.create_task(s.driver.run(run))
    await asyncio.sleep(0.01)
    s.driver.client_left(run.turn_id)
    async with asyncio.timeout(5):
        answer = await task
        if answer.streamed:
            async for _ in answer:
                pass


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("transport", ["sse", "http", "ws"])
async def test_silence_is_drained_within_its_bound_and_the_row_says_who_ended_it(policy, transport):
    s = stack(POLICIES[policy])
    s.core.faults.on_request(faults.silence())
    body = {**FIRST, "stream": transport != "http"}
    await left(s, body, transport=transport, socket="c" if transport == "ws" else None)
    assert [(Status.CLIENT_CLOSED, "drain_timeout")] == [(f.status, f.error_code) for f in s.facts]


async def test_the_head_of_an_answer_that_comes_after_the_client_left_gains_no_time():
    s = stack(POLICIES["off"])
    run = s.call({**FIRST, "stream": False}, transport="http")

    async def late(*_):
        s.driver.client_left(run.turn_id)
        return Silent()

    s.http.post = late
    async with asyncio.timeout(5):
        await s.driver.run(run)
    assert Status.CLIENT_CLOSED == s.last.status


class Silent:
    """An answer whose body never comes."""

    status = 200
    headers = (("content-type", "application/json"),)

    async def chunks(self):
        await asyncio.Event().wait()
        yield b""

    async def close(self):
        """There is nothing to give back."""


async def test_a_client_that_leaves_while_a_connection_opens_is_gone_at_once():
    s = stack(POLICIES["websocket"])

    async def slow(*_):
        await asyncio.Event().wait()

    s.sockets.connect = slow
    await left(s, FIRST)
    assert [(Status.CLIENT_CLOSED, 0, None)] == [
        (f.status, f.attempts, f.error_code) for f in s.facts
    ]


async def test_nothing_is_posted_for_a_client_that_left_while_no_connection_could_be_had():
    s = stack(POLICIES["websocket"])
    run = s.call(FIRST)

    async def refused(*_):
        s.driver.client_left(run.turn_id)
        raise ConnectFailed("refused")

    s.sockets.connect = refused
    answer = await s.driver.run(run)
    assert (499, Status.CLIENT_CLOSED, []) == (answer.status, s.last.status, s.core.log)


async def test_who_leaves_while_an_idle_connection_is_tried_is_sent_nothing_and_harms_no_chain():
    s = stack(POLICIES["websocket"])
    body = await warm(s)
    begun, may_end = slow_ping(s)
    run = s.call(body)
    task = asyncio.create_task(s.driver.run(run))
    await begun.wait()
    s.driver.client_left(run.turn_id)
    may_end.set()
    assert (499, 1) == ((await task).status, len(s.core.log))
    await s.turn(body)
    assert (Mode.WS_INCREMENTAL, Reason.OK, None) == said(s)


async def test_nothing_is_posted_again_for_a_client_that_left_at_the_first_attempt():
    s = stack(POLICIES["websocket"])
    s.core.faults.on_request(faults.close(1009))
    run = s.call(FIRST)
    receive = LoopbackConnection.receive

    async def leaving(self):
        s.driver.client_left(run.turn_id)
        return await receive(self)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LoopbackConnection, "receive", leaving)
        answer = await s.driver.run(run)
    assert (499, Status.CLIENT_CLOSED, 1) == (answer.status, s.last.status, len(s.core.log))


async def test_who_left_says_nothing_of_what_the_upstream_keeps():
    s = stack(POLICIES["store"])
    body = await kept(s)
    s.core.faults.on_request(faults.silence())
    await left(s, body)
    await s.turn(body)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)


async def test_the_next_turn_says_that_the_one_before_was_left():
    s = stack(POLICIES["websocket"])
    body = await warm(s)
    s.core.faults.on_request(faults.silence())
    await left(s, body)
    await s.turn(body)
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST, "after_cancel") == said(s)


async def test_the_end_of_a_clients_connection_ends_its_own_turns_alone():
    s = stack(POLICIES["websocket"])
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=1), times=2)
    answers = [await s.answer(FIRST, transport="ws", socket=one, session=one) for one in "ab"]
    s.driver.socket_closed("a")
    gate.open()
    for answer in answers:
        async for _ in answer:
            pass
    assert [Status.CLIENT_CLOSED, Status.COMPLETED] == [facts.status for facts in s.facts]


async def test_who_leaves_while_a_digest_is_worked_out_gives_the_connection_back(monkeypatch):
    s = stack(POLICIES["off"])
    begun = asyncio.Event()
    answer = Silent()
    answer.close = closed = AsyncMock()

    async def slow(*_):
        begun.set()
        await asyncio.Event().wait()

    async def post(*_):
        return answer

    s.http.post = post
    monkeypatch.setattr("engine.relay.Relay.look_ahead", slow)
    task = asyncio.create_task(s.driver.run(s.call(FIRST)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ([Status.CLIENT_CLOSED], 1) == ([f.status for f in s.facts], closed.await_count)
