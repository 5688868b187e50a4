"""``continuation = "store"``: what is sent again, and what a failure leaves (DESIGN 4.7)."""

from __future__ import annotations

import asyncio
import json

import pytest

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from engine.errors import ConnectFailed, ConnectionLost
from engine.model import Mode, Policy, Reason, Status
from tests.support.first_turns import after, stack
from tests.support.provider import user
from tests.support.storing import FIRST, STORE, counting, holds, kept, reading, said


@pytest.mark.parametrize("shape", ["nested", "no_status", "flat", "failed"])
async def test_a_rejected_continuation_in_the_stream_is_sent_once_in_full(shape):
    s = stack(STORE)
    body = await kept(s)
    s.core.faults.on_request(faults.previous_response_not_found(shape=shape))
    events = await s.turn(body)
    assert "response.completed" == events[-1]["type"]
    assert (Mode.HTTP_FULL, Reason.PREVIOUS_RESPONSE_NOT_FOUND, None) == said(s)
    assert (2, True, None) == (s.last.attempts, s.last.eligible, s.last.error_code)
    assert holds(s, body, events)
    await s.turn(after(events, body))
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_response_that_is_gone_at_the_provider_is_sent_once_in_full(stream):
    s = stack(STORE)
    body = await kept(s)
    s.core.shelf.delete(s.last.response_id)
    transport = "sse" if stream else "http"
    await s.turn({**body, "stream": stream}, transport=transport)
    assert (Mode.HTTP_FULL, Reason.PREVIOUS_RESPONSE_NOT_FOUND, None) == said(s)
    assert (2, Status.COMPLETED, None) == (s.last.attempts, s.last.status, s.last.error_code)
    rejected = s.driver.sessions.scope(("tenant", "default", "s")).anchors
    assert "rejected" in [anchor.cold for anchor in rejected.values()]


async def test_a_quota_error_is_the_clients_and_what_is_kept_stays_so():
    s = stack(STORE)
    body = await kept(s)
    s.core.faults.on_request(faults.HttpError(429, "slow down", "rate_limit_exceeded"))
    answer = await s.answer(body)
    assert (429, 1) == (answer.status, s.last.attempts)
    await s.turn(body)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
    assert s.last.chain == s.facts[0].chain


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (faults.HttpError(500, "broken"), "after_failed"),
        (faults.ErrorFrame("server_error", None, shape="failed", after=2), "after_failed"),
        (faults.abort(after=3), "closed"),
    ],
)
async def test_a_continuation_that_fails_is_followed_by_a_full_turn(fault, cause):
    s = stack(STORE)
    body = await kept(s)
    s.core.faults.on_request(fault)
    await s.turn(body)
    assert 1 == s.last.attempts
    await s.turn(body)
    assert (Mode.HTTP_FULL, Reason.CONNECTION_LOST, cause) == said(s)


async def test_a_client_that_leaves_does_not_harm_what_is_kept():
    s = stack(Policy(continuation="store", drain_timeout=0.0))
    body = await kept(s)
    s.core.faults.on_request(faults.silence())
    task = asyncio.create_task(s.answer(body))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert Status.CLIENT_CLOSED == s.last.status
    await s.turn(body)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
    assert s.last.chain == s.facts[0].chain


async def test_nor_does_one_that_left_an_answer_which_never_comes():
    s = stack(Policy(continuation="store", drain_timeout=0.0))
    body = await kept(s)
    s.core.faults.on_request(faults.silence())
    task = asyncio.create_task(s.answer(body))
    await asyncio.sleep(0)
    s.driver.client_left("turn_2")
    await task
    assert (Status.CLIENT_CLOSED, 2) == (s.last.status, len(s.core.log))
    await s.turn(body)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)


async def test_a_loss_that_may_have_been_processed_is_502_unless_the_setting_resends_it():
    for policy, status, attempts in (
        (STORE, 502, 1),
        (Policy(continuation="store", retry_ambiguous=True), 200, 2),
    ):
        s = stack(policy)
        body = await kept(s)
        posted, lost = s.http.post, []

        async def once(url, headers, sent_body, within, posted=posted, lost=lost):
            if not lost:
                lost.append(1)
                raise ConnectionLost(None, sent=True)
            return await posted(url, headers, sent_body, within)

        s.http.post = once
        answer = await s.answer(body)
        if answer.streamed:
            async for _ in answer:
                pass
        assert (status, attempts) == (answer.status, s.last.attempts)


@pytest.mark.parametrize("retry", [True, False])
async def test_a_stream_that_breaks_off_before_its_first_event_is_the_same(retry):
    s = stack(Policy(continuation="store", retry_ambiguous=retry))
    body = await kept(s)
    s.core.faults.on_request(faults.abort())
    answer = await s.answer(body)
    if answer.streamed:
        async for _ in answer:
            pass
    expected = (200, Status.COMPLETED, 2) if retry else (502, Status.ERROR, 1)
    assert expected == (answer.status, s.last.status, s.last.attempts)


