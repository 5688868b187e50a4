"""A client that continues by itself what the provider stores: its request goes as it came, and what
the provider holds after it is known where the engine knew what the client named (DESIGN 4.2)."""

from __future__ import annotations

import itertools
import json

import pytest

from app.demo.provider import faults
from app.demo.provider.actions import Gate
from app.demo.provider.oracle import same_transcript
from engine.model import Kind, Mode, Policy, Reason, Status
from engine.sessions import Bounds
from tests.support.first_turns import after, stack
from tests.support.loopback import LoopbackHttp, Stack
from tests.support.provider import MODEL, make_core, user
from tests.support.storing import STORE, counting, reading

FIRST = {"model": MODEL, "store": True, "stream": True, "input": [user("one")]}
SOCKET = {"transport": "ws", "socket": "c"}
OWN = (Mode.WS_INCREMENTAL, Reason.CLIENT_ANCHORED)
CONTINUED = (Mode.WS_INCREMENTAL, Reason.OK, None)


def said(s: Stack) -> tuple:
    return (s.last.mode, s.last.reason, s.last.fallback_reason)


def delta(s: Stack, text: str = "x", **more) -> dict:
    return {
        **FIRST,
        "input": [user(text)],
        "previous_response_id": s.last.response_id,
        **more,
    }


async def named(s: Stack, text: str = "x", hops: int = 1, body: dict | None = None, **call) -> dict:
    """A first turn, then some in which the client names the one before; the next whole history."""
    events = await s.turn(body or FIRST, **call)
    history = [*FIRST["input"], *events[-1]["response"]["output"]]
    for hop in range(hops):
        asked = user(f"{text} {hop}")
        events = await s.turn(delta(s, input=[asked]), **call)
        history += [asked, *events[-1]["response"]["output"]]
    return {**FIRST, "input": [*history, user("more")]}


def holds(s: Stack, body: dict) -> bool:
    """The provider had exactly this history before its last answer."""
    held = s.core.held(s.last.response_id)
    return same_transcript(held.items[: len(held.items) - len(held.output)], body["input"])


def anchors(s: Stack, session: str | None = "s") -> list:
    return list(s.driver.sessions.scope(("tenant", "default", session)).anchors.values())


@pytest.mark.parametrize("hops", [1, 3])
async def test_a_whole_history_continues_what_the_client_continued_by_itself(hops):
    s = stack()
    body = await named(s, hops=hops, **SOCKET)
    assert (*OWN, hops + 1) == (s.last.mode, s.last.reason, len(s.facts))
    events = await s.turn(body, **SOCKET)
    assert CONTINUED == said(s)
    assert [user("more")] == s.core.log[-1].body["input"]
    assert holds(s, body)
    await s.turn(after(events, body), **SOCKET)
    assert CONTINUED == said(s)
    assert 1 == len(s.sockets.opened)


async def test_its_row_is_proven_by_the_one_before():
    s = stack()
    await named(s, **SOCKET)
    one, two = s.facts
    assert (1, 1, False) == (two.items_total, two.items_sent, two.eligible)
    assert one.baseline_digest == two.prefix_digest != two.baseline_digest is not None


async def test_its_request_goes_as_it_came():
    s = stack()
    await s.turn(FIRST, **SOCKET)
    await s.turn(own := delta(s, metadata={"a": "b"}), **SOCKET)
    sent = s.core.log[-1].body
    assert {**own, "type": "response.create"} == sent


async def test_a_bare_id_is_continued_again_by_the_client():
    s = stack()
    await s.turn(FIRST, **SOCKET)
    first = s.last.response_id
    await s.turn(delta(s), **SOCKET)
    fork = {**delta(s, "another way"), "previous_response_id": first}
    events = await s.turn(fork, **SOCKET)
    assert OWN == (s.last.mode, s.last.reason)
    own = [item.text for item in s.core.held(first).items]
    body = {**FIRST, "input": [*map(json.loads, own), user("another way")]}
    await s.turn(after(events, body), **SOCKET)
    assert CONTINUED == said(s)


async def test_what_was_named_on_another_connection_is_proven_by_the_answer():
    s = stack()
    await s.turn(FIRST, **SOCKET)
    s.sockets.opened[0].drop(1000)
    events = await s.turn(delta(s), **SOCKET)
    assert OWN == (s.last.mode, s.last.reason)
    assert 2 == len(s.sockets.opened)
    history = [json.loads(item.text) for item in s.core.held(s.last.response_id).items]
    await s.turn({**FIRST, "input": [*history, user("more")]}, **SOCKET)
    assert CONTINUED == said(s)
    assert events


