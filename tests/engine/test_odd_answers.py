"""Answers that contradict themselves, name another response, or cannot be read whole."""

from __future__ import annotations

import json

import pytest

from app.demo.provider import faults
from engine.model import Mode, Reason, Status
from engine.stream import Fold
from tests.support.first_turns import FIRST, after, stack, warm
from tests.support.provider import user


async def test_a_response_done_that_failed_leaves_no_anchor():
    fold = Fold()
    fold.feed(b'{"type":"response.created","response":{"id":"r"}}')
    fold.feed(b'{"type":"response.done","response":{"id":"r","status":"failed","output":[]}}')
    assert not fold.commits
    done = Fold()
    done.feed(b'{"type":"response.done","response":{"id":"r","output":[]}}')
    assert done.commits


async def test_a_deeply_nested_event_is_relayed_and_does_not_break_the_stream():
    s = stack()
    deep = "[" * 100_000 + "]" * 100_000
    for text in (f'{{"type":"response.x","{name}":{deep}}}' for name in ("y", "item")):
        s.core.faults.on_request(faults.garbage(text))
        answer = await s.answer(FIRST)
        seen = [event.data async for event in answer]
        assert text.encode() in seen
        assert b"response.completed" in seen[-1]
        assert Status.COMPLETED == s.last.status


async def test_an_event_of_the_former_response_does_not_answer_the_next_turn():
    s = stack()
    body = await warm(s)
    former = s.facts[-1].response_id
    stale = {"type": "response.done", "response": {"id": former, "status": "completed"}}
    s.core.faults.on_request(faults.extra_event(stale, after=0))
    events = await s.turn(body)
    assert "response.completed" == events[-1]["type"]
    assert former != s.last.response_id
    await s.turn(after(events, body))
    assert s.last.previous_response_id == s.facts[-2].response_id


async def test_an_id_that_names_two_responses_is_continued_by_nobody():
    s = stack()
    body = await warm(s)
    scope = s.driver.sessions.scope(("tenant", "default", "s"))
    receive = s.sockets.opened[0].receive
    former = s.last.response_id

    async def reused() -> bytes:
        event = json.loads(await receive())
        if "response" in event:
            event["response"]["id"] = former
        return json.dumps(event).encode()

    s.sockets.opened[0].receive = reused
    events = await s.turn(body)
    assert {} == scope.chains
    await s.turn(after(events, body))
    assert (Mode.WS_FULL, Reason.MISSING_RESPONSE_ID) == (s.last.mode, s.last.reason)


async def test_one_id_from_two_tenants_is_each_ones_own():
    s = stack()
    await s.turn(FIRST)
    own = s.last.response_id
    (_, anchor) = s.driver.sessions.find(own)
    events = await s.turn(FIRST, tenant="other", headers=(("authorization", "Bearer o"),))
    scope = s.driver.sessions.scope(("other", "default", "s"))
    theirs = next(iter(scope.anchors.values()))
    s.driver.sessions.drop(scope, theirs)
    theirs.response_id = own
    s.driver.sessions.add(scope, theirs)
    assert events
    answer = await s.answer({**FIRST, "input": [user("x")], "previous_response_id": own})
    assert 200 == answer.status
    assert anchor.response_id == own


@pytest.mark.parametrize("fault", [faults.DropDone(), faults.ConflictingOutput()])
@pytest.mark.parametrize("reset", [None, "summarize"])
async def test_a_response_of_which_not_all_is_known_is_not_expanded(fault, reset):
    """The provider would get a history that lacks what it answered itself."""
    s = stack()
    s.core.faults.on_request(fault)
    events = await s.turn(FIRST, transport="ws", socket="k")
    if reset is not None:
        s.driver.reset_epoch(s.last.tenant, s.last.upstream, s.last.session, reset)
    named = {"previous_response_id": events[-1]["response"]["id"], "input": [user("go on")]}
    seen = len(s.core.log)
    answer = await s.turn({**FIRST, **named}, transport="ws", socket="k")
    assert "previous_response_not_found" == answer[-1]["error"]["code"]
    assert seen == len(s.core.log)
    assert Status.REFUSED == s.last.status


def test_an_answer_without_items_that_took_tokens_is_not_trusted():
    fold = Fold()
    usage = b'{"input_tokens":5,"output_tokens":7,"total_tokens":12}'
    fold.feed_response(b'{"id":"resp_1","status":"completed","output":[],"usage":' + usage + b"}")
    assert fold.lacks_items


def test_an_answer_nested_too_deep_to_be_read_is_one_without_items():
    fold = Fold()
    deep = b"[" * 5000 + b"]" * 5000
    fold.feed_response(b'{"id":"resp_1","status":"completed","output":[' + deep + b"]}")
    assert [] == fold.outputs
