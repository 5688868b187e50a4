"""Beyond the byte budget only digests are kept of a transcript: what turns then are, and are not."""

from __future__ import annotations

import json

import pytest

from app.demo.provider import faults
from app.demo.provider.oracle import same_transcript
from engine.keeper import Keeper
from engine.model import DivergenceClass, Mode, Policy, Reason, Status
from engine.sessions import Bounds
from tests.support.first_turns import after
from tests.support.loopback import Stack
from tests.support.provider import MODEL, make_core, user

LONG = "x" * 100_000
FIRST = {"model": MODEL, "store": False, "stream": True, "input": [user(LONG)]}
BUDGET = 50_000
"""Bytes: less than a transcript, more than the digests of several."""


def stack(policy: Policy | None = None, budget: int = BUDGET) -> Stack:
    replies = [f"answer {n}" for n in range(40)]
    return Stack(make_core(replies=replies), policy, bounds=Bounds(bytes=budget))


def anchors(s: Stack, session: str | None = "s") -> list:
    return list(s.driver.sessions.scope(("tenant", "default", session)).anchors.values())


def are_digests(s: Stack, session: str | None = "s") -> bool:
    last = anchors(s, session)[-1]
    return last.items.spelling is None and not last.items[0].is_whole


def told(s: Stack) -> tuple:
    return (s.last.mode, s.last.reason, s.last.items_sent)


def holds(s: Stack, body: dict, events: list[dict]) -> bool:
    held = s.core.held(s.last.response_id).items
    return same_transcript(held, [*body["input"], *events[-1]["response"]["output"]])


def named(s: Stack, text: str = "go on", **more) -> dict:
    return {**FIRST, "previous_response_id": s.last.response_id, "input": [user(text)], **more}


# --- clients that replay everything -----------------------------------------------------------------


async def test_a_client_that_repeats_its_bytes_is_continued_turn_by_turn():
    s = stack()
    body = after(await s.turn(FIRST), FIRST)
    for _ in range(4):
        assert are_digests(s)
        before = s.last.baseline_digest
        events = await s.turn(body)
        assert (Mode.WS_INCREMENTAL, Reason.OK, 1) == told(s)
        assert s.last.prefix_digest == before
        assert holds(s, body, events)
        body = after(events, body)
    assert 1 == len(s.sockets.opened)


async def test_a_client_that_spells_old_items_anew_goes_in_full_and_is_told_where():
    s = stack()
    body = after(await s.turn(FIRST), FIRST)
    events = await s.turn(body)
    body = after(events, body)
    respelled = dict(reversed(body["input"][1].items()))
    body["input"][1] = respelled
    events = await s.turn(body)
    assert (Mode.WS_FULL, Reason.PREFIX_MISMATCH, 5) == told(s)
    evidence = s.last.evidence
    assert (1, "message:assistant", "message:assistant") == (
        evidence.index,
        evidence.kind_before,
        evidence.kind_now,
    )
    assert (DivergenceClass.EDITED, None, None) == (evidence.klass, evidence.path, evidence.nature)
    assert (4, 5) == (evidence.length_before, evidence.length_now)
    assert evidence.digest_before != evidence.digest_now
    assert len(json.dumps(respelled)) == evidence.value_length_now
    assert holds(s, body, events)
    await s.turn(after(events, body))
    assert (Mode.WS_INCREMENTAL, Reason.OK, 1) == told(s)


@pytest.mark.parametrize(
    ("change", "klass", "index"),
    [
        (lambda items: items.pop(0), DivergenceClass.TRUNCATED_HEAD, 0),
        (lambda items: items.insert(0, user("new")), DivergenceClass.INSERTED, 0),
        (lambda items: items.insert(0, items.pop(2)), DivergenceClass.REORDERED, 0),
        (lambda items: items.__delitem__(slice(2, None)), DivergenceClass.TRUNCATED_TAIL, 2),
        (lambda items: items.__setitem__(2, user("other")), DivergenceClass.EDITED, 2),
    ],
)
async def test_what_happened_to_a_transcript_is_seen_in_its_digests(change, klass, index):
    s = stack()
    body = after(await s.turn(FIRST), FIRST)
    body = after(await s.turn(body), body)
    assert are_digests(s)
    change(body["input"])
    await s.turn(body)
    assert Reason.PREFIX_MISMATCH == s.last.reason
    assert (klass, index) == (s.last.evidence.klass, s.last.evidence.index)