def answering(s: Stack, change) -> None:
    """The newest connection's responses are changed on their way."""
    connection = s.sockets.opened[-1]
    receive = connection.receive

    async def changed() -> bytes:
        event = json.loads(await receive())
        if "response" in event:
            change(event["response"])
        return json.dumps(event).encode()

    connection.receive = changed


@pytest.mark.parametrize("names", ["resp_other", "resp_0"])
async def test_an_answer_that_names_another_response_is_not_continued_and_the_row_says_so(names):
    s = stack()
    await s.turn(FIRST, **SOCKET)
    answering(s, lambda response: response.update(previous_response_id=names))
    await s.turn(delta(s), **SOCKET)
    assert (None, None) == (s.last.prefix_digest, s.last.baseline_digest)
    history = [json.loads(item.text) for item in s.core.held(s.last.response_id).items]
    await s.turn({**FIRST, "input": [*history, user("more")]}, **SOCKET)
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST, "client_anchored") == said(s)


async def test_an_answer_that_does_not_say_what_it_continues_is_believed_on_its_own_connection():
    s = stack()
    await s.turn(FIRST, **SOCKET)
    answering(s, lambda response: response.pop("previous_response_id"))
    await s.turn(delta(s), **SOCKET)
    history = [json.loads(item.text) for item in s.core.held(s.last.response_id).items]
    await s.turn({**FIRST, "input": [*history, user("more")]}, **SOCKET)
    assert CONTINUED == said(s)


async def test_a_response_of_which_not_all_is_known_stays_unknown():
    s = stack()
    s.core.faults.on_request(faults.DropDone())
    await s.turn(FIRST, **SOCKET)
    await s.turn(delta(s), **SOCKET)
    assert (*OWN, None) == (s.last.mode, s.last.reason, s.last.baseline_digest)
    history = [json.loads(item.text) for item in s.core.held(s.last.response_id).items]
    await s.turn({**FIRST, "input": [*history, user("more")]}, **SOCKET)
    assert (Mode.WS_FULL, Reason.NO_BASELINE) == said(s)[:2]


async def test_digests_of_what_was_named_are_enough():
    s = stack()
    body = await named(s, hops=0, **SOCKET)
    for anchor in anchors(s):
        anchor.items.condense(b"test key")
    events = await s.turn(delta(s, "y"), **SOCKET)
    whole = [*body["input"][:-1], user("y"), *events[-1]["response"]["output"], user("more")]
    await s.turn({**FIRST, "input": whole}, **SOCKET)
    assert CONTINUED == said(s)
    assert holds(s, {"input": whole})


async def test_an_unknown_id_proves_nothing():
    s = stack()
    answer = await s.answer({**delta_of("resp_unknown")}, **SOCKET)
    assert 400 == answer.status
    assert [] == anchors(s)


@pytest.mark.parametrize("call", [SOCKET, {}])
async def test_where_turns_are_only_observed_the_row_says_what_would_have_been_known(call):
    s = stack(Policy(continuation="observe"))
    own = {"type": "response.create"} if call else {}
    first = (await s.turn({**FIRST, **own}, **call))[-1]["response"]
    second = (await s.turn({**delta(s), **own}, **call))[-1]["response"]
    assert s.last.prefix_digest == s.facts[0].baseline_digest is not None
    history = [*FIRST["input"], *first["output"], user("x"), *second["output"]]
    await s.turn({**FIRST, **own, "input": [*history, user("more")]}, **call)
    assert (Mode.WS_INCREMENTAL, Reason.OK) == (s.last.shadow_mode, s.last.shadow_reason)


def delta_of(name: str) -> dict:
    return {**FIRST, "input": [user("x")], "previous_response_id": name}


# --- over HTTP --------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["sse", "http"])
@pytest.mark.parametrize("store", [True, None])
async def test_an_unnamed_client_that_continues_by_itself_stays_in_one_session(transport, store):
    s = stack()
    body = {**FIRST, "store": store, "stream": transport == "sse"}
    await s.turn(body, session=None, transport=transport)
    for hop in range(3):
        own = {**delta(s, f"x {hop}"), "store": store, "stream": transport == "sse"}
        await s.turn(own, session=None, transport=transport)
        assert (Mode.HTTP_INCREMENTAL, Reason.CLIENT_ANCHORED) == said(s)[:2]
    assert 1 == len({facts.session for facts in s.facts})
    assert 4 == len({facts.baseline_digest for facts in s.facts} - {None})


