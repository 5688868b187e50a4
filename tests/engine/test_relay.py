"""What a client sees when the stream breaks off, and what is noted when the client does."""

from __future__ import annotations

import asyncio

import pytest

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from engine.model import Mode, Policy, Reason, Status
from tests.support.first_turns import FIRST, stack, warm


@pytest.mark.parametrize("fault", [faults.abort(after=4), faults.close(1000, after=4)])
async def test_a_loss_after_output_began_ends_in_exactly_one_response_failed(fault):
    s = stack()
    body = await warm(s)
    s.core.faults.on_request(fault)
    events = await s.turn(body)
    assert 1 == [event["type"] for event in events].count("response.failed")
    assert "response.failed" == events[-1]["type"]
    assert (Status.ERROR, 1) == (s.last.status, s.last.attempts)
    await s.turn(body)
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST) == (s.last.mode, s.last.reason)


async def test_a_quota_error_is_429_with_retry_after_in_one_attempt():
    s = stack()
    error = {"type": "usage_limit_reached", "message": "later", "resets_in_seconds": 9568}
    raw = {"type": "error", "status_code": 429, "error": error}
    s.core.faults.on_request(faults.ErrorFrame("usage_limit_reached", 429, raw=raw))
    answer = await s.answer(FIRST)
    assert (429, Status.RATE_LIMITED, 1) == (answer.status, s.last.status, s.last.attempts)
    assert ("retry-after", "9568") in answer.headers


async def test_a_client_that_leaves_is_drained_and_its_usage_recorded():
    s = stack()
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=3))
    answer = await s.answer(FIRST)
    answer.client_left()
    gate.open()
    async for _ in answer:
        pass
    assert (Status.CLIENT_CLOSED, True) == (
        s.last.status,
        s.last.usage.input_tokens is not None,
    )


async def test_a_drain_that_never_ends_is_cut_at_its_bound():
    s = stack(Policy(drain_timeout=0.0))
    s.core.faults.on_request(faults.stall(after=3))
    answer = await s.answer(FIRST)
    answer.client_left()
    async with asyncio.timeout(30):
        async for _ in answer:
            pass
    assert (Status.CLIENT_CLOSED, None) == (s.last.status, s.last.usage.input_tokens)
    await s.driver.aclose()
    assert s.sockets.opened[0].closed


async def test_silence_before_the_first_event_ends_at_its_bound():
    s = stack(Policy(first_event_timeout=0.0))
    s.core.faults.on_request(faults.silence())
    answer = await s.answer(FIRST)
    assert (504, "first_event_timeout") == (answer.status, s.last.error_code)


async def test_an_answer_that_is_closed_early_leaves_its_row_at_once():
    s = stack()
    answer = await s.answer(FIRST)
    async for _ in answer:
        break
    await answer.events.aclose()
    assert [Status.CLIENT_CLOSED] == [facts.status for facts in s.facts]
