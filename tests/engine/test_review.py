"""Rules that a review found broken: DESIGN 4.1, 4.2 and 4.6, one rule a test."""

from __future__ import annotations

import asyncio
import json

import pytest

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from engine.chain import ChainState
from engine.driver import Driver
from engine.errors import ConnectionLost
from engine.model import Mode, Policy, Reason, Status
from engine.sessions import Bounds
from engine.stream import Fold
from tests.engine.test_driver import FIRST, after, stack, warm
from tests.support.loopback import LoopbackHttp, Stack
from tests.support.provider import user


def bounded(s: Stack, **bounds: int) -> Stack:
    s.driver = Driver(
        websocket=s.sockets,
        http=LoopbackHttp(s.core),
        clock=s.clock,
        new_id=lambda prefix: f"{prefix}{next(s._ids)}",
        key=b"test key",
        on_turn=s.facts.append,
        bounds=Bounds(**bounds),
    )
    return s


def chains(s: Stack) -> list:
    return [c for scope in s.driver.sessions.scopes() for c in scope.chains.values()]


def scopes(s: Stack) -> int:
    return len(list(s.driver.sessions.scopes()))


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def slow_ping(s: Stack) -> tuple[asyncio.Event, asyncio.Event]:
    """The first connection's ping waits: it has begun, it may end."""
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def ping(within: float) -> bool:
        begun.set()
        await may_end.wait()
        return True

    s.sockets.opened[0].ping = ping
    s.clock.advance(11)
    return begun, may_end


async def test_a_turn_cancelled_during_the_ping_leaves_no_busy_chain():
    s = stack()
    body = await warm(s)
    begun, _ = slow_ping(s)
    task = asyncio.create_task(s.answer(body))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await settled()
    assert [] == [c for c in chains(s) if c.state is ChainState.BUSY]
    assert s.sockets.opened[0].closed
    assert 2 == len(s.facts)


async def test_a_ping_that_fails_in_any_way_costs_only_its_connection():
    s = stack()
    body = await warm(s)

    async def broken(within: float) -> bool:
        raise RuntimeError("ping")

    s.sockets.opened[0].ping = broken
    s.clock.advance(11)
    events = await s.turn(body)
    assert "response.completed" == events[-1]["type"]
    assert [] == [c for c in chains(s) if c.state is ChainState.BUSY]


async def test_a_reset_during_the_ping_holds_for_the_turn_that_waits():
    s = stack()
    body = await warm(s)
    begun, may_end = slow_ping(s)
    task = asyncio.create_task(s.turn(body))
    await begun.wait()
    s.driver.reset_epoch("tenant", "default", "s", "summarize")
    may_end.set()
    await task
    assert (Mode.WS_FULL, Reason.EPOCH_RESET, "summarize") == (
        s.last.mode,
        s.last.reason,
        s.last.epoch_reset_reason,
    )


async def test_a_reset_during_a_turn_is_consumed_by_the_next_one_and_keeps_its_reason():
    s = stack()
    body = await warm(s)
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=1))
    first = await s.answer(body)
    s.driver.reset_epoch("tenant", "default", "s", "summarize")
    gate.open()
    events = [json.loads(event.data) async for event in first]
    await s.turn(after(events, body))
    assert (Mode.WS_FULL, Reason.EPOCH_RESET, "summarize", 2, 1) == (
        s.last.mode,
        s.last.reason,
        s.last.epoch_reset_reason,
        s.last.epoch,
        s.last.epoch_turn,
    )


async def test_a_reset_by_name_reaches_an_unnamed_session():
    s = stack()
    body = await warm(s, session=None)
    s.driver.reset_epoch("tenant", "default", s.last.session, "summarize")
    await s.turn(body, session=None)
    assert Reason.EPOCH_RESET == s.last.reason


async def test_a_frame_refused_with_1009_leaves_no_busy_chain():
    s = stack()
    body = await warm(s)

    async def too_big(frame: bytes) -> None:
        raise ConnectionLost(1009, sent=False)

    s.sockets.opened[0].send = too_big
    await s.turn(body)
    await settled()
    assert Reason.PAYLOAD_TOO_LARGE == s.last.reason
    assert [] == [c for c in chains(s) if c.state is ChainState.BUSY]
    assert s.sockets.opened[0].closed


async def test_a_frame_that_may_have_left_is_not_sent_again():
    s = stack()
    body = await warm(s)

    async def lost(frame: bytes) -> None:
        raise ConnectionLost(None, sent=True)

    s.sockets.opened[0].send = lost
    answer = await s.answer(body)
    assert 502 == answer.status
    assert 1 == len(s.core.log)