async def test_an_unnamed_client_stays_in_its_session_where_nothing_is_known_of_its_history():
    s = stack()
    s.core.faults.on_request(faults.DropDone())
    await s.turn(FIRST, session=None)
    for hop in range(3):
        await s.turn(delta(s, f"x {hop}"), session=None)
    assert 1 == len({facts.session for facts in s.facts})
    assert [None] * 3 == [facts.baseline_digest for facts in s.facts[1:]]


async def test_a_whole_history_after_turns_over_http_continues_the_last_connection():
    s = stack()
    body = await named(s)
    assert Mode.HTTP_INCREMENTAL == s.last.mode
    await s.turn(body)
    assert CONTINUED == said(s)
    assert s.facts[0].response_id == s.core.log[-1].previous_response_id
    assert holds(s, body)


async def test_without_that_connection_the_row_says_that_the_turn_before_went_over_http():
    s = stack()
    body = await named(s)
    s.sockets.opened[0].drop(1000)
    await s.turn(body)
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST, "http") == said(s)
    assert holds(s, body)


@pytest.mark.parametrize("call", [{}, SOCKET])
async def test_what_the_upstream_keeps_is_continued_from_the_clients_own_turn(call):
    s = stack(STORE)
    body = await named(s, hops=2, **call)
    assert (Mode.HTTP_INCREMENTAL, Reason.CLIENT_ANCHORED) == said(s)[:2]
    assert 1 == len({facts.chain for facts in s.facts})
    own = s.last.response_id
    await s.turn(body, **call)
    assert (Mode.HTTP_INCREMENTAL, Reason.OK, None) == said(s)
    assert (own, [user("more")]) == (
        s.core.log[-1].previous_response_id,
        s.core.log[-1].body["input"],
    )
    assert holds(s, body)


async def test_an_upstream_that_ignores_what_the_client_names_is_not_believed():
    s = stack(STORE)
    await s.turn(FIRST)
    reading(s, lambda read: read.pop("previous_response_id", None))
    await s.turn(delta(s))
    s.http.post = LoopbackHttp(s.core).post
    assert (None, None) == (s.last.prefix_digest, s.last.baseline_digest)
    answered = json.loads(s.core.held(s.last.response_id).output[-1].text)
    first = [json.loads(item.text) for item in s.core.held(s.facts[0].response_id).items]
    body = {**FIRST, "input": [*first, user("x"), answered, user("more")]}
    await s.turn(body)
    assert s.facts[0].response_id == s.last.previous_response_id
    assert holds(s, body)


async def test_an_id_that_was_given_again_no_longer_names_what_is_known():
    s = stack(STORE)
    counting(s, ["resp_1", "resp_1", "resp_2", "resp_3"])
    events = await s.turn(FIRST)
    await s.turn({**FIRST, "input": [user("another's")]}, session="other")
    await s.turn(delta_of("resp_1"))
    assert (Reason.CLIENT_ANCHORED, None) == (s.last.reason, s.last.baseline_digest)
    body = after(events, FIRST, "x")
    answered = json.loads(s.core.held(s.core.log[-1].response_id).output[-1].text)
    await s.turn({**body, "input": [*body["input"], answered, user("more")]})
    assert Mode.HTTP_FULL == s.last.mode


async def test_the_clients_own_turn_is_no_word_on_what_the_upstream_keeps():
    s = stack(STORE)
    await s.turn(FIRST)
    await s.turn(delta(s, store=False))
    assert (0, 1) == s.driver.figures("default")


async def test_bytes_of_a_history_that_is_only_named_are_counted_once():
    s = stack()
    await named(s, hops=4, session=None)
    held = anchors(s, None)
    assert sum(anchor.size for anchor in held) == s.driver.sessions._bytes
    assert [0, 0, 0] == [anchor.size for anchor in held[1:-1]]


async def test_bytes_are_counted_as_long_as_a_live_response_holds_them():
    s = Stack(make_core(), bounds=Bounds(anchors_per_session=2))
    await s.turn({**FIRST, "input": [user("x" * 9_000)]})
    await s.turn(delta(s))
    for text in ("two", "three"):
        await s.turn({**FIRST, "input": [user(text)]})
    live = anchors(s)[0]
    assert (s.facts[0].response_id, True) == (live.response_id, live.is_live)
    assert live.size > 9_000
    assert sum(anchor.size for anchor in anchors(s)) == s.driver.sessions.bytes


