"""``continuation = "store"``: what is continued and what is not, one rule a test."""

from __future__ import annotations

import json
import logging

import pytest

from app.demo.provider.oracle import same_transcript
from engine.model import Kind, Mode, Policy, Reason
from tests.support.first_turns import after, stack
from tests.support.loopback import CREDENTIAL, LoopbackHttp, Stack
from tests.support.provider import MODEL, make_core, user
from tests.support.storing import FIRST, STORE, holds, kept, reading, said, sent

# --- what is continued ------------------------------------------------------------------------


async def test_a_kept_response_is_continued_over_http_with_the_new_items_only():
    s = stack(STORE)
    body = await kept(s)
    assert (Mode.HTTP_FULL, Reason.NO_BASELINE, None) == said(s)
    assert sent(s)["store"] is True
    first = s.facts[0].response_id
    events = await s.turn(body)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
    assert (first, True, [user("more")]) == (
        sent(s)["previous_response_id"],
        sent(s)["store"],
        sent(s)["input"],
    )
    assert (1, 3, 2, True) == (
        s.last.items_sent,
        s.last.items_total,
        s.last.baseline_items,
        s.last.eligible,
    )
    assert s.last.prefix_digest == s.facts[0].baseline_digest
    assert [] == s.sockets.opened
    assert holds(s, body, events)


async def test_a_conversation_is_one_chain_and_a_fork_is_another():
    s = stack(STORE)
    body = await kept(s)
    one = after(await s.turn(body), body)
    await s.turn({**body, "input": [*body["input"][:-1], user("another way")]})
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
    await s.turn(one)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
    chains = [facts.chain for facts in s.facts]
    assert chains[0] == chains[1] == chains[3] != chains[2]


async def test_turns_in_parallel_hang_on_one_response_without_waiting():
    s = stack(STORE)
    body = await kept(s)
    slow = await s.answer(body)
    fork = {**body, "input": [*body["input"][:-1], user("meanwhile")]}
    await s.turn(fork)
    async for _ in slow:
        pass
    assert [Reason.OK, Reason.OK] == [facts.reason for facts in s.facts[1:]]
    assert s.facts[1].chain != s.facts[2].chain


@pytest.mark.parametrize("transport", ["http", "ws"])
async def test_each_kind_of_client_is_continued_and_answered_in_its_own_way(transport):
    s = stack(STORE)
    first = FIRST if transport == "ws" else {**FIRST, "stream": False}
    call = {"transport": transport, "socket": "c" if transport == "ws" else None}
    answered = await s.turn(first, **call)
    response = answered[-1]["response"] if transport == "ws" else answered[-1]
    body = {**first, "input": [*first["input"], *response["output"], user("more")]}
    await s.turn(body, **call)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
    assert [user("more")] == sent(s)["input"]
    assert (transport == "ws") is (sent(s).get("stream") is True)


async def test_a_request_that_says_store_itself_goes_as_it_came_where_it_goes_in_full():
    s = stack(STORE)
    raw = json.dumps({**FIRST, "store": True}, indent=1).encode()
    await s.turn(raw)
    assert raw.decode() == s.core.log[-1].frame


async def test_a_reset_makes_one_full_turn():
    s = stack(STORE)
    body = await kept(s)
    s.driver.reset_epoch("tenant", "default", "s", "summarize")
    events = await s.turn(body)
    assert (Mode.HTTP_FULL, Reason.EPOCH_RESET, None) == said(s)
    assert "summarize" == s.last.epoch_reset_reason
    await s.turn(after(events, body))
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)


async def test_a_reset_during_a_turn_holds_for_its_answer():
    s = stack(STORE)
    answer = await s.answer(FIRST)
    s.driver.reset_epoch("tenant", "default", "s", "manual")
    events = [json.loads(event.data) async for event in answer if event.data]
    await s.turn(after(events, FIRST))
    assert (Mode.HTTP_FULL, Reason.EPOCH_RESET, None) == said(s)


