"""What the driver does when the upstream misbehaves: DESIGN 4.1 and 4.7, one rule a test."""

from __future__ import annotations

import asyncio
import json

import pytest

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from app.demo.provider.oracle import same_transcript
from engine.model import Kind, Mode, Policy, Reason, Status
from tests.support.loopback import Stack
from tests.support.provider import MODEL, make_core, user

FIRST = {"model": MODEL, "store": False, "stream": True, "input": [user("one")]}


def stack(policy: Policy | None = None, **options) -> Stack:
    return Stack(make_core(replies=[f"answer {n}" for n in range(20)], **options), policy)


def after(events: list[dict], body: dict, text: str = "more", **more) -> dict:
    """The next request of a client that replays everything."""
    return {
        **body,
        "input": [*body["input"], *events[-1]["response"]["output"], user(text)],
        **more,
    }


async def warm(s: Stack, **call) -> dict:
    """One answered turn; returns the body of the next."""
    return after(await s.turn(FIRST, **call), FIRST)


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


async def test_a_rejected_upgrade_is_sticky_for_its_cooldown_and_then_probed_again():
    s = stack()
    s.core.faults.on_upgrade(faults.RefuseUpgrade(426))
    body = await warm(s)
    await s.turn(body)
    assert (Mode.HTTP_FULL, Reason.WS_REJECTED) == (s.last.mode, s.last.reason)
    s.clock.advance(601)
    await s.turn(body)
    assert Mode.WS_FULL == s.last.mode


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


async def test_a_bare_server_error_before_any_event_is_tried_once_more():
    s = stack()
    raw = {"type": "error", "error": {"type": "server_error", "code": None, "message": "Sorry."}}
    s.core.faults.on_request(faults.ErrorFrame("server_error", None, raw=raw))
    events = await s.turn(FIRST)
    assert "response.completed" == events[-1]["type"]
    assert 2 == s.last.attempts


async def test_a_quota_error_is_429_with_retry_after_in_one_attempt():
    s = stack()
    error = {"type": "usage_limit_reached", "message": "later", "resets_in_seconds": 9568}
    raw = {"type": "error", "status_code": 429, "error": error}
    s.core.faults.on_request(faults.ErrorFrame("usage_limit_reached", 429, raw=raw))
    answer = await s.answer(FIRST)
    assert (429, Status.RATE_LIMITED, 1) == (answer.status, s.last.status, s.last.attempts)
    assert ("retry-after", "9568") in answer.headers


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


async def test_a_foreign_anchor_is_refused_like_an_unknown_one_and_nothing_is_sent():
    s = stack()
    await s.turn(FIRST)
    sent = len(s.core.log)
    stolen = {**FIRST, "previous_response_id": s.last.response_id, "input": [user("go on")]}
    answer = await s.answer(stolen, tenant="another")
    assert (400, Status.REFUSED, sent) == (answer.status, s.last.status, len(s.core.log))
    assert b"previous_response_not_found" in answer.body


async def test_an_anchored_request_is_expanded_and_continued():
    s = stack()
    await s.turn(FIRST)
    body = {**FIRST, "previous_response_id": s.last.response_id, "input": [user("go on")]}
    await s.turn(body)
    assert (Mode.WS_INCREMENTAL, Reason.OK, 1, 3) == (
        s.last.mode,
        s.last.reason,
        s.last.items_sent,
        s.last.items_total,
    )


async def test_an_anchored_request_whose_chain_is_gone_goes_in_full_with_its_history():
    s = stack()
    events = await s.turn(FIRST)
    s.sockets.opened[0].drop()
    body = {**FIRST, "previous_response_id": s.last.response_id, "input": [user("go on")]}
    await s.turn(body)
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST, 3) == (
        s.last.mode,
        s.last.reason,
        s.last.items_sent,
    )
    held = s.core.held(s.last.response_id).items[:-2]
    assert same_transcript(held, after(events, FIRST, "go on")["input"][: len(held)])


async def test_an_unknown_anchor_goes_upstream_as_it_is_and_a_bare_delta_is_never_sent_without_it():
    s = stack()
    body = {**FIRST, "previous_response_id": "resp_unknown", "input": [user("go on")]}
    answer = await s.answer(body, transport="ws", socket="w1")
    assert 400 == answer.status
    assert ["resp_unknown"] == [attempt.previous_response_id for attempt in s.core.log]
    assert Reason.CLIENT_ANCHORED == s.last.reason


