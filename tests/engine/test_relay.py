"""What a client sees when the stream breaks off, and what is noted when the client does."""

from __future__ import annotations

import asyncio
import json

import pytest

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from engine.model import Mode, Policy, Reason, Status
from tests.support.first_turns import FIRST, stack, warm
from tests.support.loopback import Stack
from tests.support.provider import make_core, user
from tests.support.storing import STORE, kept


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


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        (faults.abort(after=4), 502, "connection_lost"),
        (faults.ErrorFrame("rate_limit_exceeded", status=429, after=4), 429, "rate_limit_exceeded"),
    ],
)
async def test_who_wants_one_json_answer_is_told_why_there_is_none(fault, status, code):
    s = stack()
    s.core.faults.on_request(fault)
    answer = await s.answer({**FIRST, "stream": False}, transport="http")
    assert (status, False, 1) == (answer.status, answer.streamed, len(s.core.log))
    assert "error" in json.loads(answer.body)
    assert code == s.last.error_code


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


async def test_a_flat_error_in_the_midst_is_nested_for_a_client_socket():
    s = stack(Policy(continuation="off"))
    s.core.faults.on_request(faults.ErrorFrame("server_is_overloaded", None, shape="flat", after=3))
    events = await s.turn(FIRST, transport="ws", socket="c")
    assert ("error", 503) == (events[-1]["type"], events[-1]["status"])


async def test_the_turn_state_travels_in_the_later_frames_of_the_same_client_turn():
    s = Stack(make_core("codex", replies=["a", "b"]))
    first = {**FIRST, "instructions": "be brief"}
    await s.turn(first, turn_group="g")
    token = s.driver.sessions.scope(("tenant", "default", "s")).turn_states["g"]
    await s.turn({**first, "input": [user("other")]}, turn_group="g")
    assert token == s.core.log[-1].body["client_metadata"]["x-codex-turn-state"]
    await s.turn({**first, "input": [user("third")]}, turn_group="h")
    assert "client_metadata" not in s.core.log[-1].body


async def test_a_client_that_leaves_twice_has_left_once():
    s = stack()
    answer = await s.answer(FIRST)
    for _ in range(2):
        answer.client_left()
    async for _ in answer:
        pass
    assert (Status.CLIENT_CLOSED, 1) == (s.last.status, len(s.facts))


async def test_comments_and_the_trailer_of_a_stream_are_relayed_as_they_came():
    s = stack(Policy(continuation="off"))
    posted, pieces = s.http.post, []

    async def commented(url, headers, body, within):
        answer = await posted(url, headers, body, within)
        inner = answer.chunks()

        async def chunks():
            yield b": keep-alive\n\n"
            async for chunk in inner:
                pieces.append(chunk)
                yield chunk
            yield b"data: [DONE]\n\n"

        answer.chunks = chunks
        return answer

    s.http.post = commented
    answer = await s.answer(FIRST)
    raw = [event.raw async for event in answer]
    assert [b": keep-alive\n\n", *pieces, b"data: [DONE]\n\n"] == raw
    assert Status.COMPLETED is s.last.status


@pytest.mark.parametrize(("small", "parts"), [(1 << 16, 1), (0, 2)])
async def test_events_that_are_there_at_once_are_handed_out_together_and_their_turn_is_over(
    monkeypatch, small, parts
):
    monkeypatch.setattr("engine.relay._SMALL", small)
    s, single = stack(), stack()
    s.sockets.are_eager = True
    answer = await s.answer(FIRST)
    assert (parts == 1) is bool(s.facts)
    batches = [batch async for batch in answer.batches]
    expected = [event["type"] for event in await single.turn(FIRST)]
    types = [[json.loads(event.data)["type"] for event in one] for one in batches]
    assert [[expected], [expected[:1], expected[1:]]][parts - 1] == types
    assert (Status.COMPLETED, 1) == (s.last.status, len(s.facts))


@pytest.mark.parametrize(("continuation", "known"), [("websocket", True), ("off", False)])
async def test_it_is_told_whether_something_follows_where_that_is_known(continuation, known):
    s = stack(Policy(continuation=continuation))
    answer = await s.answer(FIRST)
    assert not answer.is_over()
    over = [answer.is_over() async for _ in answer.batches]
    assert {False} == set(over[:-1])
    await answer.batches.aclose()  # as a caller does that closes what it iterated
    assert (known, True, 1) == (over[-1], answer.is_over(), len(s.facts))


async def test_an_answer_that_is_one_error_is_over_with_it():
    s = stack()
    s.core.faults.on_request(faults.ErrorFrame("server_error", None, shape="failed"))
    s.core.faults.on_request(faults.ErrorFrame("server_error", None, shape="failed"))
    answer = await s.answer(FIRST)
    assert 1 == len([event async for event in answer])
    assert answer.is_over()


async def test_what_is_handed_out_together_is_bounded(monkeypatch):
    monkeypatch.setattr("engine.relay._MOST_AT_ONCE", 0)
    s = stack()
    s.sockets.are_eager = True
    answer = await s.answer(FIRST)
    sizes = [len(batch) async for batch in answer.batches]
    assert {1} == set(sizes[1:])
    assert (2, True) == (sizes[0], len(sizes) > 2)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_fault_at_the_end_of_an_answer_leaves_nothing_of_the_upstream_open(
    monkeypatch, fails
):
    s = stack(STORE)
    body = await kept(s)
    if fails:
        s.core.faults.on_request(faults.ErrorFrame("server_error", None, shape="failed"))
    posted, closed = s.http.post, []

    async def at_once(*arguments):
        answer = await posted(*arguments)
        whole = b"".join([chunk async for chunk in answer.chunks()])

        async def chunks():
            yield whole

        async def close():
            closed.append(whole)

        answer.chunks, answer.close = chunks, close
        return answer

    def conclude(_turn):
        raise RuntimeError

    s.http.post = at_once
    monkeypatch.setattr(s.driver._endings, "conclude", conclude)
    answer = await s.answer(body)
    assert (Mode.HTTP_INCREMENTAL, 502) == (s.last.mode, answer.status)
    assert (1, 2) == (len(closed), len(s.facts))
