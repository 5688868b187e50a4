"""Faults from the field: what is continued, and what is not (docs/field-reports.md)."""

from __future__ import annotations

import asyncio
import copy
import json

import pytest

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from app.demo.provider.replies import Reply, function_call, message, reasoning
from engine.model import Mode, Policy, Reason
from tests.support.first_turns import FIRST, after, stack, warm
from tests.support.loopback import Stack
from tests.support.provider import make_core, output_of, user

RAW = {
    "type": "message",
    "id": "msg_1",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "x", "annotations": [], "logprobs": []}],
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [], "encrypted_content": "E"}  # fmt: skip


def answering(*replies) -> Stack:
    """A provider that sends these items exactly as they stand, then texts."""
    made = [Reply(tuple(reply), verbatim=True) for reply in replies]
    return Stack(make_core(replies=[*made, *(f"text {n}" for n in range(20))]))


def outcome(s: Stack) -> tuple:
    return s.last.mode, s.last.reason


CONTINUED = (Mode.WS_INCREMENTAL, Reason.OK)


def replay(*items) -> dict:
    return {**FIRST, "input": [*FIRST["input"], *items]}


def dropped(item: dict, *names: str) -> dict:
    return {name: value for name, value in item.items() if name not in names}


ECHO = {"role": "assistant", "type": "message", "content": [{"text": "x", "type": "output_text"}]}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "p"}]}


@pytest.mark.parametrize(
    ("sent", "echoed"),
    [
        pytest.param([RAW], [ECHO], id="regenerated keys, other key order"),
        pytest.param([THOUGHT, SAID], [dropped(THOUGHT, "id", "content"), SAID], id="content []"),
        pytest.param([THOUGHT, SAID], [{**THOUGHT, "content": None}, SAID], id="content null"),
        pytest.param([{**SAID, "metadata": {"k": "v"}}], [SAID], id="metadata sent"),
        pytest.param([SAID], [{**SAID, "metadata": {"k": "v"}}], id="metadata echoed"),
        pytest.param(
            [{"type": "future_item", "id": "f_1", "power": 7}, SAID],
            [{"type": "future_item", "id": "f_1", "power": 7}, SAID],
            id="an unknown kind of item",
        ),
    ],
)
async def test_an_answer_that_comes_back_in_the_clients_spelling_is_continued(sent, echoed):
    s = answering(sent)
    events = await s.turn(FIRST)
    assert sent == events[-1]["response"]["output"]
    await s.turn(replay(*echoed, user("two")))
    assert CONTINUED == outcome(s)
    assert [user("two")] == s.core.log[-1].body["input"]


@pytest.mark.parametrize(
    ("sent", "echoed", "at", "kind"),
    [
        pytest.param(
            [RAW, SAID],
            [{**ECHO, "content": [{"text": "x ", "type": "output_text"}]}, SAID],
            1,
            "message:assistant",
            id="a space more",
        ),
        pytest.param(
            [THOUGHT, SAID], [{**THOUGHT, "encrypted_content": "E2"}, SAID], 1, "reasoning",
            id="another ciphertext",
        ),
        pytest.param(
            [{"type": "future_item", "id": "f_1", "power": 7}, SAID],
            [{"type": "future_item", "id": "f_1", "power": 8}, SAID],
            1,
            "future_item",
            id="another value of an unknown kind",
        ),
    ],
)  # fmt: skip
async def test_its_twin_is_sent_in_full_and_its_place_is_told(sent, echoed, at, kind):
    s = answering(sent)
    await s.turn(FIRST)
    await s.turn(replay(*echoed, user("two")))
    assert (Mode.WS_FULL, Reason.PREFIX_MISMATCH) == outcome(s)
    assert (at, kind) == (s.last.evidence.index, s.last.evidence.kind_now)