async def test_a_failed_response_is_not_sent_again_though_its_error_is_bare():
    s = stack()
    body = await warm(s)
    failed = {
        "type": "response.failed",
        "response": {"id": "resp_x", "status": "failed", "error": {"type": "server_error"}},
    }
    s.core.faults.on_request(faults.extra_event(failed, after=0))
    await s.turn(body)
    assert (Status.FAILED, 1) == (s.last.status, s.last.attempts)


async def test_a_response_done_that_failed_leaves_no_anchor():
    fold = Fold()
    fold.feed(b'{"type":"response.created","response":{"id":"r"}}')
    fold.feed(b'{"type":"response.done","response":{"id":"r","status":"failed","output":[]}}')
    assert not fold.commits
    done = Fold()
    done.feed(b'{"type":"response.done","response":{"id":"r","output":[]}}')
    assert done.commits


async def test_a_deeply_nested_event_is_relayed_and_does_not_break_the_stream():
    s = stack()
    deep = "[" * 100_000 + "]" * 100_000
    for text in (f'{{"type":"response.x","{name}":{deep}}}' for name in ("y", "item")):
        s.core.faults.on_request(faults.garbage(text))
        answer = await s.answer(FIRST)
        seen = [event.data async for event in answer]
        assert text.encode() in seen
        assert b"response.completed" in seen[-1]
        assert Status.COMPLETED == s.last.status


@pytest.mark.parametrize("name", ["generate", "reasoning", "tools", "x"])
@pytest.mark.parametrize("depth", [500, 100_000])
async def test_a_deeply_nested_field_is_one_row(name, depth):
    s = stack()
    deep = b"[" * depth + b"]" * depth
    answer = await s.answer(b'{"%s":%s,' % (name.encode(), deep) + json.dumps(FIRST).encode()[1:])
    if answer.streamed:
        async for _ in answer:
            pass
    assert 1 == len(s.facts)


async def test_an_event_of_the_former_response_does_not_answer_the_next_turn():
    s = stack()
    body = await warm(s)
    former = s.facts[-1].response_id
    stale = {"type": "response.done", "response": {"id": former, "status": "completed"}}
    s.core.faults.on_request(faults.extra_event(stale, after=0))
    events = await s.turn(body)
    assert "response.completed" == events[-1]["type"]
    assert former != s.last.response_id
    await s.turn(after(events, body))
    assert s.last.previous_response_id == s.facts[-2].response_id


async def test_a_session_in_use_is_not_forgotten():
    s = bounded(stack(), sessions=1)
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=1))
    s.sockets.connect, connect = None, s.sockets.connect
    waiting = asyncio.Event()

    async def slow(*args):
        s.sockets.connect = connect
        await waiting.wait()
        return await connect(*args)

    s.sockets.connect = slow
    task = asyncio.create_task(s.turn(FIRST, session="a"))
    await settled()
    gate.open()
    await s.turn(FIRST, session="b")
    waiting.set()
    events = await task
    assert len(chains(s)) == len(s.driver._keeper.connections)
    await s.turn(after(events, FIRST), session="a")
    assert Mode.WS_INCREMENTAL == s.last.mode


async def test_sessions_whose_turns_fail_are_bounded_like_all_others():
    s = bounded(stack(), sessions=2)
    for n in range(10):
        s.core.faults.on_request(faults.ErrorFrame("invalid_prompt", status=400))
        await s.turn(FIRST, session=f"s{n}")
    assert scopes(s) <= 2
    assert 10 == len(s.facts)


async def test_a_turn_on_another_sessions_response_leaves_no_busy_chain():
    s = stack()
    first = {**FIRST, "store": True}
    await s.turn(first, transport="ws", socket="c")
    named = {**first, "input": [user("x")], "previous_response_id": s.last.response_id}
    s.core.faults.on_request(faults.abort(after=1))
    await s.turn(named, transport="ws", socket="c", session="other")
    await settled()
    assert [] == [c for c in chains(s) if c.state is ChainState.BUSY]
    assert all(c.closed for c in s.sockets.opened)
    assert len(chains(s)) == len(s.driver._keeper.connections) == 0


async def test_a_socket_leases_only_the_chain_that_last_answered_it():
    s = bounded(stack(), chains_per_session=2)
    for n in range(6):
        await s.turn({**FIRST, "input": [user(f"fork {n}")]}, transport="ws", socket="c")
    assert len(chains(s)) <= 2
    assert 1 == sum(c.leased_by is not None for c in chains(s))


async def test_a_socket_that_ends_during_its_turn_leases_nothing():
    s = stack()
    gate = Gate()
    s.core.faults.on_request(faults.Hold(gate, after=2))
    answer = await s.answer(FIRST, transport="ws", socket="c")
    answer.client_left()
    s.driver.socket_closed("c")
    gate.open()
    async for _ in answer:
        pass
    assert [None] == [c.leased_by for c in chains(s)]


