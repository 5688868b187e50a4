"""``continuation = "observe"``: the wire is the client's own, the row says what could have been."""

from __future__ import annotations

import asyncio
import copy
import json
import random

import pytest

from app.demo.provider import faults
from engine.errors import ConnectionLost
from engine.model import Kind, Mode, Policy, Reason, Status
from tests.support.first_turns import FIRST, after, stack
from tests.support.loopback import Stack
from tests.support.provider import MODEL, make_core, user

OBSERVE = Policy(continuation="observe")
SOCKET = {"transport": "ws", "socket": "c"}
CREATE = {"type": "response.create", "model": MODEL, "store": False, "input": [user("one")]}


def wire(s: Stack) -> tuple:
    return (s.last.mode, s.last.reason, s.last.eligible)


def shadow(s: Stack) -> tuple:
    return (s.last.shadow_mode, s.last.shadow_reason)


def chains(s: Stack) -> list:
    scope = s.driver.sessions.scope(("tenant", "default", "s"))
    return list(scope.chains.values())


def frames(s: Stack) -> list[str]:
    return [attempt.frame for attempt in s.core.log]


@pytest.mark.parametrize("transport", ["sse", "http"])
async def test_a_post_goes_as_it_came_and_its_row_says_that_it_could_have_been_continued(transport):
    s = stack(OBSERVE)
    first = {**FIRST, "stream": transport == "sse"}
    raw = json.dumps(first, indent=1)
    answered = await s.turn(raw.encode(), transport=transport)
    response = answered[-1]["response"] if transport == "sse" else answered[-1]
    assert (Mode.HTTP_FULL, Reason.CONTINUATION_OFF, False) == wire(s)
    assert (Mode.WS_FULL, Reason.NO_BASELINE) == shadow(s)
    second = {**first, "input": [*first["input"], *response["output"], user("more")]}
    await s.turn(json.dumps(second, indent=1).encode(), transport=transport)
    assert (Mode.HTTP_FULL, Reason.CONTINUATION_OFF, False) == wire(s)
    assert (Mode.WS_INCREMENTAL, Reason.OK) == shadow(s)
    assert [raw, json.dumps(second, indent=1)] == frames(s)
    assert ([], 3, 3, 2) == (
        s.sockets.opened,
        s.last.items_total,
        s.last.items_sent,
        s.last.baseline_items,
    )
    assert (None, None, s.facts[0].chain) == (
        s.last.connection,
        s.last.prefix_digest,
        s.last.chain,
    )


async def test_a_break_is_explained_as_it_would_be_where_turns_are_continued():
    s = stack(OBSERVE)
    body = after(await s.turn(FIRST), FIRST)
    await s.turn({**body, "input": [user("edited"), *body["input"][1:]]})
    assert (Mode.WS_FULL, Reason.PREFIX_MISMATCH) == shadow(s)
    assert 0 == s.last.evidence.index
    await s.turn({**body, "instructions": "other"})
    assert (Mode.WS_FULL, Reason.NON_INPUT_FIELDS_CHANGED) == shadow(s)
    assert ("instructions",) == s.last.changed_fields
    await s.turn(body)
    assert (Mode.WS_INCREMENTAL, Reason.OK) == shadow(s)


async def test_one_answer_is_continued_once_and_a_busy_chain_by_nobody():
    s = stack(OBSERVE)
    body = after(await s.turn(FIRST), FIRST)
    slow = await s.answer(body)
    fork = {**body, "input": [*body["input"][:-1], user("another way")]}
    await s.turn(fork)
    assert (Mode.WS_FULL, Reason.CHAIN_BUSY) == shadow(s)
    async for _ in slow:
        pass
    await s.turn({**body, "input": [*body["input"][:-1], user("a third")]})
    assert Mode.WS_FULL is s.last.shadow_mode


async def test_a_reset_and_the_age_of_a_connection_count_as_if():
    s = stack(OBSERVE)
    body = after(await s.turn(FIRST), FIRST)
    await s.turn(body, epoch_reset="summarize")
    assert (Mode.WS_FULL, Reason.EPOCH_RESET) == shadow(s)
    assert "summarize" == s.last.epoch_reset_reason
    s.clock.advance(OBSERVE.max_connection_age)
    await s.turn(body)
    assert Reason.EPOCH_RESET is s.last.shadow_reason
    assert "connection_age" == s.last.epoch_reset_reason


