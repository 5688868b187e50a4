"""A turn is sent again only where it provably was not processed (DESIGN 4.1)."""

from __future__ import annotations

from app.demo.provider import faults
from engine.errors import ConnectionLost
from engine.model import Policy, Reason, Status
from tests.support.first_turns import FIRST, after, stack, warm
from tests.support.provider import user


async def test_a_frame_that_may_have_left_is_not_sent_again():
    s = stack()
    body = await warm(s)

    async def lost(frame: bytes) -> None:
        raise ConnectionLost(None, sent=True)

    s.sockets.opened[0].send = lost
    answer = await s.answer(body)
    assert 502 == answer.status
    assert 1 == len(s.core.log)


async def test_a_failed_response_is_not_sent_again_though_its_error_is_bare():
    s = stack()
    body = await warm(s)
    failed = {
        "type": "response.failed",
        "response": {"id": "resp_x", "status": "failed", "error": {"type": "server_error"}},
    }
    s.core.faults.on_request(faults.extra_event(failed, after=0))
    await s.turn(body)
    assert (Status.FAILED, 1) == (s.last.status, s.last.attempts)


async def test_an_error_to_a_clients_own_anchor_is_relayed_and_not_replaced():
    s = stack()
    first = {**FIRST, "store": True}
    await s.turn(first, transport="ws", socket="c")
    named = {**first, "input": [user("x")], "previous_response_id": s.last.response_id}
    s.core.faults.on_request(faults.connection_limit_reached())
    answer = await s.answer(named, transport="ws", socket="c")
    assert b"websocket_connection_limit_reached" in answer.body


async def test_a_repeat_that_is_refused_at_the_door_was_no_incremental_turn():
    s = stack()
    events = await s.turn(FIRST)
    s.core.faults.on_request(faults.previous_response_not_found())
    s.core.faults.on_upgrade(faults.RefuseUpgrade(429))
    await s.turn(after(events, FIRST))
    assert (None, Reason.PREVIOUS_RESPONSE_NOT_FOUND) == (s.last.mode, s.last.reason)
    assert (None, None) == (s.last.previous_response_id, s.last.items_sent)


async def test_a_warm_up_is_never_a_generation_even_where_nothing_is_continued():
    s = stack(Policy(continuation="off"))
    await s.turn({**FIRST, "generate": False}, transport="ws", socket="c")
    assert [] == [entry for entry in s.core.log if entry.body.get("generate") is not False]
    assert 1 == len(s.facts)
