from __future__ import annotations

import gc
import json
import weakref

from app.demo.provider import faults
from app.demo.provider.replies import message
from engine.keeper import Keeper
from engine.model import ColdCause, Kind, Mode, Policy, Reason
from engine.request import split
from engine.sessions import Bounds
from engine.turn import Call, Turn, Upstream
from tests.support.clock import ManualClock
from tests.support.loopback import Stack
from tests.support.provider import MODEL, make_core, user

BODY = {"model": MODEL, "store": False, "stream": True, "input": [user("one")]}


def keeper() -> Keeper:
    return Keeper(
        clock=ManualClock(),
        new_id=lambda prefix: prefix + "1",
        key=b"k",
        close=lambda connection: None,
        bounds=Bounds(),
    )


def turn_of(k: Keeper, body: dict, session: str | None = "s", headers=()) -> Turn:
    raw = json.dumps(body).encode()
    upstream = Upstream("default", "https://provider/v1", Policy())
    call = Call(
        turn_id="t",
        received_at=1.0,
        received_mono=1.0,
        body=raw,
        upstream=upstream,
        tenant="a",
        session=session,
        headers=headers,
    )
    scope = k.sessions.scope(("a", "default", session))
    return Turn(call=call, request=split(raw), scope=scope, session=session or "")


class Credential(str):
    """One that can be looked for."""

    __slots__ = ("__weakref__",)


def test_a_credential_is_gone_with_the_turn_that_brought_it():
    k = keeper()
    given = Credential("Bearer sk-secret")
    turn = turn_of(k, BODY, headers=(("authorization", given),))
    k.settle(turn)
    trace = weakref.ref(given)
    del given, turn
    gc.collect()
    assert trace() is None


def test_a_first_turn_has_no_baseline_and_is_the_first_of_its_epoch():
    k = keeper()
    turn = turn_of(k, BODY)
    k.settle(turn)
    assert (Reason.NO_BASELINE, (1, 1), "s") == (turn.reason, turn.epoch, turn.session)


def test_an_unnamed_turn_that_echoes_nothing_gets_a_name_of_its_own():
    k = keeper()
    turn = turn_of(k, BODY, session=None)
    k.settle(turn)
    assert "anon-1" == turn.session


def test_an_id_that_nobody_left_is_not_expanded():
    k = keeper()
    turn = turn_of(k, {**BODY, "previous_response_id": "resp_x"})
    assert not k.expand(turn, "resp_x")
    assert 1 == len(turn.understood.items)


def test_a_turn_that_left_nothing_on_a_chain_gives_nothing_back():
    k = keeper()
    turn = turn_of(k, BODY)
    k.give_back(turn)
    k.abandon(turn, ColdCause.CLOSED)
    assert turn.chain is None


async def test_a_response_without_an_id_leaves_a_cold_anchor_that_says_so():
    s = Stack(make_core(replies=["a", "b"]))
    s.core.faults.on_request(faults.NoResponseId())
    events = await s.turn(BODY)
    output = events[-1]["response"]["output"]
    await s.turn({**BODY, "input": [*BODY["input"], *output, user("two")]})
    assert (Mode.WS_FULL, Reason.MISSING_RESPONSE_ID) == (s.last.mode, s.last.reason)


async def test_what_is_wrong_with_an_answer_is_not_said_of_the_one_before_it():
    s = Stack(make_core(replies=["a", "b", "c"]))
    stored = {**BODY, "store": True}
    over_socket = {"transport": "ws", "socket": "k"}
    await s.turn(stored, **over_socket)
    named = s.last.response_id
    s.core.faults.on_request(faults.NoResponseId())
    await s.turn({**stored, "previous_response_id": named, "input": [user("x")]}, **over_socket)
    assert Reason.CLIENT_ANCHORED == s.last.reason
    anchors = s.driver.sessions.scope(("tenant", "default", "s")).anchors.values()
    assert ["superseded", "missing_response_id"] == [anchor.cold for anchor in anchors]


async def test_a_terminal_list_that_contradicts_the_done_items_makes_the_anchor_cold():
    s = Stack(make_core(replies=["a", "b"]))
    s.core.faults.on_request(faults.ConflictingOutput())
    await s.turn(BODY)
    held = [json.loads(item.text) for item in s.core.held(s.last.response_id).items]
    await s.turn({**BODY, "input": [*held, user("two")]})
    assert (Mode.WS_FULL, Reason.OUTPUT_CONFLICT) == (s.last.mode, s.last.reason)
    assert Kind.GENERATION == s.last.kind


async def test_done_items_that_never_came_make_the_anchor_cold():
    s = Stack(make_core(replies=[[message("a"), message("b")], "c"]))
    s.core.faults.on_request(faults.DropDone((1,)))
    await s.turn(BODY)
    held = [json.loads(item.text) for item in s.core.held(s.last.response_id).items]
    await s.turn({**BODY, "input": [*held, user("two")]})
    assert Mode.WS_FULL == s.last.mode
    assert Reason.MISSING_OUTPUT_ITEMS == s.last.reason


async def test_an_id_of_another_upstream_is_passed_on_as_it_is():
    s = Stack(make_core(replies=["a", "b"]))
    await s.turn(BODY)
    named = {**BODY, "previous_response_id": s.last.response_id}
    await s.answer(named, upstream=Upstream("other", "http://provider/v1"))
    assert Reason.CLIENT_ANCHORED is s.last.reason
    assert s.facts[0].response_id == s.core.log[-1].previous_response_id


async def test_what_hangs_on_stored_responses_over_http_stays_one_unnamed_session():
    stack = Stack(make_core("openai"))
    ask = {"model": MODEL, "stream": True, "input": [user("one")]}
    first = (await stack.turn(ask, session=None))[-1]["response"]["id"]
    for named in (first, None, None):
        last = stack.facts[-1].response_id if named is None else named
        await stack.turn({**ask, "previous_response_id": last}, session=None)
    assert {stack.facts[0].session} == {turn.session for turn in stack.facts}
    assert [Reason.CLIENT_ANCHORED] * 3 == [turn.reason for turn in stack.facts[1:]]