async def test_a_failed_turn_leaves_no_anchor_and_no_busy_chain():
    s = stack(OBSERVE)
    body = after(await s.turn(FIRST), FIRST)
    s.core.faults.on_request(faults.HttpError(500, "broken"))
    answer = await s.answer(body)
    assert (500, []) == (answer.status, chains(s))
    assert (Mode.WS_INCREMENTAL, Reason.OK) == shadow(s)
    await s.turn(body)
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST) == shadow(s)
    assert s.last.fallback_reason is None


async def test_chains_in_the_shadow_take_no_room_from_real_connections():
    s = stack(OBSERVE)
    for n in range(4):
        await s.turn({**FIRST, "input": [user(f"{n}")]})
    assert [""] * 4 == [chain.connection for chain in chains(s)]
    assert [] == s.driver.sessions.make_room()
    s.driver.sessions._bounds = type(s.driver.sessions._bounds)(connections=1)
    assert [] == s.driver.sessions.make_room()
    assert (0, 0) == s.driver.figures("default")


async def test_what_is_not_understood_or_not_covered_has_the_clients_own_wire_as_its_shadow():
    s = stack(Policy(continuation="observe", models=("o3",)))
    await s.turn(FIRST)
    assert (Mode.HTTP_FULL, Reason.CONTINUATION_OFF) == shadow(s)
    s = stack(OBSERVE)
    await s.turn({**FIRST, "generate": False})
    assert (Mode.HTTP_FULL, Reason.CONTINUATION_OFF) == shadow(s)
    for body in (b"no json", json.dumps({**FIRST, "background": True}).encode()):
        await s.answer(body)
        assert (Mode.HTTP_FULL, Reason.CONTINUATION_OFF) == shadow(s)
        assert body.decode() == frames(s)[-1]
    assert [] == chains(s)


@pytest.mark.parametrize("seed", range(8))
async def test_the_shadow_is_what_a_websocket_would_have_done(seed):
    source = random.Random(seed)
    real, observed = (Stack(make_core(), policy) for policy in (Policy(), OBSERVE))
    histories: list[tuple[list, list]] = [([], [])]
    for step in range(30):
        pair = source.choice(histories[-4:])
        if source.random() < 0.2 and len(histories) < 9:
            pair = copy.deepcopy(pair)
            histories.append(pair)
        change, cut = source.random(), source.randrange(1, 6)
        instructions = source.choice(["be brief"] * 5 + ["be long"])
        session = source.choice(["s", "s", "t"])
        for s, history in zip((real, observed), pair, strict=True):
            if change < 0.1:
                del history[cut:]
            elif change < 0.2 and history:
                history[0] = user(f"edited {step}")
            elif change < 0.25:
                s.clock.advance(OBSERVE.max_connection_age)
            elif change < 0.3:
                s.driver.reset_epoch("tenant", "default", session, "manual")
            history.append(user(f"step {step}"))
            body = {**FIRST, "input": history, "instructions": instructions}
            events = await s.turn(body, session=session)
            history.extend(events[-1]["response"]["output"])
        told, would = real.last, observed.last
        assert (told.mode, told.reason, told.epoch_reset_reason) == (
            *shadow(observed),
            would.epoch_reset_reason,
        )
        assert (told.epoch, told.epoch_turn, told.changed_fields) == (
            would.epoch,
            would.epoch_turn,
            would.changed_fields,
        )
        assert Mode.HTTP_FULL is would.mode
    assert {Reason.OK, Reason.PREFIX_MISMATCH, Reason.EPOCH_RESET} < {
        facts.shadow_reason for facts in observed.facts
    } or seed


# --- client sockets ---------------------------------------------------------------------------


async def test_the_frames_of_a_client_socket_go_as_they_came_on_a_connection_of_its_own():
    s = stack(OBSERVE)
    raw = json.dumps(CREATE, indent=1)
    events = await s.turn(raw.encode(), **SOCKET)
    assert (Mode.WS_FULL, Reason.CONTINUATION_OFF, False) == wire(s)
    assert (Mode.WS_FULL, Reason.NO_BASELINE) == shadow(s)
    whole = json.dumps(after(events, CREATE))
    await s.turn(whole.encode(), **SOCKET)
    assert (Mode.WS_FULL, Reason.CONTINUATION_OFF, False) == wire(s)
    assert (Mode.WS_INCREMENTAL, Reason.OK) == shadow(s)
    assert [raw, whole] == frames(s)
    assert 1 == len(s.sockets.opened)
    await s.turn(CREATE, transport="ws", socket="d")
    assert 2 == len(s.sockets.opened)
    one, again, other = (facts.connection for facts in s.facts)
    assert one == again != other
    assert {None, "c", "d", ""}.isdisjoint({one, other})