async def test_a_response_that_the_client_names_itself_goes_upstream_unchanged():
    s = stack(STORE)
    await kept(s)
    named = {**FIRST, "input": [user("x")], "previous_response_id": s.last.response_id}
    await s.turn(named, transport="ws", socket="c")
    assert (Mode.HTTP_INCREMENTAL, Reason.CLIENT_ANCHORED, None) == said(s)
    assert [] == s.sockets.opened


async def test_a_warm_up_generates_nothing_and_the_turn_after_it_is_kept():
    s = stack(STORE)
    await s.turn({**FIRST, "generate": False}, transport="ws", socket="c")
    assert (Kind.WARMUP, 0) == (s.last.kind, len(s.core.log))
    named = {**FIRST, "input": [], "previous_response_id": s.last.response_id}
    events = await s.turn(named, transport="ws", socket="c")
    assert (Mode.HTTP_FULL, [user("one")]) == (s.last.mode, sent(s)["input"])
    await s.turn(after(events, FIRST), transport="ws", socket="c")
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)


async def test_bytes_of_a_conversation_are_counted_once():
    s = stack(STORE)
    body = await kept(s)
    for _ in range(3):
        body = after(await s.turn(body), body)
    anchors = list(s.driver.sessions.scope(("tenant", "default", "s")).anchors.values())
    assert [0, 0, 0] == [anchor.size for anchor in anchors[:-1]]
    assert anchors[-1].size == s.driver.sessions._bytes > 0


async def test_figures_tell_what_can_be_continued_and_who_is_not_kept():
    s = stack(STORE)
    body = await kept(s)
    await s.turn(body)
    assert (0, 2) == s.driver.figures("default")
    reading(s, lambda read: read.update(store=False))
    await s.turn(FIRST, session="other")
    assert (1, 0) == s.driver.figures("default")
    assert (0, 0) == s.driver.figures("another")


# --- what is not ------------------------------------------------------------------------------


async def test_what_the_client_does_not_want_stored_is_not_and_goes_as_it_came():
    s = stack(STORE)
    first = {**FIRST, "store": False}
    body = await kept(s, first)
    await s.turn(body)
    assert (Mode.HTTP_FULL, Reason.STORE_UNSUPPORTED, "store_false") == said(s)
    assert not s.last.eligible
    assert json.dumps(body) == s.core.log[-1].frame
    assert not s.core.held(s.last.response_id).stored


async def test_the_operators_policy_may_store_it_all_the_same():
    s = stack(Policy(continuation="store", force_store=True))
    first = {**FIRST, "store": False}
    body = await kept(s, first)
    await s.turn(body)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
    assert (True, False) == (sent(s)["store"], s.last.store)


async def test_models_outside_the_policy_go_as_they_came():
    s = stack(Policy(continuation="store", models=("o3", "other-*")))
    body = await kept(s)
    await s.turn(body)
    assert (Mode.HTTP_FULL, Reason.CONTINUATION_OFF, None) == said(s)
    assert json.dumps(body) == s.core.log[-1].frame
    matching = stack(Policy(continuation="store", models=(MODEL[:3] + "*",)))
    await matching.turn(await kept(matching))
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(matching)


async def test_an_edit_or_another_field_goes_in_full_and_says_why():
    s = stack(STORE)
    body = await kept(s)
    await s.turn({**body, "input": [user("edited"), *body["input"][1:]]})
    assert (Mode.HTTP_FULL, Reason.PREFIX_MISMATCH, None) == said(s)
    await s.turn({**body, "instructions": "other"})
    assert (Mode.HTTP_FULL, Reason.NON_INPUT_FIELDS_CHANGED, None) == said(s)
    await s.turn(body)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)


# --- upstreams that do not keep responses -----------------------------------------------------


