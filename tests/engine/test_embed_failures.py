"""What an embedded session does when the upstream fails (DESIGN 4.1, 4.7)."""

from __future__ import annotations

import json

import pytest

from app.demo.provider import faults
from app.demo.provider.core import Provider
from engine.driver import Upstream
from engine.errors import TurnFailed
from engine.model import Policy, Status
from engine.testing import Fail, Lose, message, reasoning
from tests.support.embedded import (
    CONTINUED,
    URL,
    Rig,
    said,
    same_as_held,
    session,
    warm,
)
from tests.support.loopback import LoopbackHttp, LoopbackSockets
from tests.support.provider import make_core


@pytest.mark.parametrize("fault", [Lose(after=1), Lose(after=3), Fail(after=2)])
async def test_after_a_stream_that_failed_the_next_turn_is_full_on_a_new_connection(fault):
    rig = await warm(fault, "third")
    events = await rig.turn(said("two"))
    assert ("response.failed", 1, 2) == (
        events[-1]["type"],
        rig.last.attempts,
        len(rig.upstream.sent),
    )
    assert not rig.session.record(rig.history)
    await rig.turn()
    assert ("ws_full", "connection_lost") == rig.outcome
    assert (1, None) == (
        rig.upstream.sent[-1].connection,
        rig.upstream.sent[-1].body.get("previous_response_id"),
    )
    assert same_as_held(rig)
    await rig.turn(said("three"))
    assert CONTINUED == rig.outcome


async def test_a_connection_that_ended_between_turns_is_replaced_and_the_turn_goes_in_full():
    rig = await warm()
    rig.upstream.drop()
    await rig.turn(said("two"))
    assert ("ws_full", "connection_lost", "closed") == (*rig.outcome, rig.last.fallback_reason)
    assert same_as_held(rig)


async def test_where_no_connection_can_be_made_the_turn_goes_in_full_over_http():
    rig = await warm()
    rig.upstream.drop()
    rig.upstream.refuse(times=2)
    await rig.turn(said("two"))
    assert ("http_full", "ws_unavailable", "connect_failed") == (
        *rig.outcome,
        rig.last.fallback_reason,
    )
    sent = rig.upstream.sent[-1]
    assert (None, False, True) == (sent.connection, sent.body["store"], sent.body["stream"])
    assert rig.history[:-1] == sent.body["input"]
    assert "previous_response_id" not in sent.body
    assert same_as_held(rig)
    assert rig.session.record(rig.history)


async def test_the_turn_after_one_over_http_tries_a_connection_again():
    rig = Rig()
    rig.upstream.refuse(times=2)
    await rig.turn(said("one"))
    await rig.turn(said("two"))
    assert ("ws_full", "connection_lost", "http") == (*rig.outcome, rig.last.fallback_reason)
    await rig.turn(said("three"))
    assert CONTINUED == rig.outcome


async def test_an_upstream_without_websockets_is_used_over_http_for_a_while():
    rig = Rig()
    rig.upstream.refuse(status=426)
    for text in ("one", "two"):
        await rig.turn(said(text))
        assert ("http_full", "ws_rejected", "upgrade_426") == (
            *rig.outcome,
            rig.last.fallback_reason,
        )
    assert 1 == len(rig.upstream.handshakes)


async def test_a_turn_over_http_in_between_is_part_of_the_delta_that_follows():
    policy = Policy(max_losses=2, cooldown=60)
    rig = await warm("over http", "third", at=Upstream("u", URL, policy))
    main = rig.history
    rig.upstream.refuse(times=2)
    rig.history = [said("another history")]
    await rig.turn()
    rig.history = main
    await rig.turn(said("two"))
    assert ("http_full", "ws_unavailable", "cooling_down") == (
        *rig.outcome,
        rig.last.fallback_reason,
    )
    rig.clock.advance(61)
    await rig.turn(said("three"))
    assert CONTINUED == rig.outcome
    assert main[2:5] == rig.upstream.sent[-1].body["input"]
    assert same_as_held(rig)


@pytest.mark.parametrize(
    ("status", "code"), [(400, "invalid_encrypted_content"), (401, "expired"), (429, "slow")]
)
async def test_an_error_before_the_first_event_is_raised_and_the_session_goes_on(status, code):
    rig = await warm(Fail(code, status=status), "second")
    with pytest.raises(TurnFailed) as failed:
        await rig.turn(said("two"))
    assert (status, code, None) == (
        failed.value.status,
        failed.value.code,
        failed.value.retry_after,
    )
    assert code in failed.value.body.decode()
    assert "two" not in str(failed.value)
    await rig.turn()
    assert ("ws_full", "connection_lost") == rig.outcome
    assert same_as_held(rig)


async def test_reasoning_that_the_provider_refuses_can_be_dropped_with_a_reset():
    thought = [reasoning("gOLD", "why"), message("first")]
    rig = Rig(thought, Fail("invalid_encrypted_content", status=400), "second", "third")
    await rig.turn(said("one"))
    with pytest.raises(TurnFailed, match="invalid_encrypted_content"):
        await rig.turn(said("two"))
    del rig.history[1]
    rig.session.reset_epoch("encrypted_reasoning")
    await rig.turn()
    assert ("epoch_reset", "encrypted_reasoning") == (
        rig.last.reason,
        rig.last.epoch_reset_reason,
    )
    await rig.turn(said("three"))
    assert CONTINUED == rig.outcome
    assert same_as_held(rig)