async def test_an_internal_fault_never_sends_an_anchored_delta_without_its_history(monkeypatch):
    s = stack()
    events = await s.turn(FIRST, transport="ws", socket="c")
    delta = {**FIRST, "input": [user("x")], "previous_response_id": s.last.response_id}

    def broken(*args, **more):
        raise RuntimeError("fault")

    monkeypatch.setattr("engine.over_socket.stage", broken)
    await s.turn(delta, transport="ws", socket="c")
    assert Reason.INTERNAL_ERROR == s.last.reason
    sent = s.core.log[-1].body["input"]
    assert [user("one"), user("x")] == [i for i in sent if i.get("role") == "user"]
    assert len(sent) == 2 + len(events[-1]["response"]["output"])


async def test_a_warm_up_is_never_a_generation_even_where_nothing_is_continued():
    s = stack(Policy(continuation="off"))
    await s.turn({**FIRST, "generate": False}, transport="ws", socket="c")
    assert [] == [entry for entry in s.core.log if entry.body.get("generate") is not False]
    assert 1 == len(s.facts)


async def test_one_id_from_two_tenants_is_each_ones_own():
    s = stack()
    await s.turn(FIRST)
    own = s.last.response_id
    (_, anchor) = s.driver.sessions.find(own)
    events = await s.turn(FIRST, tenant="other", headers=(("authorization", "Bearer o"),))
    scope = s.driver.sessions.scope(("other", "default", "s"))
    theirs = next(iter(scope.anchors.values()))
    s.driver.sessions.drop(scope, theirs)
    theirs.response_id = own
    s.driver.sessions.add(scope, theirs)
    assert events
    answer = await s.answer({**FIRST, "input": [user("x")], "previous_response_id": own})
    assert 200 == answer.status
    assert anchor.response_id == own


async def test_an_answer_that_is_never_read_still_is_one_row():
    s = stack()
    answer = await s.answer(FIRST)
    await answer.events.aclose()
    del answer
    await settled()
    assert 1 == len(s.facts)
    assert [] == [c for c in chains(s) if c.state is ChainState.BUSY]


async def test_an_id_that_names_two_responses_is_continued_by_nobody():
    s = stack()
    body = await warm(s)
    scope = s.driver.sessions.scope(("tenant", "default", "s"))
    receive = s.sockets.opened[0].receive
    former = s.last.response_id

    async def reused() -> bytes:
        event = json.loads(await receive())
        if "response" in event:
            event["response"]["id"] = former
        return json.dumps(event).encode()

    s.sockets.opened[0].receive = reused
    events = await s.turn(body)
    assert {} == scope.chains
    await s.turn(after(events, body))
    assert (Mode.WS_FULL, Reason.MISSING_RESPONSE_ID) == (s.last.mode, s.last.reason)


async def test_connections_that_are_being_opened_count_towards_the_limit():
    s = bounded(stack(), connections=1)
    connect, gate = s.sockets.connect, asyncio.Event()

    async def slow(*args):
        await gate.wait()
        return await connect(*args)

    s.sockets.connect = slow
    first = asyncio.create_task(s.turn(FIRST, session="a"))
    await settled()
    await s.turn(FIRST, session="b")
    assert (Mode.HTTP_FULL, "no_connection_free") == (s.last.mode, s.last.fallback_reason)
    gate.set()
    await first
    assert 1 == len(s.sockets.opened)


@pytest.mark.parametrize("code", [1009])
async def test_an_anchored_frame_of_a_client_that_is_too_big_goes_over_http_as_one_row(code):
    s = stack()
    first = {**FIRST, "store": True}
    await s.turn(first, transport="ws", socket="c")
    named = {**first, "input": [user("x")], "previous_response_id": s.last.response_id}
    s.core.faults.on_request(faults.close(code))
    await s.turn(named, transport="ws", socket="c")
    await settled()
    assert (Reason.CLIENT_ANCHORED, None) == (s.last.reason, s.last.connection)
    assert 2 == len(s.facts)
    assert [] == chains(s)


async def test_an_error_to_a_clients_own_anchor_is_relayed_and_not_replaced():
    s = stack()
    first = {**FIRST, "store": True}
    await s.turn(first, transport="ws", socket="c")
    named = {**first, "input": [user("x")], "previous_response_id": s.last.response_id}
    s.core.faults.on_request(faults.connection_limit_reached())
    answer = await s.answer(named, transport="ws", socket="c")
    assert b"websocket_connection_limit_reached" in answer.body


async def test_a_reset_during_an_http_turn_holds_for_the_next_one():
    s = stack(Policy(max_frame_bytes=1))
    posted = s.http.post
    gate = asyncio.Event()

    async def slow(*args):
        await gate.wait()
        return await posted(*args)

    s.http.post = slow
    task = asyncio.create_task(s.turn(FIRST))
    await settled()
    s.driver.reset_epoch("tenant", "default", "s", "summarize")
    gate.set()
    events = await task
    s.upstream = type(s.upstream)("default", "http://provider/v1", Policy())
    await s.turn(after(events, FIRST))
    assert (Reason.EPOCH_RESET, "summarize") == (s.last.reason, s.last.epoch_reset_reason)