async def test_changed_fields_are_told_of_as_ever():
    s = stack()
    tool = {"type": "function", "name": "shell", "parameters": {}}
    first = {**FIRST, "tools": [tool], "instructions": "a"}
    body = after(await s.turn(first), first)
    await s.turn({**body, "instructions": "b"})
    assert (Mode.WS_FULL, Reason.NON_INPUT_FIELDS_CHANGED, 3) == told(s)
    assert ("instructions",) == s.last.changed_fields


# --- clients that name an anchor --------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["sse", "ws"])
async def test_a_delta_is_continued_on_digests_while_its_chain_lives(transport):
    s = stack()
    socket = {"transport": transport, "socket": "k" if transport == "ws" else None}
    events = await s.turn(FIRST, **socket)
    body = after(events, FIRST, "go on")
    for turn in range(1, 4):
        assert are_digests(s)
        events = await s.turn(named(s), **socket)
        assert (Mode.WS_INCREMENTAL, Reason.OK, 1) == told(s)
        assert (2 * turn + 1, 2 * turn) == (s.last.items_total, s.last.baseline_items)
        assert holds(s, body, events)
        body = after(events, body, "go on")
    assert s.last.bytes_total > len(LONG)


async def test_the_total_of_an_expanded_request_is_what_the_whole_would_have_been():
    spare, rich = stack(), stack(budget=1 << 30)
    for s in (spare, rich):
        await s.turn(FIRST)
        await s.turn(named(s))
    assert are_digests(spare)
    assert not are_digests(rich)
    assert rich.last.bytes_total == spare.last.bytes_total


async def test_without_its_chain_a_delta_on_digests_is_not_found():
    s = stack()
    events = await s.turn(FIRST)
    body = named(s)
    s.sockets.opened[0].drop()
    sent = len(s.core.log)
    answer = await s.answer(body)
    assert (400, Status.REFUSED, sent) == (answer.status, s.last.status, len(s.core.log))
    assert b"previous_response_not_found" in answer.body
    assert body["previous_response_id"].encode() in answer.body
    # What the provider would have said: the client sends all of it, and is answered.
    await s.turn(after(events, FIRST, "go on"))
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST, 3) == told(s)


async def test_a_delta_that_cannot_be_continued_on_digests_is_not_found():
    s = stack()
    await s.turn(FIRST)
    sent = len(s.core.log)
    answer = await s.answer(named(s, instructions="other"))
    assert (400, sent) == (answer.status, len(s.core.log))
    assert b"previous_response_not_found" in answer.body
    await s.turn(named(s, previous_response_id=s.facts[0].response_id))
    assert (Mode.WS_INCREMENTAL, Reason.OK, 1) == told(s)


async def test_a_delta_on_digests_that_the_upstream_rejects_is_not_found():
    s = stack()
    await s.turn(FIRST)
    body = named(s)
    s.core.faults.on_request(faults.previous_response_not_found())
    answer = await s.answer(body)
    assert (400, Status.REFUSED) == (answer.status, s.last.status)
    assert b"previous_response_not_found" in answer.body
    assert 1 == len(s.sockets.opened)
    assert {} == s.driver.sessions.scope(("tenant", "default", "s")).chains


async def test_a_fault_of_the_engine_sends_no_delta_without_what_it_hangs_on(monkeypatch):
    s = stack()
    await s.turn(FIRST)
    body, sent = named(s), len(s.core.log)

    def fault(*_):
        raise RuntimeError

    monkeypatch.setattr(Keeper, "settle", fault)
    answer = await s.answer(body)
    assert (400, Status.REFUSED, sent) == (answer.status, s.last.status, len(s.core.log))
    assert b"previous_response_not_found" in answer.body