async def test_a_turn_without_an_answer_is_a_502():
    rig = await warm(Lose(after=0))
    with pytest.raises(TurnFailed) as failed:
        await rig.turn(said("two"))
    assert (502, "connection_lost") == (failed.value.status, failed.value.code)


async def test_how_long_to_wait_is_told_in_seconds():
    rig = Rig(Fail("slow_down", status=429))

    async def post(url, headers, body, within):
        answer = await type(rig.upstream).post(rig.upstream, url, headers, body, within)
        answer.headers = [*answer.headers, ("retry-after", "7")]
        return answer

    rig.upstream.post = post
    rig.upstream.refuse(times=2)
    with pytest.raises(TurnFailed) as failed:
        await rig.turn(said("one"))
    assert (429, 7.0) == (failed.value.status, failed.value.retry_after)
    assert Status.RATE_LIMITED is rig.last.status


def answering(body: bytes) -> Rig:
    """A rig whose upstream has only HTTP, and answers with one JSON body."""
    rig = Rig()

    class Whole:
        status, headers = 200, [("content-type", "application/json")]

        async def chunks(self):
            yield body

        async def close(self):
            pass

    async def post(url, headers, body, within):
        return Whole()

    rig.upstream.post = post
    rig.upstream.refuse(times=2)
    return rig


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"status":"queued"}', b"1"])
async def test_an_answer_in_one_piece_that_is_no_response_is_a_502(body):
    rig = answering(body)
    with pytest.raises(TurnFailed, match="unreadable_answer"):
        await rig.turn(said("one"))
    assert Status.ERROR is rig.last.status


async def test_an_upstream_that_answers_in_one_piece_is_one_event():
    answer = {"id": "r", "object": "response", "status": "completed"}
    rig = answering(json.dumps({**answer, "output": [message("whole")]}).encode())
    (event,) = await rig.turn(said("one"))
    assert "response.completed" == event["type"]
    assert [said("one"), {"role": "assistant", "content": "whole"}] == rig.history
    assert rig.session.record(rig.history)
    assert "http_full" == rig.last.mode


def on_the_provider(**policy: float) -> tuple[Rig, Provider]:
    """A rig on the core of the built-in provider."""
    core = make_core()
    rig = Rig()
    rig.session = session(
        None,
        at=Upstream("u", URL, Policy(**policy)),
        websocket=LoopbackSockets(core),
        http=LoopbackHttp(core),
        on_turn=rig.facts.append,
    )
    return rig, core


@pytest.mark.parametrize("code", [1000, 1011])
async def test_a_stream_that_ends_without_its_last_event_has_failed(code):
    rig, core = on_the_provider()
    await rig.turn(said("one"))
    core.faults.on_request(faults.close(code, after=3))
    assert "response.failed" == (await rig.turn(said("two")))[-1]["type"]
    await rig.turn()
    assert ("ws_full", "connection_lost") == rig.outcome
    assert [said("one"), said("two")] == [
        item for item in core.log[-1].body["input"] if item.get("role") == "user"
    ]


async def test_a_provider_that_falls_silent_is_given_up():
    rig, core = on_the_provider(idle_timeout=0.01, first_event_timeout=0.01)
    core.faults.on_request(faults.stall(after=2))
    assert "response.failed" == (await rig.turn(said("one")))[-1]["type"]
    assert "idle_timeout" == rig.last.error_code
    core.faults.on_request(faults.silence())
    with pytest.raises(TurnFailed, match="first_event_timeout"):
        await rig.turn()
    assert "response.completed" == (await rig.turn())[-1]["type"]


async def test_nothing_follows_a_response_that_failed():
    rig, core = on_the_provider()
    core.faults.on_request(faults.ErrorFrame("server_error", after=2, shape="failed", deaf=True))
    assert "response.failed" == (await rig.turn(said("one")))[-1]["type"]


async def test_a_continuation_that_the_provider_rejects_is_sent_once_in_full():
    rig, core = on_the_provider()
    await rig.turn(said("one"))
    core.faults.on_request(faults.previous_response_not_found())
    assert "response.completed" == (await rig.turn(said("two")))[-1]["type"]
    assert ("ws_full", "previous_response_not_found", 2) == (*rig.outcome, rig.last.attempts)


async def test_other_lines_of_a_stream_are_no_events():
    rig = Rig()

    class Commented:
        status, headers = 200, [("content-type", "text/event-stream")]

        async def chunks(self):
            yield b": ping\n\n"
            end = {"id": "r", "status": "completed", "output": []}
            for type_ in ("response.created", "response.completed"):
                yield f"data: {json.dumps({'type': type_, 'response': end})}\n\n".encode()
                yield b": ping\n\n"
            yield b"data: [DONE]\n\n"

        async def close(self):
            pass

    async def post(url, headers, body, within):
        return Commented()

    rig.upstream.post = post
    rig.upstream.refuse(times=2)
    assert ["response.created", "response.completed"] == [
        e["type"] for e in await rig.turn(said("a"))
    ]