async def test_live_baselines_are_within_the_byte_bound_too():
    s = bounded(stack(), bytes=3000)
    for n in range(12):
        await s.turn({**FIRST, "input": [user("x" * 500)]}, session=f"s{n}")
    assert s.driver.sessions._bytes <= 3000
    assert len(chains(s)) == len(s.driver._keeper.connections)


# --- what the engine cannot read, or does not know, is not its to change --------------------------


async def test_a_fault_in_reading_a_request_lets_it_through_as_it_came(monkeypatch, caplog):
    def fails(*_):
        raise AssertionError("secret of the client")

    monkeypatch.setattr("engine.driver.split", fails)
    s = stack()
    events = await s.turn(FIRST)
    assert "response.completed" == events[-1]["type"]
    assert FIRST == s.core.log[-1].body
    assert (Mode.HTTP_FULL, Reason.CONTINUATION_OFF) == (s.last.mode, s.last.reason)
    assert "AssertionError" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("transport", ["sse", "ws"])
@pytest.mark.parametrize("named", [5, True, ["resp_1"], {"id": "resp_1"}])
async def test_an_anchor_that_is_no_text_reaches_the_upstream_and_is_never_left_out(
    transport, named
):
    s = stack()
    await s.turn({**FIRST, "previous_response_id": named}, transport=transport)
    assert named == s.core.log[-1].body["previous_response_id"]


@pytest.mark.parametrize("fault", [faults.DropDone(), faults.ConflictingOutput()])
@pytest.mark.parametrize("reset", [None, "summarize"])
async def test_a_response_of_which_not_all_is_known_is_not_expanded(fault, reset):
    """The provider would get a history that lacks what it answered itself."""
    s = stack()
    s.core.faults.on_request(fault)
    events = await s.turn(FIRST, transport="ws", socket="k")
    if reset is not None:
        s.driver.reset_epoch(s.last.tenant, s.last.upstream, s.last.session, reset)
    named = {"previous_response_id": events[-1]["response"]["id"], "input": [user("go on")]}
    seen = len(s.core.log)
    answer = await s.turn({**FIRST, **named}, transport="ws", socket="k")
    assert "previous_response_not_found" == answer[-1]["error"]["code"]
    assert seen == len(s.core.log)
    assert Status.REFUSED == s.last.status


async def test_a_repeat_that_is_refused_at_the_door_was_no_incremental_turn():
    s = stack()
    events = await s.turn(FIRST)
    s.core.faults.on_request(faults.previous_response_not_found())
    s.core.faults.on_upgrade(faults.RefuseUpgrade(429))
    await s.turn(after(events, FIRST))
    assert (None, Reason.PREVIOUS_RESPONSE_NOT_FOUND) == (s.last.mode, s.last.reason)
    assert (None, None) == (s.last.previous_response_id, s.last.items_sent)


def test_an_answer_without_items_that_took_tokens_is_not_trusted():
    fold = Fold()
    usage = b'{"input_tokens":5,"output_tokens":7,"total_tokens":12}'
    fold.feed_response(b'{"id":"resp_1","status":"completed","output":[],"usage":' + usage + b"}")
    assert fold.lacks_items


def test_an_answer_nested_too_deep_to_be_read_is_one_without_items():
    fold = Fold()
    deep = b"[" * 5000 + b"]" * 5000
    fold.feed_response(b'{"id":"resp_1","status":"completed","output":[' + deep + b"]}")
    assert [] == fold.outputs


async def test_a_fault_in_what_is_known_costs_a_full_reading_and_nothing_else(monkeypatch, caplog):
    def fails(*_):
        raise AssertionError("secret of the client")

    s = stack()
    body = await warm(s)
    monkeypatch.setattr("engine.driver.known", fails)
    await s.turn(body)
    assert (Mode.WS_INCREMENTAL, Reason.OK) == (s.last.mode, s.last.reason)
    assert "AssertionError" in caplog.text


@pytest.mark.parametrize("transport", ["sse", "http", "ws"])
async def test_a_fault_in_tidying_up_is_not_the_clients(transport, monkeypatch, caplog):
    def fails(*_):
        raise AssertionError("secret of the client")

    s = stack()
    monkeypatch.setattr("engine.sessions.Sessions.trim", fails)
    events = await s.turn({**FIRST, "stream": transport != "http"}, transport=transport)
    ended = events[-1] if transport == "http" else events[-1]["response"]
    assert "completed" == ended["status"]
    assert Status.COMPLETED == s.last.status
    assert "AssertionError" in caplog.text
