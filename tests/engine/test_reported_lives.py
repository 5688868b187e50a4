"""Faults from the field: tenants, turns at once, bounds, compaction (docs/field-reports.md)."""

from __future__ import annotations

import asyncio
import json

import pytest

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from app.demo.provider.replies import message
from engine import items
from engine.model import Kind, Mode, Policy, Reason, Status
from engine.sessions import Bounds
from tests.support.first_turns import FIRST, after, stack, warm
from tests.support.loopback import Stack
from tests.support.provider import make_core, user

CONTINUED = (Mode.WS_INCREMENTAL, Reason.OK)


def outcome(s) -> tuple:
    return s.last.mode, s.last.reason


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def chains(s: Stack) -> list:
    return [chain for scope in s.driver.sessions.scopes() for chain in scope.chains.values()]


# --- tenants --------------------------------------------------------------------------------------


@pytest.mark.parametrize("owners", ["ws", "sse", "http"])
@pytest.mark.parametrize("theirs", ["ws", "sse", "http"])
async def test_a_foreign_id_is_unknown_on_every_transport(owners, theirs):
    s = stack()
    await s.turn({**FIRST, "stream": owners != "http"}, transport=owners, socket="a")
    sent = len(s.core.log)
    named = {**FIRST, "previous_response_id": s.last.response_id, "input": [user("go on")]}
    more = {"tenant": "another", "headers": (("authorization", "Bearer b"),)}
    answer = await s.answer(
        {**named, "stream": theirs != "http"}, transport=theirs, socket="b", **more
    )
    assert (400, Status.REFUSED, sent) == (answer.status, s.last.status, len(s.core.log))
    assert b"previous_response_not_found" in answer.body


async def test_a_request_that_names_its_own_response_gets_no_history_of_another_task():
    s = stack()
    await s.turn({**FIRST, "input": [user("task one")]}, session="one")
    first = s.last.response_id
    await s.turn({**FIRST, "input": [user("task two")]}, session="two")
    own = s.last.response_id
    await s.turn({**FIRST, "previous_response_id": own, "input": [user("go on")]}, session="two")
    held = [json.loads(item.text) for item in s.core.held(s.last.response_id).items]
    assert own != first
    assert [user("task two"), user("go on")] == [i for i in held if i.get("role") == "user"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"tenant": "a:b", "session": "c"}, {"tenant": "a", "session": "b:c"}),
        ({"tenant": "a", "session": None}, {"tenant": "b", "session": None}),
    ],
)
async def test_equal_transcripts_of_two_owners_share_nothing(one, other):
    s = stack()
    body = await warm(s, **one)
    await s.turn(body, **other)
    assert (Mode.WS_FULL, Reason.NO_BASELINE) == outcome(s)
    assert s.facts[0].session_key != s.facts[1].session_key
    assert s.facts[0].connection != s.facts[1].connection
    assert None is s.core.log[-1].previous_response_id


async def test_two_unnamed_conversations_of_one_prompt_have_a_connection_each():
    s = stack()
    common = {**FIRST, "instructions": "the same"}
    bodies = [{**common, "input": [user(f"task {n}")]} for n in range(2)]
    events = [await s.turn(body, session=None) for body in bodies]
    assert 2 == len({row.connection for row in s.facts}) == len({row.session for row in s.facts})
    for n, body in enumerate(bodies):
        await s.turn(after(events[n], body), session=None)
        assert CONTINUED == outcome(s)
        assert s.facts[n].connection == s.last.connection


async def test_a_credential_that_an_error_repeats_is_in_no_row():
    s = stack()
    said = "Incorrect API key provided: Bearer sk-canary"
    error = faults.HttpError(401, said, code="invalid_api_key", kind="sk-canary")
    s.core.faults.on_request(error)
    answer = await s.answer(FIRST, headers=(("authorization", "Bearer sk-canary"),))
    assert (401, "invalid_api_key") == (answer.status, s.last.error_code)
    assert "canary" not in repr(s.facts)


# --- turns at once --------------------------------------------------------------------------------


@pytest.mark.parametrize("later", ["completed", "error"])
async def test_an_abandoned_response_is_nothing_of_the_next_turn(later):
    s = stack(Policy(drain_timeout=5.0))
    body = await warm(s)
    gate = Gate()
    error = [faults.ErrorFrame("server_error", after=5)] if later == "error" else []
    s.core.faults.on_request(faults.Hold(gate, after=3), *error)
    left = await s.answer(body)
    left.client_left()
    drained = asyncio.ensure_future(to_its_end(left))
    await settled()
    events = await s.turn({**body, "input": [*body["input"][:-1], user("aside")]})
    gate.open()
    await drained
    ids = {event["response"]["id"] for event in events if "response" in event}
    by_id = {row.response_id: row for row in s.facts}
    assert {s.core.log[2].response_id} == ids
    abandoned = by_id[s.core.log[1].response_id]
    assert Status.CLIENT_CLOSED is abandoned.status
    assert (later == "completed") == (abandoned.usage.input_tokens is not None)
    assert abandoned.connection != by_id[ids.pop()].connection


