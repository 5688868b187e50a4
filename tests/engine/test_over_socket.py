"""Which connection a turn takes, and what a failure before its first event comes to."""

from __future__ import annotations

import json

import pytest

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from engine.model import Mode, Policy, Reason, Status
from tests.support.first_turns import FIRST, after, stack, warm
from tests.support.provider import user


async def test_a_turn_that_extends_the_last_one_sends_only_the_new_items():
    s = stack()
    body = await warm(s)
    await s.turn(body)
    assert (Mode.WS_INCREMENTAL, Reason.OK, 1, 3) == (
        s.last.mode,
        s.last.reason,
        s.last.items_sent,
        s.last.items_total,
    )
    sent = s.core.log[-1].body
    assert [user("more")] == sent["input"]
    assert s.last.prefix_digest == s.facts[0].baseline_digest


async def test_a_connection_closed_between_turns_is_replaced_before_anything_is_sent():
    s = stack()
    body = await warm(s)
    s.sockets.opened[0].drop(1000)
    await s.turn(body)
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST, "closed", 1) == (
        s.last.mode,
        s.last.reason,
        s.last.fallback_reason,
        s.last.attempts,
    )
    assert s.core.log[-1].previous_response_id is None
    assert s.last.eligible


async def test_an_idle_connection_that_answers_no_ping_is_not_used():
    s = stack()
    body = await warm(s)
    s.clock.advance(11)

    async def dead(within: float) -> bool:
        return False

    s.sockets.opened[0].ping = dead
    await s.turn(body)
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST) == (s.last.mode, s.last.reason)
    assert 2 == len(s.sockets.opened)


@pytest.mark.parametrize("shape", ["nested", "no_status", "flat", "failed"])
async def test_a_rejected_continuation_is_sent_once_in_full_whatever_its_shape(shape):
    s = stack()
    body = await warm(s)
    s.core.faults.on_request(faults.previous_response_not_found(shape=shape))
    events = await s.turn(body)
    assert "response.completed" == events[-1]["type"]
    assert (Mode.WS_FULL, Reason.PREVIOUS_RESPONSE_NOT_FOUND, 2) == (
        s.last.mode,
        s.last.reason,
        s.last.attempts,
    )
    await s.turn(after(events, body))
    assert (Mode.WS_INCREMENTAL, Reason.OK) == (s.last.mode, s.last.reason)


async def test_a_connection_at_its_limit_is_replaced_once_and_a_second_error_is_the_clients():
    s = stack()
    body = await warm(s)
    s.core.faults.on_request(faults.connection_limit_reached())
    events = await s.turn(body)
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST, "limit_reached") == (
        s.last.mode,
        s.last.reason,
        s.last.fallback_reason,
    )
    s.core.faults.on_request(faults.connection_limit_reached(), times=2)
    answer = await s.answer(after(events, body))
    assert 400 == answer.status
    assert b"websocket_connection_limit_reached" in answer.body
    assert 2 == s.last.attempts


async def test_a_connection_older_than_its_age_limit_starts_a_new_epoch():
    s = stack()
    body = await warm(s)
    s.clock.advance(55 * 60)
    await s.turn(body)
    assert (Reason.EPOCH_RESET, "connection_age", 2, 1) == (
        s.last.reason,
        s.last.epoch_reset_reason,
        s.last.epoch,
        s.last.epoch_turn,
    )


async def test_a_loss_before_the_first_event_is_answered_as_502_and_not_sent_again():
    s = stack()
    body = await warm(s)
    s.core.faults.on_request(faults.abort())
    answer = await s.answer(body)
    assert (502, Status.ERROR, 1) == (answer.status, s.last.status, s.last.attempts)
    assert "connection_lost" == s.last.error_code
    await s.turn(body)
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST) == (s.last.mode, s.last.reason)


async def test_the_setting_retry_ambiguous_sends_such_a_turn_once_more():
    s = stack(Policy(retry_ambiguous=True))
    body = await warm(s)
    s.core.faults.on_request(faults.abort())
    events = await s.turn(body)
    assert "response.completed" == events[-1]["type"]
    assert 2 == s.last.attempts


async def test_one_refused_upgrade_of_the_server_kind_is_tried_again():
    s = stack()
    s.core.faults.on_upgrade(faults.RefuseUpgrade(503))
    await s.turn(FIRST)
    assert Mode.WS_FULL == s.last.mode


