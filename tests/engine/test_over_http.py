"""Turns that go over HTTP: in full, once, and as the client asked."""

from __future__ import annotations

import asyncio

import pytest

from app.demo.provider import faults
from engine.errors import ConnectFailed, ConnectionLost
from engine.model import Mode, Policy, Reason, Status
from tests.support.first_turns import FIRST, stack, warm
from tests.support.loopback import Stack
from tests.support.provider import make_core, user


@pytest.mark.parametrize(
    ("status", "reason", "cause"),
    [
        (426, Reason.WS_REJECTED, "upgrade_426"),
        (404, Reason.WS_REJECTED, "upgrade_404"),
        (403, Reason.WS_REJECTED, "upgrade_403"),
        (500, Reason.WS_UNAVAILABLE, "upgrade_500"),
        (503, Reason.WS_UNAVAILABLE, "upgrade_503"),
    ],
)
async def test_a_refused_upgrade_goes_over_http_in_the_same_turn(status, reason, cause):
    s = stack()
    s.core.faults.on_upgrade(faults.RefuseUpgrade(status), times=None)
    events = await s.turn(FIRST)
    assert "response.completed" == events[-1]["type"]
    assert (Mode.HTTP_FULL, reason, cause, False) == (
        s.last.mode,
        s.last.reason,
        s.last.fallback_reason,
        s.last.eligible,
    )


async def test_a_frame_over_the_limit_is_one_post_and_the_chain_stays_warm():
    s = stack(Policy(max_frame_bytes=2_000))
    body = await warm(s)
    big = {**body, "input": [*body["input"][:-1], user("x" * 3_000)]}
    await s.turn(big)
    assert (Mode.HTTP_FULL, Reason.PAYLOAD_TOO_LARGE, 1) == (
        s.last.mode,
        s.last.reason,
        s.last.attempts,
    )
    await s.turn(body)
    assert (Mode.WS_INCREMENTAL, Reason.OK) == (s.last.mode, s.last.reason)


async def test_an_unknown_anchor_goes_upstream_as_it_is_and_a_bare_delta_is_never_sent_without_it():
    s = stack()
    body = {**FIRST, "previous_response_id": "resp_unknown", "input": [user("go on")]}
    answer = await s.answer(body, transport="ws", socket="w1")
    assert 400 == answer.status
    assert ["resp_unknown"] == [attempt.previous_response_id for attempt in s.core.log]
    assert Reason.CLIENT_ANCHORED == s.last.reason


async def test_a_warm_up_without_a_websocket_upstream_is_answered_here_and_expanded_later():
    s = stack()
    s.core.faults.on_upgrade(faults.RefuseUpgrade(426), times=None)
    warm_up = {**FIRST, "type": "response.create", "generate": False}
    events = await s.turn(warm_up, transport="ws", socket="w1")
    assert ["response.created", "response.completed"] == [event["type"] for event in events]
    assert [] == s.core.log
    named = events[-1]["response"]["id"]
    body = {**FIRST, "type": "response.create", "previous_response_id": named, "input": []}
    await s.turn(body, transport="ws", socket="w1")
    assert Mode.HTTP_FULL == s.last.mode
    assert FIRST["input"] == s.core.log[-1].body["input"]
    assert not {"type", "generate", "previous_response_id"} & s.core.log[-1].body.keys()


async def test_a_client_that_wants_one_json_answer_gets_the_done_items_in_it():
    s = Stack(make_core("codex", replies=["hello"]))
    (answer,) = await s.turn({**FIRST, "stream": False}, transport="http")
    assert "hello" == answer["output"][-1]["content"][0]["text"]
    assert (Mode.WS_FULL, Status.COMPLETED) == (s.last.mode, s.last.status)


async def test_a_body_that_cannot_be_split_goes_through_unchanged():
    s = stack()
    twice = b'{"model":"gpt-5.5","input":"a","input":"b","stream":true,"store":false}'
    await s.turn(twice)
    assert (Mode.HTTP_FULL, Reason.CONTINUATION_OFF) == (s.last.mode, s.last.reason)
    assert twice.decode() == s.core.log[-1].frame


OFF = Policy(continuation="off", first_event_timeout=0.01)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ConnectFailed("refused"), 502, "connect_refused"),
        (ConnectionLost(None, sent=True), 502, "connection_lost"),
        (None, 504, "first_event_timeout"),
    ],
)
async def test_a_post_that_gets_no_answer_is_told_with_its_cause(error, status, code):
    s = stack(OFF)

    async def failing(url, headers, body, within):
        if error is not None:
            raise error
        await asyncio.Event().wait()

    s.http.post = failing
    answer = await s.answer(FIRST)
    assert (status, code, 1) == (answer.status, s.last.error_code, s.last.attempts)


async def test_an_answer_in_one_piece_that_breaks_off_is_a_loss():
    s = stack(OFF)
    posted = s.http.post

    async def broken(url, headers, body, within):
        answer = await posted(url, headers, body, within)

        async def chunks():
            yield b'{"id":'
            raise ConnectionLost(None, sent=True)

        answer.chunks = chunks
        return answer

    s.http.post = broken
    answer = await s.answer({**FIRST, "stream": False}, transport="http")
    assert (502, "connection_lost") == (answer.status, s.last.error_code)


async def test_a_warm_up_that_hangs_on_an_unknown_answer_leaves_no_baseline():
    s = stack(Policy(continuation="off"))
    named = {**FIRST, "generate": False, "previous_response_id": "resp_x"}
    await s.turn(named, transport="ws", socket="c")
    assert {} == s.driver.sessions.scope(("tenant", "default", "s")).anchors
