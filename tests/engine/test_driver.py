"""What the driver does when the upstream misbehaves: DESIGN 4.1 and 4.7, one rule a test."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from app.demo.provider import faults
from app.demo.provider.oracle import same_transcript
from engine import digests
from engine.aside import LARGE
from engine.model import ColdCause, Kind, Mode, Policy, Reason, Status
from engine.request import split
from tests.support.first_turns import FIRST, after, stack, warm
from tests.support.provider import user


async def test_a_rejected_upgrade_is_sticky_for_its_cooldown_and_then_probed_again():
    s = stack()
    s.core.faults.on_upgrade(faults.RefuseUpgrade(426))
    body = await warm(s)
    await s.turn(body)
    assert (Mode.HTTP_FULL, Reason.WS_REJECTED) == (s.last.mode, s.last.reason)
    s.clock.advance(601)
    await s.turn(body)
    assert Mode.WS_FULL == s.last.mode


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


async def test_a_warm_up_is_a_row_of_its_own_and_the_next_turn_hangs_on_it():
    s = stack()
    warm_up = {**FIRST, "type": "response.create", "generate": False, "input": []}
    await s.turn(warm_up, transport="ws", socket="w1")
    assert (Kind.WARMUP, Mode.WS_FULL) == (s.last.kind, s.last.mode)
    body = {**FIRST, "previous_response_id": s.last.response_id}
    await s.turn(body, transport="ws", socket="w1")
    assert (Mode.WS_INCREMENTAL, Reason.OK, 1) == (s.last.mode, s.last.reason, s.last.items_sent)


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


async def test_an_internal_fault_lets_the_original_request_through(monkeypatch):
    s = stack()

    def broken(*_args, **_more):
        raise RuntimeError("a bug")

    monkeypatch.setattr("engine.decision.decide", broken)
    events = await s.turn(FIRST)
    assert "response.completed" == events[-1]["type"]
    assert (Mode.HTTP_FULL, Reason.INTERNAL_ERROR) == (s.last.mode, s.last.reason)


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


async def test_models_outside_the_policy_go_over_http_and_an_expanded_delta_stays_whole():
    s = stack(Policy(models=("o3",)))
    await s.turn(FIRST, transport="ws", socket="c")
    assert (Mode.HTTP_FULL, Reason.CONTINUATION_OFF) == (s.last.mode, s.last.reason)
    s = stack(Policy(models=(FIRST["model"],)))
    events = await s.turn(FIRST, transport="ws", socket="c")
    named = {**FIRST, "input": [user("x")], "previous_response_id": s.last.response_id}
    await s.turn({**named, "model": "gpt-5.6-sol"}, transport="ws", socket="c")
    assert (Mode.HTTP_FULL, Reason.CONTINUATION_OFF) == (s.last.mode, s.last.reason)
    sent = s.core.log[-1].body["input"]
    assert same_transcript(s.core.held(s.last.response_id).items[: len(sent)], sent)
    assert 2 + len(events[-1]["response"]["output"]) == len(sent)


async def test_a_post_that_asks_for_a_warm_up_is_the_providers_to_judge():
    s = stack()
    await s.turn({**FIRST, "generate": False})
    assert (Kind.WARMUP, Reason.CONTINUATION_OFF, 1) == (
        s.last.kind,
        s.last.reason,
        len(s.core.log),
    )


async def test_at_the_end_all_connections_are_closed():
    s = stack()
    body = await warm(s)
    await s.turn({**body, "input": [user("other")]})
    s.driver.reset_epoch("tenant", "default", "s", "manual")  # closes in the background
    await s.turn(FIRST, session="t")
    await s.driver.aclose()
    assert [True] * len(s.sockets.opened) == [c.closed for c in s.sockets.opened]
    await s.driver.aclose()


@pytest.mark.parametrize("policy", [Policy(), Policy(continuation="store", force_store=True)])
async def test_what_is_cooled_is_continued_by_nobody_whoever_keeps_it(policy):
    s = stack(policy)
    body = await warm(s)
    (anchor,) = s.driver.sessions.anchors(("tenant", "default", "s"))
    for cause in (ColdCause.OUTPUT_CONFLICT, ColdCause.CLOSED):
        s.driver.cool("tenant", "default", "s", anchor, cause)
    assert (ColdCause.OUTPUT_CONFLICT, False) == (anchor.cold, anchor.is_live)
    await s.turn(body)
    assert (Reason.OUTPUT_CONFLICT, None) == (s.last.reason, s.last.previous_response_id)


async def test_who_leaves_after_the_end_changes_nothing():
    s = stack()
    await warm(s)
    s.driver.client_left("turn_1")
    assert Status.COMPLETED == s.last.status


async def test_a_body_that_was_read_ahead_is_not_read_again(monkeypatch):
    s = stack()
    body = await warm(s)
    call = s.call(body)
    request = await s.driver.read(
        call.body, tenant=call.tenant, upstream=call.upstream.name, session=call.session
    )
    monkeypatch.setattr("engine.driver.split", None)
    answer = await s.driver.run(dataclasses.replace(call, request=request))
    async for _ in answer:
        pass
    assert (Mode.WS_INCREMENTAL, Reason.OK) == (s.last.mode, s.last.reason)


@pytest.mark.parametrize("tenant", ["tenant", "nobody"])
async def test_whose_body_was_guessed_to_be_changes_nothing(tenant):
    s = stack()
    call = s.call(await warm(s))
    request = await s.driver.read(call.body, tenant=tenant, upstream="default", session="other")
    async for _ in await s.driver.run(dataclasses.replace(call, request=request)):
        pass
    assert (Mode.WS_INCREMENTAL, Reason.OK) == (s.last.mode, s.last.reason)


async def test_a_body_that_cannot_be_read_ahead_is_told_as_one(caplog, monkeypatch):
    s = stack()
    names = {"tenant": "t", "upstream": "default", "session": None}
    assert await s.driver.read(b'{"input":[],"input":[]}', **names) is None

    def fail(*_):
        raise ZeroDivisionError("canary")

    monkeypatch.setattr("engine.driver.split", fail)
    assert await s.driver.read(b"{}", **names) is None
    assert "ZeroDivisionError" in caplog.text
    assert "canary" not in caplog.text


async def test_a_large_body_is_read_and_digested_in_a_thread(monkeypatch):
    """A fault of the field (docs/field-reports.md): every other stream would wait."""
    here, where = threading.get_ident(), {}

    def noted(name, work):
        def note(*given):
            where[name] = threading.get_ident()
            return work(*given)

        return note

    monkeypatch.setattr("engine.driver.split", noted("split", split))
    monkeypatch.setattr("engine.digests.extend", noted("digest", digests.extend))
    s = stack()
    large = {**FIRST, "input": [user("x" * LARGE)]}
    call = s.call(large)
    names = {"tenant": call.tenant, "upstream": "default", "session": call.session}
    request = await s.driver.read(call.body, **names)
    answer = await s.driver.run(dataclasses.replace(call, request=request))
    assert here not in (where["split"], where["digest"])
    async for _ in answer:
        pass
    assert (Mode.WS_FULL, Status.COMPLETED) == (s.last.mode, s.last.status)
