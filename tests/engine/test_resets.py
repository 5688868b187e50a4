"""Epochs are reset by whoever asks, once, with the word that was given first (DESIGN 4.6)."""

from __future__ import annotations

import asyncio
import json

import pytest

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from engine.model import ColdCause, Mode, Policy, Reason
from tests.support.first_turns import FIRST, after, stack, warm
from tests.support.insides import settled, slow_ping
from tests.support.loopback import Stack
from tests.support.provider import user


def reset(s: Stack, reason: str) -> None:
    s.driver.reset_epoch("tenant", "default", s.last.session, reason)


def said(s: Stack) -> tuple:
    return (s.last.mode, s.last.reason, s.last.epoch_reset_reason, s.last.epoch, s.last.epoch_turn)


@pytest.mark.parametrize("continuation", ["websocket", "observe", "store"])
async def test_several_resets_before_a_turn_are_one_with_the_first_ones_word(continuation):
    s = stack(Policy(continuation=continuation, force_store=True))
    body = await warm(s)
    reset(s, "summarize")
    reset(s, "manual")
    await s.turn(body)
    assert ("summarize", 2, 1) == said(s)[2:]


async def test_a_reset_with_the_request_adds_nothing_to_one_that_is_pending():
    s = stack()
    body = await warm(s)
    reset(s, "summarize")
    await s.turn(body, epoch_reset="tidy")
    assert (Mode.WS_FULL, Reason.EPOCH_RESET, "summarize", 2, 1) == said(s)


async def test_a_reset_after_one_that_was_consumed_has_its_own_word():
    s = stack()
    body = await warm(s)
    reset(s, "summarize")
    events = await s.turn(body)
    reset(s, "manual")
    await s.turn(after(events, body))
    assert (Mode.WS_FULL, Reason.EPOCH_RESET, "manual", 3, 1) == said(s)


async def test_the_word_of_a_reset_holds_for_each_turn_that_it_overtook():
    s = stack()
    body = await warm(s)
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=1))
    slow = await s.answer(body)
    reset(s, "summarize")
    await s.turn(FIRST)
    assert (Mode.WS_FULL, Reason.EPOCH_RESET, "summarize") == said(s)[:3]
    gate.open()
    events = [json.loads(event.data) async for event in slow]
    await s.turn(after(events, body))
    assert (Mode.WS_FULL, Reason.EPOCH_RESET, "summarize") == said(s)[:3]


async def test_a_reset_of_one_unnamed_session_does_not_overtake_the_turns_of_another():
    s = stack()
    body = await warm(s, session=None)
    aside = {**FIRST, "input": [{"role": "user", "content": "aside"}]}
    await s.turn(aside, session=None)
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=1))
    slow = await s.answer(body, session=None)
    reset(s, "summarize")
    gate.open()
    events = [json.loads(event.data) async for event in slow]
    await s.turn(after(events, body), session=None)
    assert (Mode.WS_INCREMENTAL, Reason.OK) == said(s)[:2]


async def test_a_reset_during_the_ping_holds_for_the_turn_that_waits():
    s = stack()
    body = await warm(s)
    begun, may_end = slow_ping(s)
    task = asyncio.create_task(s.turn(body))
    await begun.wait()
    s.driver.reset_epoch("tenant", "default", "s", "summarize")
    may_end.set()
    await task
    assert (Mode.WS_FULL, Reason.EPOCH_RESET, "summarize") == (
        s.last.mode,
        s.last.reason,
        s.last.epoch_reset_reason,
    )


async def test_a_reset_during_a_turn_is_consumed_by_the_next_one_and_keeps_its_reason():
    s = stack()
    body = await warm(s)
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=1))
    first = await s.answer(body)
    s.driver.reset_epoch("tenant", "default", "s", "summarize")
    gate.open()
    events = [json.loads(event.data) async for event in first]
    await s.turn(after(events, body))
    assert (Mode.WS_FULL, Reason.EPOCH_RESET, "summarize", 2, 1) == (
        s.last.mode,
        s.last.reason,
        s.last.epoch_reset_reason,
        s.last.epoch,
        s.last.epoch_turn,
    )


async def test_a_reset_by_name_reaches_an_unnamed_session():
    s = stack()
    body = await warm(s, session=None)
    s.driver.reset_epoch("tenant", "default", s.last.session, "summarize")
    await s.turn(body, session=None)
    assert Reason.EPOCH_RESET == s.last.reason


@pytest.mark.parametrize("by", ["name", "request", "unnamed request"])
@pytest.mark.parametrize("store", [True, False])
async def test_a_reset_reaches_what_unnamed_requests_left_in_a_named_session(store, by):
    s = stack()
    first = {**FIRST, "store": store}
    body = after(await s.turn(first), first)
    own = {**first, "input": [user("x")], "previous_response_id": s.last.response_id}
    answered = await s.turn(own, session=None)
    unnamed = after(answered, {**first, "input": [*body["input"][:-1], user("x")]})
    if by == "name":
        reset(s, "summarize")
    else:
        own["previous_response_id"] = s.last.response_id
        session = None if by == "unnamed request" else "s"
        await s.turn(own, session=session, epoch_reset="summarize")
    for request, session in ((body, "s"), (unnamed, None)):
        await s.turn(request, session=session)
        assert Mode.WS_FULL == s.last.mode
        assert by != "name" or s.last.reason is Reason.EPOCH_RESET


async def test_a_reset_during_an_http_turn_holds_for_the_next_one():
    s = stack(Policy(max_frame_bytes=1))
    posted = s.http.post
    gate = asyncio.Event()

    async def slow(*args):
        await gate.wait()
        return await posted(*args)

    s.http.post = slow
    task = asyncio.create_task(s.turn(FIRST))
    await settled()
    s.driver.reset_epoch("tenant", "default", "s", "summarize")
    gate.set()
    events = await task
    s.upstream = type(s.upstream)("default", "http://provider/v1", Policy())
    await s.turn(after(events, FIRST))
    assert (Reason.EPOCH_RESET, "summarize") == (s.last.reason, s.last.epoch_reset_reason)


async def test_a_reset_that_another_turn_consumed_leaves_an_http_turn_what_it_was():
    s = stack(Policy(max_frame_bytes=1))
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=1))
    slow = await s.answer(FIRST)
    s.driver.reset_epoch("tenant", "default", "s", "summarize")
    await s.turn(FIRST)
    gate.open()
    async for _ in slow:
        pass
    anchors = s.driver.sessions.anchors(("tenant", "default", "s"))
    assert [(ColdCause.HTTP, None)] * 2 == [(one.cold, one.reset_reason) for one in anchors]