async def test_a_warm_up_is_a_row_of_its_own_and_the_next_turn_hangs_on_it():
    s = stack()
    warm_up = {**FIRST, "type": "response.create", "generate": False, "input": []}
    await s.turn(warm_up, transport="ws", socket="w1")
    assert (Kind.WARMUP, Mode.WS_FULL) == (s.last.kind, s.last.mode)
    body = {**FIRST, "previous_response_id": s.last.response_id}
    await s.turn(body, transport="ws", socket="w1")
    assert (Mode.WS_INCREMENTAL, Reason.OK, 1) == (s.last.mode, s.last.reason, s.last.items_sent)


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


async def test_a_leased_chain_is_extended_by_nobody_else_until_its_socket_ends():
    s = stack()
    body = await warm(s, transport="ws", socket="w1")
    await s.turn(body)
    assert (Reason.CHAIN_BUSY, "leased") == (s.last.reason, s.last.fallback_reason)
    s.driver.socket_closed("w1")
    aside = {**body, "input": [*body["input"][:-1], user("resumed")]}
    await s.turn(aside)
    assert (Mode.WS_INCREMENTAL, Reason.OK) == (s.last.mode, s.last.reason)


async def test_a_reset_by_the_caller_makes_one_full_turn_and_is_consumed_by_it():
    s = stack()
    body = await warm(s)
    events = await s.turn(body, epoch_reset="summarize")
    assert (Mode.WS_FULL, Reason.EPOCH_RESET, "summarize", 2, 1) == (
        s.last.mode,
        s.last.reason,
        s.last.epoch_reset_reason,
        s.last.epoch,
        s.last.epoch_turn,
    )
    await s.turn(after(events, body))
    assert (Reason.OK, 2, 2) == (s.last.reason, s.last.epoch, s.last.epoch_turn)


async def test_a_reset_survives_a_turn_that_fails():
    s = stack()
    body = await warm(s)
    s.driver.reset_epoch("tenant", "default", "s", "summarize")
    s.core.faults.on_request(faults.abort(after=2))
    await s.turn(body)
    assert (Reason.EPOCH_RESET, Status.ERROR) == (s.last.reason, s.last.status)
    await s.turn(body)
    assert (Reason.EPOCH_RESET, "summarize", 2) == (
        s.last.reason,
        s.last.epoch_reset_reason,
        s.last.epoch,
    )


async def test_a_counted_epoch_ends_after_its_turns():
    s = stack(Policy(epoch_turns=2))
    body = await warm(s)
    events = await s.turn(body)
    body = after(events, body)
    await s.turn(body)
    assert (Reason.EPOCH_RESET, "turn_count", 2) == (
        s.last.reason,
        s.last.epoch_reset_reason,
        s.last.epoch,
    )


async def test_a_compaction_leaves_no_anchor_and_the_next_turn_is_a_new_epoch():
    s = stack()
    body = await warm(s)
    trigger = {**body, "input": [*body["input"], {"type": "compaction_trigger"}]}
    events = await s.turn(trigger)
    assert (Kind.COMPACTION, Mode.WS_INCREMENTAL) == (s.last.kind, s.last.mode)
    window = [user("short"), *events[-1]["response"]["output"]]
    body = {**FIRST, "input": window}
    events = await s.turn(body)
    assert (Reason.EPOCH_RESET, "compaction") == (s.last.reason, s.last.epoch_reset_reason)
    await s.turn(after(events, body))
    assert Reason.OK == s.last.reason


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


async def test_an_internal_fault_lets_the_original_request_through(monkeypatch):
    s = stack()

    def broken(*_args, **_more):
        raise RuntimeError("a bug")

    monkeypatch.setattr("engine.decision.decide", broken)
    events = await s.turn(FIRST)
    assert "response.completed" == events[-1]["type"]
    assert (Mode.HTTP_FULL, Reason.INTERNAL_ERROR) == (s.last.mode, s.last.reason)


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


async def test_two_tenants_with_one_session_name_never_share_a_chain():
    s = stack()
    body = await warm(s)
    await s.turn(body, tenant="another")
    assert (Mode.WS_FULL, Reason.NO_BASELINE) == (s.last.mode, s.last.reason)


async def test_an_unnamed_turn_that_names_a_stored_response_stays_in_its_session():
    s = stack()
    await s.turn({**FIRST, "store": True}, session=None)
    first = s.last
    body = {**FIRST, "store": True, "previous_response_id": first.response_id}
    await s.turn(body, session=None)
    assert (first.session, Reason.CLIENT_ANCHORED) == (s.last.session, s.last.reason)


async def test_an_answer_that_is_closed_early_leaves_its_row_at_once():
    s = stack()
    answer = await s.answer(FIRST)
    async for _ in answer:
        break
    await answer.events.aclose()
    assert [Status.CLIENT_CLOSED] == [facts.status for facts in s.facts]