async def to_its_end(answer) -> None:
    async for _ in answer:
        pass


async def test_what_a_client_left_behind_is_continued_if_its_end_was_seen():
    s = stack()
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=3))
    answer = await s.answer(FIRST)
    answer.client_left()
    gate.open()
    await to_its_end(answer)
    assert Status.CLIENT_CLOSED is s.last.status
    held = [json.loads(item.text) for item in s.core.held(s.last.response_id).items]
    await s.turn({**FIRST, "input": [*held, user("two")]})
    assert CONTINUED == outcome(s)
    assert 2 == len(s.core.log)


async def test_what_a_client_left_behind_without_its_end_is_nobodys_to_continue():
    s = stack(Policy(drain_timeout=0.0))
    s.core.faults.on_request(faults.stall(after=3))
    answer = await s.answer(FIRST)
    answer.client_left()
    await to_its_end(answer)
    assert (Status.CLIENT_CLOSED, None) == (s.last.status, s.last.usage.input_tokens)
    await s.turn({**FIRST, "input": [*FIRST["input"], message("answer 0"), user("two")]})
    assert Mode.WS_FULL == s.last.mode
    assert 2 == len(s.core.log)


async def test_fifty_turns_that_fail_leave_nothing_behind():
    s = Stack(make_core(), bounds=Bounds(connections=8))
    for n in range(50):
        s.core.faults.on_request(
            [faults.abort(), faults.ErrorFrame("server_error"), faults.abort(after=2)][n % 3]
        )
        s.driver._keeper.health.succeeded("tenant", "default")
        await s.turn(FIRST)
    await settled()
    assert (50, []) == (len(s.facts), chains(s))
    assert {} == s.driver._keeper.connections
    assert all(connection.closed for connection in s.sockets.opened)
    await s.turn(FIRST)
    assert Mode.WS_FULL == s.last.mode


async def test_what_is_kept_of_a_conversation_does_not_grow_with_its_turns():
    s = stack()
    history = [user("x" * 1_000 + str(n)) for n in range(200)]
    body = {**FIRST, "input": history}
    for _ in range(15):
        body = after(await s.turn(body), body)
    assert [Mode.WS_FULL] + 14 * [Mode.WS_INCREMENTAL] == [row.mode for row in s.facts]
    assert s.driver.sessions._bytes < 1.5 * s.last.bytes_total


async def test_a_long_history_is_not_read_again_to_be_continued(monkeypatch):
    parse, counts = items.parse, []
    for length in (20, 500):
        s = stack()
        body = {**FIRST, "input": [user(f"{n}") for n in range(length)]}
        events = await s.turn(body)
        body = after(events, body)
        body["input"][-2] = {k: v for k, v in body["input"][-2].items() if k != "status"}
        read = []
        monkeypatch.setattr(items, "parse", lambda raw, read=read: read.append(raw) or parse(raw))
        await s.turn(body)
        monkeypatch.setattr(items, "parse", parse)
        assert CONTINUED == outcome(s)
        counts.append(len(read))
    assert counts[0] == counts[1] > 0


async def test_a_socket_of_many_responses_keeps_a_bounded_number_of_them():
    s = Stack(make_core(), bounds=Bounds(chains_per_session=2, anchors_per_session=4))
    for n in range(200):
        await s.turn({**FIRST, "input": [user(str(n))]}, transport="ws", socket="w")
    scope = s.driver.sessions.scope(("tenant", "default", "s"))
    assert len(scope.anchors) <= 4
    assert len(chains(s)) <= 2
    await settled()
    assert sum(not connection.closed for connection in s.sockets.opened) <= 2


async def test_a_session_in_use_outlives_many_that_come_and_go():
    s = Stack(make_core(), bounds=Bounds(sessions=4))
    body = await warm(s, session="kept")
    for n in range(100):
        await s.turn(FIRST, session=f"passing {n}")
        if n % 2 == 0:
            s.clock.advance(10.0)
            body = after(await s.turn(body, session="kept"), body)
            assert CONTINUED == outcome(s)
    assert len(list(s.driver.sessions.scopes())) <= 4


# --- compaction -----------------------------------------------------------------------------------

TRIGGER = {"type": "compaction_trigger"}