async def test_metadata_of_the_users_own_message_may_come_and_go():
    s = stack()
    with_it = {**FIRST, "input": [{**user("one"), "metadata": {"k": "v"}}]}
    events = await s.turn(with_it)
    await s.turn(replay(*events[-1]["response"]["output"], user("two")))
    assert CONTINUED == outcome(s)


CALL = function_call("sh", "{}", "c1", id="fc_1", status="completed")


async def test_only_what_follows_the_answer_is_sent_and_never_the_answer_itself():
    s = answering([THOUGHT, CALL])
    await s.turn(FIRST)
    await s.turn(replay(THOUGHT, CALL, output_of("c1")))
    assert CONTINUED == outcome(s)
    assert [output_of("c1")] == s.core.log[-1].body["input"]


@pytest.mark.parametrize("transport", ["ws", "sse"])
async def test_a_delta_that_the_client_anchors_itself_gets_no_call_added(transport):
    s = answering([CALL])
    await s.turn(FIRST, transport=transport, socket="w")
    first = s.last.response_id
    named = {**FIRST, "previous_response_id": first, "input": [output_of("c1")]}
    await s.turn(named, transport=transport, socket="w")
    sent = s.core.log[-1]
    assert (first, [output_of("c1")]) == (sent.previous_response_id, sent.body["input"])
    assert 2 == len(s.core.log)


async def test_a_call_is_answered_in_its_own_conversation_and_not_in_the_latest():
    s = answering([function_call("f", "{}", "cx")])
    x = after(await s.turn(FIRST), FIRST)
    of_x = s.last.response_id
    x["input"][-1] = output_of("cx")
    await s.turn({**FIRST, "input": [user("another topic")]})
    of_y = s.last.response_id
    await s.turn(x)
    assert CONTINUED == outcome(s)
    assert of_x == s.core.log[-1].previous_response_id != of_y


@pytest.mark.parametrize("session", ["s", None])
async def test_siblings_that_begin_alike_keep_to_their_own_chains(session):
    s = stack()
    first = [await s.turn(FIRST, session=session) for _ in range(2)]
    bodies = [after(events, FIRST) for events in first]
    owners = [events[-1]["response"]["id"] for events in first]
    for _ in range(2):
        for n in (1, 0):
            events = await s.turn(bodies[n], session=session)
            assert CONTINUED == outcome(s)
            assert owners[n] == s.core.log[-1].previous_response_id
            bodies[n], owners[n] = after(events, bodies[n]), events[-1]["response"]["id"]


async def test_an_id_is_never_sent_on_another_connection_than_its_own():
    s = stack()
    body = await warm(s)
    known = s.last.response_id
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=1))
    busy = await s.answer(body)
    await s.turn({**body, "input": [*body["input"][:-1], user("aside")]})
    assert (Mode.WS_FULL, Reason.CHAIN_BUSY) == outcome(s)
    gate.open()
    async for _ in busy:
        pass
    own, other = (attempt.connection for attempt in s.core.log[1:])
    assert own == s.core.log[0].connection != other
    assert (known, None) == tuple(attempt.previous_response_id for attempt in s.core.log[1:])


async def test_a_connection_that_closes_under_the_frame_gets_a_successor_with_the_whole_history():
    s = stack()
    body = await warm(s)
    old = s.sockets.opened[0]
    send = old.send

    async def closing(frame: bytes) -> None:
        old.drop(1000)
        await send(frame)

    old.send = closing
    events = await s.turn(body)
    assert "response.completed" == events[-1]["type"]
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST) == outcome(s)
    sent = s.core.log[-1]
    assert (None, 3) == (sent.previous_response_id, len(sent.body["input"]))


TOOLS = [{"type": "function", "name": name, "parameters": {}} for name in ("a", "b")]