@pytest.mark.parametrize("status", [401, 429])
async def test_401_and_429_reach_the_client_with_their_headers_and_do_not_fall_back(status):
    s = stack()
    s.core.faults.on_upgrade(faults.RefuseUpgrade(status, headers=(("retry-after", "7"),)))
    answer = await s.answer(FIRST)
    assert status == answer.status
    assert ("retry-after", "7") in answer.headers
    assert [] == s.core.log
    assert (Status.RATE_LIMITED if status == 429 else Status.ERROR) == s.last.status


async def test_close_1009_goes_over_http_at_once():
    s = stack()
    s.core.faults.on_request(faults.close(1009))
    events = await s.turn(FIRST)
    assert "response.completed" == events[-1]["type"]
    assert (Mode.HTTP_FULL, Reason.PAYLOAD_TOO_LARGE, "closed_1009") == (
        s.last.mode,
        s.last.reason,
        s.last.fallback_reason,
    )


async def test_what_is_too_large_when_it_is_sent_again_is_not_sent_a_third_time():
    s = stack()
    body = await warm(s)
    s.core.faults.on_request(faults.previous_response_not_found())
    s.core.faults.on_request(faults.close(1009), when=lambda a: not a.previous_response_id)
    answer = await s.answer(body)
    assert (502, 2, 3, "closed_1009") == (
        answer.status,
        s.last.attempts,
        len(s.core.log),
        s.last.error_code,
    )
    await s.turn(body)
    assert Status.COMPLETED == s.last.status


async def test_a_bare_server_error_before_any_event_is_tried_once_more():
    s = stack()
    raw = {"type": "error", "error": {"type": "server_error", "code": None, "message": "Sorry."}}
    s.core.faults.on_request(faults.ErrorFrame("server_error", None, raw=raw))
    events = await s.turn(FIRST)
    assert "response.completed" == events[-1]["type"]
    assert 2 == s.last.attempts


async def test_a_parallel_turn_does_not_wait_and_leaves_the_busy_chain_alone():
    s = stack()
    body = await warm(s)
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=1))
    first = await s.answer(body)
    second = await s.turn({**body, "input": [*body["input"][:-1], user("aside")]})
    assert "response.completed" == second[-1]["type"]
    assert (Mode.WS_FULL, Reason.CHAIN_BUSY) == (s.last.mode, s.last.reason)
    gate.open()
    events = [json.loads(event.data) async for event in first]
    await s.turn(after(events, body))
    assert (Mode.WS_INCREMENTAL, Reason.OK) == (s.last.mode, s.last.reason)


async def test_a_second_loss_in_one_turn_is_the_clients():
    s = stack(Policy(retry_ambiguous=True))
    s.core.faults.on_request(faults.abort(), times=2)
    answer = await s.answer(FIRST)
    assert (502, 2, "closed") == (answer.status, s.last.attempts, s.last.error_code)


async def test_a_clients_own_anchor_is_never_sent_again():
    s = stack(Policy(retry_ambiguous=True))
    await s.turn({**FIRST, "store": True}, transport="ws", socket="c")
    named = {**FIRST, "store": True, "previous_response_id": s.last.response_id}
    s.core.faults.on_request(faults.abort())
    answer = await s.answer(named, transport="ws", socket="c")
    assert (502, 1, Reason.CLIENT_ANCHORED) == (answer.status, s.last.attempts, s.last.reason)
    assert 2 == len(s.core.log)


async def test_two_failed_connects_go_over_http():
    s = stack()
    s.core.faults.on_upgrade(faults.AbortUpgrade(), times=2)
    await s.turn(FIRST)
    assert (Mode.HTTP_FULL, Reason.WS_UNAVAILABLE, "connect_failed") == (
        s.last.mode,
        s.last.reason,
        s.last.fallback_reason,
    )


async def test_a_client_that_left_while_the_connection_opened_is_sent_nothing():
    s = stack()
    connect = s.sockets.connect

    async def leaving(url, headers, within):
        s.driver.client_left("turn_1")
        return await connect(url, headers, within)

    s.sockets.connect = leaving
    answer = await s.answer(FIRST)
    assert (499, Status.CLIENT_CLOSED, []) == (answer.status, s.last.status, s.core.log)