async def test_an_answer_that_is_not_stored_stops_it_for_a_while_with_one_warning(caplog):
    s = stack(STORE)
    reading(s, lambda body: body.update(store=False))
    with caplog.at_level(logging.WARNING, "warmline.engine"):
        body = await kept(s)
        assert (Mode.HTTP_FULL, Reason.NO_BASELINE, None) == said(s)
        body = after(await s.turn(body), body)
        assert (Mode.HTTP_FULL, Reason.STORE_UNSUPPORTED, "not_stored") == said(s)
        s.clock.advance(STORE.rejected_cooldown)
        body = after(await s.turn(body), body)  # probed, and found wanting again
        assert (Mode.HTTP_FULL, Reason.STORE_UNSUPPORTED, "not_kept") == said(s)
    assert 1 == len(caplog.records)
    assert "default" in caplog.text
    s.clock.advance(STORE.rejected_cooldown)
    s.http.post = LoopbackHttp(s.core).post
    body = after(await s.turn(body), body)
    body = after(await s.turn(body), body)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
    reading(s, lambda read: read.update(store=False))
    with caplog.at_level(logging.WARNING, "warmline.engine"):
        await s.turn(body)
    assert 2 == len(caplog.records)


async def test_an_unsupported_upstream_drops_what_was_kept_there_but_only_for_its_tenant():
    s = stack(STORE)
    one, other = await kept(s), await kept(s, tenant="other")
    reading(s, lambda body: body.update(store=False))
    await s.turn(FIRST, session="third")
    s.http.post = LoopbackHttp(s.core).post
    await s.turn(other, tenant="other")
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
    s.clock.advance(STORE.rejected_cooldown)
    await s.turn(one)
    assert (Mode.HTTP_FULL, Reason.STORE_UNSUPPORTED, "not_kept") == said(s)


async def test_an_upstream_that_refuses_to_store_gets_the_clients_own_request():
    s = Stack(
        make_core("codex", replies=["a", "b"]), Policy(continuation="store", force_store=True)
    )
    first = {**FIRST, "store": False, "instructions": "be brief"}
    events = await s.turn(first)
    assert "response.completed" == events[-1]["type"]
    assert (Mode.HTTP_FULL, Reason.STORE_UNSUPPORTED, "refused") == said(s)
    assert (2, json.dumps(first), None) == (
        s.last.attempts,
        s.core.log[-1].frame,
        s.last.error_code,
    )
    await s.turn(after(events, first))
    assert (1, "refused") == (s.last.attempts, s.last.fallback_reason)


async def test_a_refusal_of_what_the_client_asked_for_itself_is_the_clients():
    s = Stack(make_core("codex"), STORE)
    answer = await s.answer({**FIRST, "store": True, "instructions": "be brief"})
    assert (400, 1) == (answer.status, s.last.attempts)


@pytest.mark.parametrize("transport", ["sse", "http", "ws"])
async def test_an_upstream_that_ignores_the_anchor_never_answers_a_bare_delta(transport):
    s = stack(STORE)
    first = FIRST if transport != "http" else {**FIRST, "stream": False}
    call = {"transport": transport, "socket": "c" if transport == "ws" else None}
    answered = await s.turn(first, **call)
    response = answered[-1]["response"] if transport != "http" else answered[-1]
    body = {**first, "input": [*first["input"], *response["output"], user("more")]}
    reading(s, lambda read: read.pop("previous_response_id", None))
    answered = await s.turn(body, **call)
    assert (Mode.HTTP_FULL, Reason.STORE_UNSUPPORTED, "anchor_ignored") == said(s)
    assert 2 == s.last.attempts
    response = answered[-1]["response"] if transport != "http" else answered[-1]
    held = s.core.held(response["id"]).items
    assert same_transcript(held, [*body["input"], *response["output"]])
    assert 1 == [e.get("type") for e in answered].count("response.created") or transport == "http"


@pytest.mark.parametrize(
    "header", ["openai-organization", "openai-project", "chatgpt-account-id", "user-agent"]
)
async def test_what_is_kept_for_one_account_is_not_continued_for_another(header):
    s = stack(STORE)
    body = await kept(s, headers=(("authorization", CREDENTIAL), (header, "one")))
    await s.turn(body, headers=(("authorization", CREDENTIAL), (header, "two")))
    full = (Mode.HTTP_FULL, Reason.CONNECTION_LOST, "handshake_changed")
    assert (full if header != "user-agent" else (Mode.HTTP_INCREMENTAL, Reason.OK, None)) == said(s)
    await s.turn(body, headers=(("authorization", CREDENTIAL), (header, "one")))
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