async def test_silence_before_the_first_event_ends_at_its_bound():
    s = stack(Policy(continuation="store", first_event_timeout=0.01))
    body = await kept(s)
    s.core.faults.on_request(faults.silence())
    answer = await s.answer(body)
    assert (504, "first_event_timeout") == (answer.status, s.last.error_code)
    await s.turn(body)
    assert (Mode.HTTP_FULL, Reason.CONNECTION_LOST, "after_timeout") == said(s)


async def test_a_refused_connection_is_tried_once_more_in_full():
    s = stack(STORE)
    body = await kept(s)
    posted, refused = s.http.post, []

    async def once(url, headers, sent_body, within):
        if not refused:
            refused.append(1)
            raise ConnectFailed("refused")
        return await posted(url, headers, sent_body, within)

    s.http.post = once
    events = await s.turn(body)
    assert (Mode.HTTP_FULL, Reason.CONNECTION_LOST, "closed") == said(s)
    assert 1 == s.last.attempts
    assert holds(s, body, events)


async def test_private_events_without_end_are_not_taken_for_an_understood_anchor():
    s = stack(STORE)
    body = await kept(s)
    posted, first = s.http.post, []

    async def chatty(url, headers, sent_body, within):
        answer = await posted(url, headers, sent_body, within)
        if not first:
            first.append(1)

            async def chunks():
                for n in range(200):
                    yield b'data: {"type":"private.event","n":%d}\n\n' % n

            answer.chunks = chunks
        return answer

    s.http.post = chatty
    await s.turn(body)
    assert (Mode.HTTP_FULL, Reason.STORE_UNSUPPORTED, "anchor_ignored") == said(s)


async def test_an_error_in_the_stream_of_a_client_socket_is_nested():
    s = stack(STORE)
    events = await s.turn(FIRST, transport="ws", socket="c")
    s.core.faults.on_request(faults.ErrorFrame("server_is_overloaded", None, shape="flat"))
    answered = await s.turn(after(events, FIRST), transport="ws", socket="c")
    assert "server_is_overloaded" == answered[-1]["error"]["code"]
    assert 503 == answered[-1]["status"]


async def test_who_has_left_is_not_sent_a_second_time():
    s = stack(STORE)
    body = await kept(s)
    s.core.shelf.delete(s.last.response_id)
    posted = s.http.post

    async def leaving(url, headers, sent_body, within):
        s.driver.client_left("turn_2")
        return await posted(url, headers, sent_body, within)

    s.http.post = leaving
    await s.answer(body)
    assert (Status.CLIENT_CLOSED, 1, 2) == (s.last.status, s.last.attempts, len(s.core.log))


async def test_a_first_turn_that_cannot_connect_is_told_so():
    s = stack(STORE)

    async def refused(url, headers, sent_body, within):
        raise ConnectFailed("refused")

    s.http.post = refused
    answer = await s.answer(FIRST)
    assert (502, "connect_refused", 1) == (answer.status, s.last.error_code, s.last.attempts)


async def test_an_incomplete_response_is_kept_too():
    s = stack(STORE)
    s.core.faults.on_request(faults.Incomplete())
    body = await kept(s)
    assert Status.INCOMPLETE is s.last.status
    events = await s.turn(body)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
    assert holds(s, body, events)


async def test_an_incomplete_response_that_is_not_kept_says_nothing_of_the_upstream():
    s = stack(STORE)
    reading(s, lambda read: read.update(store=False))
    s.core.faults.on_request(faults.Incomplete())
    await s.turn(FIRST)
    assert (Status.INCOMPLETE, (0, 0)) == (s.last.status, s.driver.figures("default"))


async def test_a_fork_that_is_refused_leaves_the_chain_to_who_continued_it():
    s = stack(STORE)
    body = await kept(s)
    await s.turn(body)
    fork = {**body, "input": [*body["input"][:-1], user("another way")]}
    s.core.faults.on_request(faults.HttpError(429, "slow down", "rate_limit_exceeded"))
    await s.answer(fork)
    await s.turn(fork)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
    assert s.last.chain not in {facts.chain for facts in s.facts[:3]}


async def test_a_reset_that_another_turn_consumed_holds_for_the_slower_one_too():
    s = stack(STORE)
    slow = await s.answer(FIRST)
    s.driver.reset_epoch("tenant", "default", "s", "manual")
    await s.turn({**FIRST, "input": [user("meanwhile")]})
    events = [json.loads(event.data) async for event in slow if event.data]
    await s.turn(after(events, FIRST))
    assert (Mode.HTTP_FULL, Reason.EPOCH_RESET, None) == said(s)


async def test_an_upstream_that_ignores_anchors_stays_blocked_though_a_turn_beside_is_kept():
    s = stack(STORE)
    body = await kept(s)
    slow = await s.answer({**FIRST, "input": [user("beside")]})
    reading(s, lambda read: read.pop("previous_response_id", None))
    await s.turn(body)
    assert (Mode.HTTP_FULL, Reason.STORE_UNSUPPORTED, "anchor_ignored") == said(s)
    async for _ in slow:
        pass
    await s.turn(body)
    assert (1, Reason.STORE_UNSUPPORTED, "anchor_ignored") == (s.last.attempts, *said(s)[1:])