@pytest.mark.parametrize("policy", ["strict", "relaxed"])
async def test_tools_that_come_and_go_are_told_or_sent_as_they_are_now(policy):
    s = stack(Policy(tools=policy))
    body = {**FIRST, "tools": TOOLS[:1], "instructions": "be brief"}
    body = after(await s.turn(body), body)
    for tools in (TOOLS, [], TOOLS[::-1]):
        body = {**body, "tools": tools}
        events = await s.turn(body)
        sent = s.core.log[-1].body
        assert (tools, "be brief") == (sent["tools"], sent["instructions"])
        if policy == "relaxed":
            assert CONTINUED == outcome(s)
        else:
            assert (Mode.WS_FULL, Reason.NON_INPUT_FIELDS_CHANGED) == outcome(s)
            assert ("tools",) == s.last.changed_fields
        body = after(events, body)


@pytest.mark.parametrize("policy", ["strict", "relaxed"])
@pytest.mark.parametrize(
    ("name", "value"), [("tool_choice", "required"), ("model", "gpt-5.6-sol"), ("user", "u2")]
)
async def test_another_choice_of_tools_model_or_user_always_goes_in_full(policy, name, value):
    s = stack(Policy(tools=policy))
    body = {**FIRST, "tools": TOOLS, "tool_choice": "auto", "user": "u1"}
    body = after(await s.turn(body), body)
    await s.turn({**body, name: value})
    assert (Mode.WS_FULL, Reason.NON_INPUT_FIELDS_CHANGED) == outcome(s)
    assert (name,) == s.last.changed_fields


async def test_an_anchor_of_the_client_is_no_way_around_a_changed_user():
    s = stack()
    first = {**FIRST, "user": "u1"}
    await s.turn(first)
    named = {**FIRST, "user": "u2", "input": [user("go on")]}
    await s.turn({**named, "previous_response_id": s.last.response_id})
    assert (Mode.WS_FULL, Reason.NON_INPUT_FIELDS_CHANGED) == outcome(s)
    assert None is s.core.log[-1].previous_response_id


async def test_the_frame_of_a_continuation_lacks_no_field_of_the_full_one():
    s = stack()
    fields = {"instructions": "be brief", "prompt_cache_key": "k", "tools": TOOLS}
    body = {**FIRST, **fields}
    body = after(await s.turn(body), body)
    await s.turn(body)
    full, part = (copy.copy(attempt.body) for attempt in s.core.log)
    assert s.facts[0].response_id == part.pop("previous_response_id")
    assert full.pop("input") != part.pop("input")
    assert full == part


async def test_sixteen_agents_of_one_key_each_keep_a_chain_of_their_own():
    s = Stack(make_core(replies=[f"answer {n}" for n in range(32)]))
    bodies = [{**FIRST, "prompt_cache_key": "k", "input": [user(f"task {n}")]} for n in range(16)]
    first = await asyncio.gather(*(s.turn(body) for body in bodies))
    again = [after(events, body) for events, body in zip(first, bodies, strict=True)]
    await asyncio.gather(*(s.turn(body) for body in again))
    told = s.facts[16:]
    assert {CONTINUED} == {(facts.mode, facts.reason) for facts in told}
    assert 16 == len({facts.chain for facts in told})
    made = {events[-1]["response"]["id"]: n for n, events in enumerate(first)}
    for attempt in s.core.log[16:]:
        n = made.pop(attempt.previous_response_id)
        held = [json.loads(item.text) for item in s.core.held(attempt.response_id).items]
        assert user(f"task {n}") == held[0]


async def test_a_session_that_was_rejected_once_is_continued_for_ever_after():
    s = stack()
    body = await warm(s)
    s.core.faults.on_request(faults.previous_response_not_found())
    body = after(await s.turn(body), body)
    assert (Mode.WS_FULL, Reason.PREVIOUS_RESPONSE_NOT_FOUND) == outcome(s)
    for _ in range(2):
        former = s.last.response_id
        body = after(await s.turn(body), body)
        assert CONTINUED == outcome(s)
        assert former == s.core.log[-1].previous_response_id