async def test_after_a_compaction_the_same_short_history_goes_up_on_every_transport():
    sent, tokens = [], []
    for wire in ("the same socket", "another socket", "http"):
        s = stack()
        long = {**FIRST, "input": [user("word " * 2_000)]}
        body = after(await s.turn(long, transport="ws", socket="w"), long)
        body["input"][-1] = TRIGGER
        events = await s.turn(body, transport="ws", socket="w")
        [z] = events[-1]["response"]["output"]
        before = s.last.usage.input_tokens
        short = {**FIRST, "input": [user("short"), z]}
        if wire == "http":
            await s.turn(short, transport="sse")
        else:
            await s.turn(short, transport="ws", socket="w" if "same" in wire else "v")
        assert (Mode.WS_FULL, Reason.EPOCH_RESET) == outcome(s)
        assert s.last.usage.input_tokens < before / 4
        sent.append(s.core.log[-1].body["input"] == short["input"])
        tokens.append(s.last.usage.input_tokens)
    assert [True, True, True] == sent
    assert 1 == len(set(tokens))


async def test_a_shorter_history_takes_the_place_of_the_longer_one():
    s = stack()
    body = await warm(s)
    body = after(await s.turn(body), body)
    shorter = {**FIRST, "input": [*body["input"][2:4], user("and now")]}
    events = await s.turn(shorter)
    assert Mode.WS_FULL == s.last.mode
    assert s.last.reason in (Reason.PREFIX_MISMATCH, Reason.NO_BASELINE)
    assert shorter["input"] == s.core.log[-1].body["input"]
    await s.turn(after(events, shorter))
    assert CONTINUED == outcome(s)
    assert 5 == len(s.core.held(s.last.response_id).items) - 1


async def test_a_trigger_is_part_of_no_baseline():
    s = stack()
    body = await warm(s)
    compacted = await s.turn({**body, "input": [*body["input"], TRIGGER]})
    assert Kind.COMPACTION is s.last.kind
    window = [user("short"), *compacted[-1]["response"]["output"]]
    body = {**FIRST, "input": [*window, user("go on")]}
    events = await s.turn(body)
    assert (Mode.WS_FULL, Reason.EPOCH_RESET) == outcome(s)
    await s.turn(after(events, body))
    assert CONTINUED == outcome(s)
    held = [json.loads(item.text) for item in s.core.held(s.last.response_id).items]
    assert TRIGGER not in held


async def test_a_compaction_inside_an_answer_breaks_nothing():
    z = {"type": "compaction", "encrypted_content": "Z"}
    s = Stack(make_core(replies=["answer", [z, message("p")], "next"]))
    body = await warm(s)
    body = after(await s.turn(body), body)
    assert ("compaction", Kind.GENERATION) == (body["input"][-3]["type"], s.last.kind)
    await s.turn(body)
    assert CONTINUED == outcome(s)


async def test_a_history_that_the_client_compacted_itself_is_told_from_its_content():
    s = stack()
    body = await warm(s)
    body = after(await s.turn(body), body)
    compacted = {**FIRST, "input": [user("a summary"), user("go on")]}
    events = await s.turn(compacted)
    assert (Mode.WS_FULL, Reason.NO_BASELINE) == outcome(s)
    await s.turn(after(events, compacted))
    assert CONTINUED == outcome(s)


async def test_resets_by_count_skip_turns_that_failed_and_send_the_history_of_now():
    s = stack(Policy(epoch_turns=3))
    body = await warm(s)
    body = after(await s.turn(body), body)
    s.core.faults.on_request(faults.ErrorFrame("server_error"))
    await s.turn(body)  # no turn of the epoch
    body = after(await s.turn(body), body)
    assert Reason.CONNECTION_LOST == s.last.reason
    edited = {**body, "input": [user("one, in short"), *body["input"][1:]]}
    await s.turn(edited)
    assert (Reason.EPOCH_RESET, "turn_count") == (s.last.reason, s.last.epoch_reset_reason)
    assert edited["input"] == s.core.log[-1].body["input"]


@pytest.mark.parametrize("together", [1, 2])
async def test_calls_for_summaries_leave_the_conversation_its_chain(together):
    s = stack()
    body = await warm(s)
    body = after(await s.turn(body), body)
    chain = s.last.chain
    asked = {**FIRST, "instructions": "summarize", "input": [*body["input"], user("all of it")]}
    summaries = [s.turn(asked) for _ in range(together)]
    events = await asyncio.gather(*summaries)
    assert together == len([e for e in events if e[-1]["type"] == "response.completed"])
    aside = s.facts[-together:]
    assert chain not in {row.chain for row in aside}
    assert together == len({row.connection for row in aside})
    await s.turn(body)
    assert (*CONTINUED, chain) == (*outcome(s), s.last.chain)
    assert 2 + together + 1 == len(s.facts)
