"""The embedded session: turns, names and facts (DESIGN 9), one rule a test."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from engine.embed import ResponsesSession, SystemClock
from engine.errors import TurnFailed
from engine.model import Kind, Status
from engine.testing import Fail, Incomplete, function_call, message, reasoning
from tests.support.embedded import (
    CONTINUED,
    FULL_FIRST,
    KEY,
    REQUEST,
    URL,
    Rig,
    converted,
    drain,
    gave,
    looped,
    said,
    same_as_held,
    session,
    warm,
)

# --- a turn --------------------------------------------------------------------------------------


async def test_the_first_turn_goes_in_full_and_stores_nothing():
    rig = await warm()
    assert FULL_FIRST == rig.outcome
    (sent,) = rig.upstream.sent
    assert [said("one")] == sent.body["input"]
    assert (False, "agent-7") == (sent.body["store"], sent.body["prompt_cache_key"])
    assert {"previous_response_id", "stream"} & sent.body.keys() == set()


async def test_the_next_turn_sends_what_is_new_on_the_same_connection():
    rig = await warm()
    first = rig.last.response_id
    await rig.turn(said("two"))
    assert CONTINUED == rig.outcome
    assert [0, 0] == [sent.connection for sent in rig.upstream.sent]
    sent = rig.upstream.sent[-1].body
    assert ([said("two")], first, False) == (
        sent["input"],
        sent["previous_response_id"],
        sent["store"],
    )
    assert same_as_held(rig)


async def test_a_tool_loop_with_parallel_calls_stays_incremental():
    calls = [reasoning("gAAA", "thinking"), function_call("f", "a"), function_call("g", "b")]
    rig = Rig(calls, function_call("f", "c"), "done", "again")
    await rig.turn(said("go"))
    assert rig.session.record(rig.history)
    for items in ([gave("a"), gave("b")], [gave("c")], [said("more")]):
        await rig.turn(*items)
        assert rig.session.record(rig.history)
        assert CONTINUED == rig.outcome
        assert items == rig.upstream.sent[-1].body["input"]
        assert same_as_held(rig)


async def test_each_turn_hangs_on_the_one_before():
    rig = await warm()
    for text in "abc":
        before = rig.last
        await rig.turn(said(text))
        assert before.response_id == rig.last.previous_response_id
        assert before.baseline_digest == rig.last.prefix_digest


async def test_the_events_are_the_providers_own():
    rig = Rig("hi")
    events = await rig.turn(said("one"))
    assert [
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.completed",
    ] == [event["type"] for event in events]


async def test_the_output_of_the_last_turn_is_at_hand_until_the_next_is_sent():
    rig = Rig([reasoning("gA"), message("a")], Fail(after=2))
    assert [] == rig.session.last_output
    events = await rig.turn(said("one"))
    assert events[-1]["response"]["output"] == rig.session.last_output
    await rig.turn(said("two"))
    assert [] == rig.session.last_output


async def test_an_incomplete_answer_is_continued_with_what_was_done():
    rig = Rig(Incomplete([message("cut")]))
    await rig.turn(said("one"))
    assert Status.INCOMPLETE is rig.last.status
    await rig.turn(said("go on"))
    assert CONTINUED == rig.outcome
    assert same_as_held(rig)


async def test_an_input_with_nothing_new_goes_in_full():
    rig = await warm()
    await rig.turn()
    assert ("ws_full", "empty_delta") == rig.outcome


async def test_a_changed_field_is_named_and_the_turn_goes_in_full():
    rig = await warm()
    await rig.turn(said("two"), tools=[{"type": "function", "name": "f"}])
    assert ("ws_full", "non_input_fields_changed") == rig.outcome
    assert ("tools",) == rig.last.changed_fields


async def test_an_edited_message_goes_in_full_and_its_place_is_told():
    rig = await warm()
    rig.history[0] = said("ONE")
    await rig.turn(said("two"))
    assert ("ws_full", "prefix_mismatch", 0) == (*rig.outcome, rig.last.evidence.index)
    assert same_as_held(rig)


@pytest.mark.parametrize("change", ["edited", "dropped"])
async def test_reasoning_that_is_not_replayed_as_it_came_goes_in_full(change):
    rig = Rig([reasoning("gAAA", "why"), message("first")], "second")
    await rig.turn(said("one"))
    assert {"type": "reasoning", "encrypted_content": "gAAA"}.items() <= rig.history[1].items()
    if change == "edited":
        rig.history[1]["encrypted_content"] = "gBBB"
    else:
        del rig.history[1]
    await rig.turn(said("two"))
    assert ("ws_full", "prefix_mismatch", 1) == (*rig.outcome, rig.last.evidence.index)


async def test_a_history_that_went_back_opens_a_chain_of_its_own_and_the_old_one_lives_on():
    rig = await warm("a", "b", "c")
    await rig.turn(said("two"))
    long = list(rig.history)
    rig.history = long[:2]
    await rig.turn(said("other"))
    assert ("ws_full", "prefix_mismatch") == rig.outcome
    rig.history = long
    await rig.turn(said("three"))
    assert CONTINUED == rig.outcome


async def test_what_is_changed_in_place_after_it_was_sent_is_noticed():
    rig = Rig()
    tools = [{"type": "function", "name": "f"}]
    parts = [{"type": "input_text", "text": "one"}]
    await rig.turn({"role": "user", "content": parts}, tools=tools)
    parts[0]["text"] = "ONE"
    await rig.turn(said("two"), tools=tools)
    assert ("ws_full", "prefix_mismatch") == rig.outcome
    tools[0]["name"] = "g"
    await rig.turn(said("three"), tools=tools)
    assert ("ws_full", "non_input_fields_changed") == rig.outcome


async def test_what_is_changed_before_the_first_event_is_read_is_not_sent():
    rig = Rig()
    history = [said("one")]
    stream = rig.session.send(REQUEST, history)
    history[0]["content"] = "changed"
    history.append(said("added"))
    await drain(stream)
    assert [said("one")] == rig.upstream.sent[-1].body["input"]


@pytest.mark.parametrize("now", [1.0, True])
async def test_numbers_are_told_by_their_spelling(now):
    rig = Rig()
    await rig.turn({**said("one"), "n": 1})
    rig.history[0]["n"] = now
    await rig.turn(said("two"))
    assert ("ws_full", "prefix_mismatch") == rig.outcome


# --- who it is -----------------------------------------------------------------------------------


async def test_one_name_stands_in_body_and_headers_on_both_wires():
    rig = await warm()
    assert "agent-7" == rig.session.identity == rig.last.session == rig.last.prompt_cache_key
    rig.upstream.drop()
    rig.upstream.refuse(times=2)
    await rig.turn(said("two"))
    for headers in (rig.upstream.handshakes[0], rig.upstream.post_headers[0]):
        assert {
            "session-id": "agent-7",
            "thread-id": "agent-7",
            "originator": "test-agent",
            "user-agent": "test-agent",
            "authorization": f"Bearer {KEY}",
        }.items() <= dict(headers).items()


async def test_the_name_outlives_epochs_failures_and_new_connections():
    rig = await warm(Fail(status=500), "second")
    rig.session.reset_epoch("summarize")
    with pytest.raises(TurnFailed):
        await rig.turn(said("two"))
    await rig.turn()
    assert {"agent-7"} == {sent.body["prompt_cache_key"] for sent in rig.upstream.sent}
    assert {"agent-7"} == {dict(headers)["session-id"] for headers in rig.upstream.handshakes}
    assert 1 == len({facts.session_key for facts in rig.facts})


async def test_the_default_name_of_the_software_is_its_own():
    rig = Rig(client="warmline")
    await rig.turn(said("one"))
    headers = dict(rig.upstream.handshakes[0])
    assert "warmline" == headers["originator"]
    assert headers["user-agent"].startswith("warmline")


async def test_where_its_version_is_not_known_the_software_has_none(monkeypatch):
    def unknown(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("engine.embed.version", unknown)
    rig = await warm(client="warmline")
    assert "warmline" == dict(rig.upstream.handshakes[0])["user-agent"]


async def test_nothing_that_changes_from_turn_to_turn_is_in_the_handshake():
    rig = await warm()
    rig.upstream.drop()
    rig.clock.advance(100)
    await rig.turn(said("two"))
    one, other = rig.upstream.handshakes
    assert one == other


async def test_another_credential_never_uses_what_the_first_one_left():
    keys = iter(["first", "first", "second", "second"])
    rig = Rig(function_call("f", "a"), api_key=lambda: next(keys))
    await rig.turn(said("one"))
    await rig.turn(gave("a", "seen"))
    rig.history[2]["output"] = "now"
    await rig.turn(said("two"))
    assert FULL_FIRST == rig.outcome
    assert "now" == rig.held[2]["output"]
    assert [0, 0, 1] == [sent.connection for sent in rig.upstream.sent]
    await rig.turn(said("three"))
    assert CONTINUED == rig.outcome
    assert 2 == len({facts.tenant for facts in rig.facts})


async def test_accounts_are_told_apart_whatever_header_names_them():
    tenants = set()
    for headers in ({"api-key": "a"}, {"api-key": "b"}, {"chatgpt-account-id": "a"}, {"x": "a"}):
        rig = await warm(api_key=None, headers=headers)
        tenants.add(rig.last.tenant)
    assert 4 == len(tenants)


async def test_the_tenant_can_be_named():
    rig = await warm(tenant="acme")
    assert "acme" == rig.last.tenant


# --- the facts -----------------------------------------------------------------------------------


async def test_every_turn_leaves_its_facts_once_before_its_last_event():
    rig = await warm()
    events = rig.session.send(REQUEST, [*rig.history, said("two")])
    assert [1, 1, 1, 2] == [len(rig.facts) async for _ in events]
    assert rig.session.last_turn is rig.last


async def test_the_facts_say_that_the_turn_was_embedded():
    rig = await warm()
    await rig.turn(said("two"), reasoning={"effort": "high"})
    facts = rig.facts[0]
    assert ("embedded", "embedded", "test-agent", None, Kind.GENERATION, False) == (
        facts.source,
        facts.client_transport,
        facts.client,
        facts.client_version,
        facts.kind,
        facts.store,
    )
    assert ("default", "gpt-5.5", "high", 0) == (
        rig.last.upstream,
        rig.last.model,
        rig.last.reasoning_effort,
        rig.last.frozen_items,
    )


async def test_the_facts_hold_no_content_and_no_credential():
    rig = Rig([reasoning("gSECRET-1", "SECRET-2"), function_call("f", "a", '{"x":"SECRET-3"}')])
    await rig.turn(said("SECRET-4"), instructions="SECRET-5")
    rig.history[0] = said("SECRET-6")
    await rig.turn(gave("a", "SECRET-7"), instructions="SECRET-8")
    rig.upstream.replies.append(Fail("SECRET", status=400))
    with pytest.raises(TurnFailed) as failed:
        await rig.turn(said("SECRET-9"))
    shown = repr([f for f in rig.facts if f.error_code is None]) + str(failed.value).replace(
        "(SECRET)", ""
    )
    assert "SECRET" not in shown
    assert KEY not in repr(rig.facts) + repr(rig.session) + str(failed.value)


async def test_mode_and_reason_are_known_without_usage():
    rig = Rig()
    rig.upstream._reports_usage = False
    await rig.turn(said("one"))
    await rig.turn(said("two"))
    assert (CONTINUED, "missing", None) == (
        rig.outcome,
        rig.last.usage.state,
        rig.last.usage.input_tokens,
    )


async def test_what_on_turn_raises_does_not_reach_the_agent():
    rig = Rig()

    def broken(facts):
        raise RuntimeError("the ledger is full")

    rig.session = session(rig.upstream, on_turn=broken)
    for text in ("one", "two"):
        assert "response.completed" == (await rig.turn(said(text)))[-1]["type"]
    assert "ws_incremental" == rig.session.last_turn.mode


async def test_turns_of_one_message_of_the_user_are_one_group():
    rig = await looped()
    first, second = (facts.turn_group for facts in rig.facts)
    await rig.turn(said("more"))
    assert (first, True) == (second, rig.last.turn_group != first)


async def test_a_new_epoch_and_another_account_begin_a_group_of_their_own():
    keys = iter("aab")
    rig = Rig(function_call("f", "a"), function_call("f", "b"), api_key=lambda: next(keys))
    await rig.turn(said("go"))
    rig.session.reset_epoch("summarize")
    await rig.turn(gave("a"))
    await rig.turn(gave("b"))
    assert 3 == len({facts.turn_group for facts in rig.facts})


async def test_nobody_has_to_listen():
    rig = Rig()
    rig.session = session(rig.upstream, on_turn=None)
    await rig.turn(said("one"))
    assert "completed" == rig.session.last_turn.status


# --- how it is made ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [{"epoch_turns": -1}, {"key": b""}, {"key": b"x" * 65}, {"identity": ""}]
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match=r"epoch_turns|key|identity"):
        session(None, **wrong)


def test_the_clock_is_the_machines_by_default():
    clock = SystemClock()
    assert clock.now() > 1_700_000_000
    assert clock.monotonic() <= clock.monotonic()


async def test_ids_and_key_are_made_up_where_none_are_given():
    rig = Rig()
    rig.session = ResponsesSession(
        URL + "/", identity="a", websocket=rig.upstream, http=rig.upstream
    )
    await rig.turn(said("one"))
    assert rig.session.last_turn.turn_id.startswith("turn_")
    assert [converted(i) if "id" in i else i for i in rig.upstream.held["resp_1"]] == rig.history