async def test_a_turn_that_was_under_way_is_told_in_full_though_its_anchor_was_condensed():
    """Another session's turn ends, and takes the room, between the first event and the last."""
    s = stack(budget=250_000)
    await s.turn(FIRST)
    s.sockets.opened[0].drop()
    answer = await s.answer(named(s))
    await s.turn({**FIRST, "input": [user(LONG + "y" * 100_000)]}, session="other")
    assert not anchors(s)[0].items[0].is_whole
    assert [e async for e in answer]
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST, 3) == told(s)
    assert s.last.bytes_total > len(LONG)


async def test_one_client_does_not_lose_what_another_one_takes_the_room_of():
    s = stack(budget=250_000)
    one = after(await s.turn(FIRST, session="one"), FIRST)
    two = after(await s.turn(FIRST, session="two"), FIRST)
    for _ in range(3):
        one = after(await s.turn(one, session="one"), one)
        assert (Mode.WS_INCREMENTAL, Reason.OK, 1) == told(s)
        two = after(await s.turn(two, session="two"), two)
        assert (Mode.WS_INCREMENTAL, Reason.OK, 1) == told(s)
    three = after(await s.turn(FIRST, session="three"), FIRST)
    assert (True, False) == (are_digests(s, "one"), are_digests(s, "three"))
    for session, body in (("one", one), ("two", two), ("three", three)):
        await s.turn(body, session=session)
        assert (Mode.WS_INCREMENTAL, Reason.OK, 1) == told(s)


async def test_a_client_without_a_name_finds_its_session_by_digests():
    s = stack()
    body = after(await s.turn(FIRST, session=None), FIRST)
    body = after(await s.turn(body, session=None), body)
    session = s.last.session
    body["input"][2] = user("edited")
    await s.turn(body, session=None)
    assert (session, Reason.PREFIX_MISMATCH) == (s.last.session, s.last.reason)


# --- other continuations ----------------------------------------------------------------------------


async def test_responses_that_the_upstream_keeps_are_continued_by_digests():
    s = stack(Policy(continuation="store"))
    first = {"model": MODEL, "stream": True, "input": [user(LONG)]}
    body = after(await s.turn(first), first)
    for _ in range(3):
        assert are_digests(s)
        events = await s.turn(body)
        assert (Mode.HTTP_INCREMENTAL, Reason.OK, 1) == told(s)
        assert holds(s, body, events)
        fork, body = body, after(events, body)
    fork["input"][-1] = user("another way")
    events = await s.turn(fork)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, 1) == told(s)
    assert holds(s, fork, events)


async def test_a_kept_response_is_named_though_only_its_digests_are_kept():
    s = stack(Policy(continuation="store", force_store=True))
    body = after(await s.turn(FIRST), FIRST, "go on")
    first = named(s)
    for _ in range(2):  # the second time as a fork, of an anchor that has given way
        events = await s.turn(first)
        assert (Mode.HTTP_INCREMENTAL, Reason.OK, 1) == told(s)
        assert holds(s, body, events)
    await s.turn(named(s))
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, 1) == told(s)
    answer = await s.answer(named(s, instructions="other"))
    assert (400, True) == (answer.status, b"previous_response_not_found" in answer.body)


async def test_observed_turns_are_compared_by_digests_and_never_refused():
    s = stack(Policy(continuation="observe"))
    socket = {"transport": "ws", "socket": "k"}
    create = {"type": "response.create", **FIRST}
    body = after(await s.turn(create, **socket), create)
    assert are_digests(s)
    await s.turn(body, **socket)
    assert (Mode.WS_INCREMENTAL, Reason.OK) == (s.last.shadow_mode, s.last.shadow_reason)
    assert are_digests(s)
    delta = {**create, "previous_response_id": s.last.response_id, "input": [user("go on")]}
    await s.turn({**delta, "instructions": "other"}, **socket)
    assert (Status.COMPLETED, Reason.CLIENT_ANCHORED) == (s.last.status, s.last.shadow_reason)
    assert (Mode.WS_INCREMENTAL, None) == (s.last.mode, s.last.error_code)


async def test_what_digests_do_not_make_room_for_is_forgotten():
    s = stack(budget=1)
    body = after(await s.turn(FIRST), FIRST)
    await s.turn(body)
    assert (Mode.WS_FULL, Reason.NO_BASELINE, 3) == told(s)