async def test_a_miss_at_the_provider_is_no_fault_of_the_prefix():
    s = stack()
    body = await warm(s)
    usage = {"input_tokens": 74371, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5, "total_tokens": 74376}  # fmt: skip
    s.core.faults.on_request(faults.Usage(usage))
    events = await s.turn(body)
    assert CONTINUED == outcome(s)
    assert (0, None) == (s.last.usage.cached_tokens, s.last.evidence)
    await s.turn(after(events, body))
    assert CONTINUED == outcome(s)


# --- items, as they go up and come back -----------------------------------------------------------


@pytest.mark.parametrize("wire", ["ws", "http"])
async def test_items_go_up_byte_for_byte_as_the_client_wrote_them(wire):
    s = stack()
    if wire == "http":
        s.core.faults.on_upgrade(faults.RefuseUpgrade(426), times=None)
    given = [
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "E", "summary": []},
        {**SAID, "id": "msg_1"},
        {"type": "reasoning", "encrypted_content": "F", "summary": [], "id": ""},
        function_call("f", '{"path":"p","edits":[{"new":"n","old":"ö"}]}', "c1"),
        output_of("c1", "北é"),
        {"type": "message", "role": "assistant", "content": []},
    ]
    for ascii_ in (True, False):
        text = json.dumps({**FIRST, "input": [*given, user("x")]}, ensure_ascii=ascii_)
        await s.turn(text.encode(), session=f"{ascii_}")
        for item in given:
            assert json.dumps(item, ensure_ascii=ascii_) in s.core.log[-1].frame
        assert [*given, user("x")] == s.core.log[-1].body["input"]


@pytest.mark.parametrize("kind", ["openai", "codex"])
@pytest.mark.parametrize("shuffled", [False, True])
async def test_items_are_known_from_their_own_events_in_their_own_order(kind, shuffled):
    reply = [reasoning("gA"), message("p"), function_call("f", "{}", "c1")]
    s = Stack(make_core(kind, replies=[reply, "done"]))
    first = {**FIRST, "instructions": "be brief"}
    if shuffled:
        s.core.faults.on_request(faults.ShuffleDone())
    events = await s.turn(first)
    done = [event for event in events if event["type"] == "response.output_item.done"]
    output = [one["item"] for one in sorted(done, key=lambda one: one["output_index"])]
    assert 3 == len(output)
    await s.turn({**first, "input": [*first["input"], *output, output_of("c1")]})
    assert CONTINUED == outcome(s)
    assert [output_of("c1")] == s.core.log[-1].body["input"]


CUSTOM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "exec", "input": "ls"}
LISTED = {"type": "function_call", "id": "ctc_1", "call_id": "c1", "name": "exec"}
STALE = function_call("f", '{"a":"rev-"}', "c1", id="fc_1", status="completed")


@pytest.mark.parametrize(
    ("done", "listed", "reason"),
    [
        pytest.param(CUSTOM, LISTED, Reason.OUTPUT_CONFLICT, id="a call without its arguments"),
        pytest.param(  # what comes back was in no item of the stream
            STALE, {**STALE, "arguments": '{"a":"rev-4"}'}, Reason.NO_BASELINE, id="cut short"
        ),
    ],
)
async def test_where_an_item_and_the_last_list_contradict_nothing_hangs_on_either(
    done, listed, reason
):
    s = answering([done])
    s.core.faults.on_request(faults.TerminalOutput((listed,)))
    events = await s.turn(FIRST)
    relayed = [event for event in events if event["type"] == "response.output_item.done"]
    assert ([done], [listed]) == ([e["item"] for e in relayed], events[-1]["response"]["output"])
    kind = "custom_tool_call_output" if done is CUSTOM else "function_call_output"
    echoed = done if done is CUSTOM else listed
    answer = {**output_of("c1"), "type": kind}
    await s.turn(replay(echoed, answer))
    assert (Mode.WS_FULL, reason) == outcome(s)
    assert replay(echoed, answer)["input"] == s.core.log[-1].body["input"]