async def test_a_client_that_continues_by_itself_is_passed_on_and_its_history_known():
    s = stack(OBSERVE)
    await s.turn(CREATE, **SOCKET)
    delta = {**CREATE, "input": [user("x")], "previous_response_id": s.last.response_id}
    await s.turn(delta, **SOCKET)
    assert (Mode.WS_INCREMENTAL, Reason.CLIENT_ANCHORED, False) == wire(s)
    assert (Mode.WS_INCREMENTAL, Reason.OK) == shadow(s)
    assert json.dumps(delta) == frames(s)[-1]
    assert (3, 1, s.facts[0].response_id) == (
        s.last.items_total,
        s.last.items_sent,
        s.last.previous_response_id,
    )


async def test_a_stored_response_is_the_clients_to_continue():
    s = stack(OBSERVE)
    await s.turn({**CREATE, "store": True}, **SOCKET)
    await s.turn({**CREATE, "store": True, "previous_response_id": s.last.response_id}, **SOCKET)
    assert (Mode.WS_INCREMENTAL, Reason.CLIENT_ANCHORED) == shadow(s)
    assert 1 == len(chains(s))


async def test_what_the_client_continued_by_itself_is_no_other_turns_to_continue():
    s = stack(OBSERVE)
    stored = {**CREATE, "store": True}
    first = (await s.turn(stored, **SOCKET))[-1]["response"]
    second = {**stored, "previous_response_id": first["id"], "input": [user("two")]}
    await s.turn(second, **SOCKET)
    third = {**stored, "input": [*stored["input"], *first["output"], user("three")]}
    await s.turn(third, **SOCKET)
    assert (Mode.WS_FULL, Reason.PREFIX_MISMATCH) == shadow(s)


async def test_what_happens_to_posts_says_nothing_of_websockets():
    s = stack(Policy(continuation="observe", max_losses=2))
    for _ in range(2):
        s.core.faults.on_request(faults.abort(after=2))
        await s.turn(FIRST)
    await s.turn(CREATE, **SOCKET)
    assert Mode.WS_FULL is s.last.mode
    for fault in (faults.abort(after=2), None, faults.abort(after=2)):
        if fault is not None:
            s.core.faults.on_request(fault)
        await s.turn(CREATE if fault else FIRST, **(SOCKET if fault else {}))
    await s.turn(CREATE, **SOCKET)
    assert (Mode.HTTP_FULL, "cooling_down") == (s.last.mode, s.last.fallback_reason)


async def test_an_id_that_nobody_knows_is_passed_on_and_its_rejection_too():
    s = stack(OBSERVE)
    unknown = {**CREATE, "previous_response_id": "resp_x"}
    answer = await s.answer(unknown, **SOCKET)
    assert (400, 1) == (answer.status, s.last.attempts)
    assert b"previous_response_not_found" in answer.frame
    assert (Mode.WS_INCREMENTAL, Reason.CLIENT_ANCHORED) == shadow(s)


async def test_another_tenants_id_is_the_providers_to_refuse():
    s = stack(OBSERVE)
    await s.turn(CREATE, **SOCKET)
    theirs = {**CREATE, "previous_response_id": s.last.response_id}
    answer = await s.answer(
        theirs, tenant="other", socket="d", transport="ws", headers=(("authorization", "Bearer o"),)
    )
    assert (400, Status.ERROR) == (answer.status, s.last.status)
    assert 2 == len(s.core.log)


async def test_a_warm_up_is_the_clients_and_the_turn_that_hangs_on_it_continued_in_the_shadow():
    s = stack(OBSERVE)
    warmup = {**CREATE, "generate": False}
    await s.turn(warmup, **SOCKET)
    assert (Kind.WARMUP, json.dumps(warmup)) == (s.last.kind, frames(s)[-1])
    await s.turn({**CREATE, "input": [], "previous_response_id": s.last.response_id}, **SOCKET)
    assert (Mode.WS_INCREMENTAL, Reason.OK) == shadow(s)


async def test_a_failure_is_never_sent_again():
    s = stack(OBSERVE)
    await s.turn(CREATE, **SOCKET)
    s.core.faults.on_request(faults.connection_limit_reached())
    answer = await s.answer(CREATE, **SOCKET)
    assert (400, 1) == (answer.status, s.last.attempts)
    assert b"websocket_connection_limit_reached" in answer.frame
    assert [] == [chain for chain in chains(s) if chain.anchor is None]