async def test_a_warm_up_that_is_answered_here_stands_for_what_it_names():
    s = stack(Policy(max_losses=1))
    s.core.faults.on_upgrade(faults.RefuseUpgrade(426), times=None)
    events = await s.turn(FIRST, **SOCKET)
    await s.turn({**delta(s), "generate": False}, **SOCKET)
    assert (Kind.WARMUP, 1) == (s.last.kind, len(s.core.log))
    await s.turn({**delta(s), "input": []}, **SOCKET)
    sent = s.core.log[-1].body
    assert "previous_response_id" not in sent
    assert same_transcript(after(events, FIRST, "x")["input"], sent["input"])


# --- resets -----------------------------------------------------------------------------------


def reset(s: Stack, reason: str = "summarize") -> None:
    s.driver.reset_epoch("tenant", "default", s.facts[0].session, reason)


@pytest.mark.parametrize(
    ("continuation", "call"),
    [
        *itertools.product(["websocket", "store"], [{}, SOCKET, {"session": None}]),
        *itertools.product(["observe"], [{}, {"session": None}]),
    ],
)
@pytest.mark.parametrize("by", ["request", "api", "api in flight"])
async def test_a_reset_is_not_lost_on_a_turn_that_the_client_continues_by_itself(
    continuation, call, by
):
    s = stack(Policy(continuation=continuation))
    await s.turn(FIRST, **call)
    if by == "api":
        reset(s)
    gate = Gate()
    if by == "api in flight":
        s.core.faults.on_request(faults.Hold(gate, after=1))
    asked = {"epoch_reset": "summarize"} if by == "request" else {}
    answer = await s.answer(delta(s), **call, **asked)
    if by == "api in flight":
        reset(s)
    gate.open()
    async for _ in answer:
        pass
    assert (Reason.CLIENT_ANCHORED, Status.COMPLETED) == (s.last.reason, s.last.status)
    await s.turn(delta(s, "y"), **call)
    assert (Reason.CLIENT_ANCHORED, Status.COMPLETED) == (s.last.reason, s.last.status)
    history = [json.loads(item.text) for item in s.core.held(s.last.response_id).items]
    body = {**FIRST, "input": [*history, user("more")]}
    events = await s.turn(body, **call)
    observed = continuation == "observe"
    assert (False, Reason.EPOCH_RESET, "summarize", 2, 1) == (
        s.last.mode.incremental,
        s.last.shadow_reason if observed else s.last.reason,
        s.last.epoch_reset_reason,
        s.last.epoch,
        s.last.epoch_turn,
    )
    await s.turn(after(events, body), **call)
    assert Reason.OK == (s.last.shadow_reason if observed else s.last.reason)


async def test_a_reset_leaves_the_clients_own_connection_to_it():
    s = stack()
    await s.turn(FIRST, **SOCKET)
    await s.turn(delta(s), epoch_reset="summarize", **SOCKET)
    await s.turn(delta(s), **SOCKET)
    assert (1, OWN) == (len(s.sockets.opened), (s.last.mode, s.last.reason))


@pytest.mark.parametrize(
    "passed_on", [{"background": True, "store": True}, {"model": "o3"}, {"conversation": "conv_1"}]
)
@pytest.mark.parametrize("continuation", ["websocket", "observe"])
async def test_a_reset_is_not_lost_on_a_turn_that_is_not_understood(passed_on, continuation):
    s = stack(Policy(models=(MODEL,), continuation=continuation))
    body = after(await s.turn(FIRST), FIRST)
    await s.turn({**FIRST, **passed_on, "stream": False}, epoch_reset="summarize", transport="http")
    await s.turn(body)
    decided = s.last.reason if continuation == "websocket" else s.last.shadow_reason
    assert (Reason.EPOCH_RESET, "summarize") == (decided, s.last.epoch_reset_reason)


async def test_a_reset_holds_for_what_the_client_takes_over_from_another_session():
    s = stack()
    await s.turn(FIRST, session="other", **SOCKET)
    await s.turn(delta(s), epoch_reset="summarize", **SOCKET)
    assert (*OWN, None) == (s.last.mode, s.last.reason, s.last.baseline_digest)


async def test_a_turn_on_what_a_reset_has_ended_is_not_continued_by_the_engine():
    s = stack()
    await s.turn(FIRST, **SOCKET)
    old = s.last.response_id
    reset(s)
    await s.turn({**FIRST, "input": [user("new")]}, **SOCKET)
    await s.turn(delta_of(old), **SOCKET)
    history = [json.loads(item.text) for item in s.core.held(s.last.response_id).items]
    await s.turn({**FIRST, "input": [*history, user("more")]}, **SOCKET)
    assert (Mode.WS_FULL, Reason.EPOCH_RESET) == said(s)[:2]