async def test_a_rejected_continuation_goes_again_as_the_client_sent_it():
    s = stack(STORE)
    body = await kept(s)
    s.core.shelf.delete(s.last.response_id)
    raw = json.dumps(body, indent=1)
    s.core.faults.on_request(
        faults.HttpError(400, "store is not allowed", "invalid_request_error"),
        when=lambda attempt: "store" in attempt.body and attempt.previous_response_id is None,
    )
    await s.turn(raw.encode())
    assert (Mode.HTTP_FULL, Reason.PREVIOUS_RESPONSE_NOT_FOUND, None) == said(s)
    assert (2, 3, raw) == (s.last.attempts, len(s.core.log), s.core.log[-1].frame)


async def test_what_is_not_stored_unasked_says_nothing_of_the_upstream():
    s = stack(Policy(continuation="store", force_store=True))
    first = {**FIRST, "store": False}
    body = await kept(s, first)
    s.core.shelf.delete(s.last.response_id)
    events = await s.turn(body)
    assert (Mode.HTTP_FULL, 2, (0, 0)) == (
        s.last.mode,
        s.last.attempts,
        s.driver.figures("default"),
    )
    await s.turn(after(events, body))
    assert (Mode.HTTP_FULL, Reason.STORE_UNSUPPORTED, "not_kept") == said(s)
    await s.turn(after(events, body))
    assert s.core.log[-1].body["store"] is True


async def test_an_id_that_names_two_responses_is_hung_on_by_nobody():
    s = stack(STORE)
    body = await kept(s)
    former, posted = s.last.response_id, s.http.post

    async def repeating(url, headers, sent_body, within):
        answer = await posted(url, headers, sent_body, within)
        inner = answer.chunks()

        async def chunks():
            async for chunk in inner:
                event = json.loads(chunk.split(b"data: ")[1])
                if "response" in event:
                    event["response"]["id"] = former
                yield b"data: " + json.dumps(event).encode() + b"\n\n"

        answer.chunks = chunks
        return answer

    s.http.post = repeating
    events = await s.turn(body)
    s.http.post = posted
    await s.turn(after(events, body))
    newest = list(s.driver.sessions.scope(("tenant", "default", "s")).anchors.values())[1]
    assert "missing_response_id" == newest.cold


async def test_an_answer_that_was_not_understood_is_closed_before_the_turn_goes_again():
    s = stack(STORE)
    body = await kept(s)
    reading(s, lambda read: read.pop("previous_response_id", None))
    posted, closed = s.http.post, []

    async def watched(url, headers, sent_body, within):
        answer = await posted(url, headers, sent_body, within)
        number = len(s.core.log)

        async def close():
            closed.append((number, len(s.core.log)))

        answer.close = close
        return answer

    s.http.post = watched
    await s.turn(body)
    assert (2, 2) == closed[0]


async def test_a_full_turn_that_is_told_of_an_anchor_is_not_sent_again():
    s = stack(STORE)
    s.core.faults.on_request(faults.HttpError(400, "no", "previous_response_not_found"))
    answer = await s.answer(FIRST)
    assert (400, 1) == (answer.status, s.last.attempts)


@pytest.mark.parametrize("other", [{}, {"session": "other"}, {"tenant": "other"}])
async def test_an_id_that_was_given_twice_continues_what_it_names_last(other):
    s = stack(STORE)
    counting(s, ["resp_1", "resp_1", "resp_2", "resp_3"])
    body = await kept(s)
    beside = {**FIRST, "input": [user("beside")]}
    later = after(await s.turn(beside, **other), beside)
    events = await s.turn(body)
    assert (Mode.HTTP_FULL, Reason.MISSING_RESPONSE_ID, None) == said(s)
    assert "response.completed" == events[-1]["type"]
    await s.turn(later, **other)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)


async def test_an_error_that_only_mentions_storage_says_nothing_of_the_upstream():
    s = stack(STORE)
    body = await kept(s)
    s.core.faults.on_request(faults.HttpError(400, "no such app in the store"), times=2)
    answer = await s.answer(body)
    assert (400, 2) == (answer.status, s.last.attempts)
    await s.turn(body)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)


async def test_one_answer_without_an_id_does_not_mark_the_upstream():
    s = stack(STORE)
    s.core.faults.on_request(faults.NoResponseId())
    await s.turn(FIRST)
    body = await kept(s)
    await s.turn(body)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)


async def test_an_id_that_is_given_again_during_the_turn_leaves_nothing_to_continue():
    s = stack(STORE)
    body = await kept(s)
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=1))
    answer = await s.answer(body)
    s.driver.sessions.named_again(s.facts[0].response_id, "default")
    gate.open()
    events = [json.loads(event.data) async for event in answer if event.data]
    assert Mode.HTTP_INCREMENTAL == s.last.mode
    await s.turn(after(events, body))
    assert (Mode.HTTP_FULL, Reason.MISSING_RESPONSE_ID) == said(s)[:2]