async def test_a_connection_that_closed_between_turns_is_replaced():
    s = stack(OBSERVE)
    await s.turn(CREATE, **SOCKET)
    s.sockets.opened[0].drop(1000)
    await s.turn(CREATE, **SOCKET)
    assert (2, Status.COMPLETED, 1) == (len(s.sockets.opened), s.last.status, s.last.attempts)
    assert s.facts[0].connection != s.facts[1].connection is not None

    async def gone(frame):
        raise ConnectionLost(1000, sent=False)

    s.sockets.opened[1].send = gone
    answer = await s.answer(CREATE, **SOCKET)
    assert (502, "closed") == (answer.status, s.last.error_code)


async def test_losses_that_are_not_in_a_row_do_not_move_client_sockets_to_http():
    s = stack(Policy(continuation="observe", max_losses=2))
    for _ in range(3):
        s.core.faults.on_request(faults.abort(after=2))
        await s.turn(CREATE, **SOCKET)
        assert Status.ERROR is s.last.status
        await s.turn(CREATE, **SOCKET)
        assert (Mode.WS_FULL, Status.COMPLETED) == (s.last.mode, s.last.status)


async def test_an_upstream_without_websockets_is_used_over_http():
    s = stack(OBSERVE)
    s.core.faults.on_upgrade(faults.RefuseUpgrade(426))
    events = await s.turn(CREATE, **SOCKET)
    assert "response.completed" == events[-1]["type"]
    assert (Mode.HTTP_FULL, Reason.CONTINUATION_OFF, False) == wire(s)
    assert ("upgrade_426", None) == (s.last.fallback_reason, s.last.connection)
    assert [] == chains(s)
    await s.turn(after(events, CREATE), **SOCKET)
    assert "upgrade_426" == s.last.fallback_reason


@pytest.mark.parametrize("status", [401, 429])
async def test_what_the_upgrade_is_refused_with_is_the_clients(status):
    s = stack(OBSERVE)
    s.core.faults.on_upgrade(faults.RefuseUpgrade(status))
    answer = await s.answer(CREATE, **SOCKET)
    assert (status, []) == (answer.status, chains(s))


async def test_the_connection_ends_with_its_socket():
    s = stack(OBSERVE)
    await s.turn(CREATE, **SOCKET)
    s.driver.socket_closed("c")
    await asyncio.sleep(0)
    assert [True] == [connection.closed for connection in s.sockets.opened]
    assert {} == s.driver._keeper.connections


async def test_a_socket_that_ends_in_a_turn_is_drained_first():
    s = stack(OBSERVE)
    answer = await s.answer(CREATE, **SOCKET)
    s.driver.socket_closed("c")
    assert not s.sockets.opened[0].closed
    async for _ in answer:
        pass
    await asyncio.sleep(0)
    assert (Status.CLIENT_CLOSED, True) == (s.last.status, s.sockets.opened[0].closed)
    assert s.last.usage.input_tokens


async def test_an_internal_fault_of_the_shadow_does_not_touch_the_turn(monkeypatch):
    def broken(*args, **more):
        raise RuntimeError("fault")

    monkeypatch.setattr("engine.decision.decide", broken)
    s = Stack(make_core(replies=["a"]), OBSERVE)
    events = await s.turn(FIRST)
    assert "response.completed" == events[-1]["type"]
    assert (Mode.HTTP_FULL, Reason.INTERNAL_ERROR) == (s.last.mode, s.last.reason)
    assert json.dumps(FIRST) == frames(s)[-1]


@pytest.mark.parametrize("step", ["engine.shadow.stage", "engine.keeper.Keeper.settle"])
@pytest.mark.parametrize("call", [{}, SOCKET])
async def test_a_fault_in_what_could_have_been_changes_nothing_on_the_wire(
    step, call, monkeypatch, caplog
):
    def fails(*_):
        raise KeyError("secret of the client")

    s = stack(OBSERVE)
    raw = json.dumps(CREATE if call else FIRST, indent=1)
    with monkeypatch.context() as broken:
        broken.setattr(step, fails)
        events = await s.turn(raw.encode(), **call)
    assert "response.completed" == events[-1]["type"]
    mode = Mode.WS_FULL if call else Mode.HTTP_FULL
    assert (mode, Reason.INTERNAL_ERROR, False) == wire(s)
    assert [raw] == frames(s)
    assert "KeyError" in caplog.text
    assert "secret" not in caplog.text
    await s.turn(raw.encode(), **call)
    assert (Mode.WS_FULL, Reason.NO_BASELINE) == shadow(s)
