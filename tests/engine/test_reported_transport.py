"""Faults from the field: connections that fail, and what goes over HTTP (docs/field-reports.md)."""

from __future__ import annotations

import asyncio
import json

import pytest

from app.demo.provider import faults
from app.demo.provider.replies import function_call
from engine.errors import ConnectionLost
from engine.model import Kind, Mode, Policy, Reason, Status
from tests.support.first_turns import FIRST, after, stack, warm
from tests.support.provider import output_of, user

CONTINUED = (Mode.WS_INCREMENTAL, Reason.OK)


def outcome(s) -> tuple:
    return s.last.mode, s.last.reason


async def settled() -> None:
    """Connections are closed in the background."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("shape", ["nested", "status_code", "no_status", "flat", "failed"])
@pytest.mark.parametrize("transport", ["ws", "sse"])
async def test_a_rejected_anchor_of_the_client_comes_back_with_the_providers_own_code(
    shape, transport
):
    s = stack()
    s.core.faults.on_request(faults.previous_response_not_found(shape=shape))
    delta = {**FIRST, "previous_response_id": "resp_9", "input": [output_of("c1")]}
    answer = await s.answer(delta, transport=transport, socket="w")
    told = answer.body or b"".join([event.data async for event in answer])
    assert b"previous_response_not_found" in told
    assert 1 == len(s.core.log)
    assert ("resp_9", [output_of("c1")]) == (
        s.core.log[0].previous_response_id,
        s.core.log[0].body["input"],
    )


@pytest.mark.parametrize("shape", ["nested", "flat", "failed"])
@pytest.mark.parametrize("deaf", [True, False])
async def test_a_connection_that_told_of_an_error_is_not_used_again(shape, deaf):
    s = stack()
    body = await warm(s)
    s.core.faults.on_request(faults.ErrorFrame("server_error", shape=shape, deaf=deaf))
    await s.turn(body)
    await settled()
    assert s.sockets.opened[0].closed
    async with asyncio.timeout(5):
        events = await s.turn(body)
    assert "response.completed" == events[-1]["type"]
    assert (Mode.WS_FULL, Reason.CONNECTION_LOST) == outcome(s)
    assert 2 == len(s.sockets.opened)


async def test_after_a_rejection_everything_goes_over_another_connection():
    s = stack()
    body = await warm(s)
    s.core.faults.on_request(faults.previous_response_not_found())
    body = after(await s.turn(body), body)
    first, rejected, again = (attempt.connection for attempt in s.core.log)
    assert first == rejected != again
    await s.turn(body)
    assert again == s.core.log[-1].connection
    await settled()
    assert s.sockets.opened[0].closed


@pytest.mark.parametrize("size", [15_900_000, 16_777_300])
async def test_a_frame_is_as_large_as_the_provider_takes_and_beyond_it_one_post(size):
    s = stack()
    parts = [{"type": "input_image", "image_url": "data:image/png;base64," + "A" * size}]
    picture = {"type": "message", "role": "user", "content": parts}
    await s.turn({**FIRST, "input": [picture]})
    fits = size < 16_000_000
    assert (Mode.WS_FULL if fits else Mode.HTTP_FULL) == s.last.mode
    assert (Reason.NO_BASELINE if fits else Reason.PAYLOAD_TOO_LARGE) == s.last.reason
    assert (1, 1) == (s.last.attempts, len(s.core.log))
    await s.turn({**FIRST, "input": [user("without the picture")]})
    assert Mode.WS_FULL == s.last.mode


async def test_a_compacted_history_that_is_too_large_leaves_the_socket_for_that_turn_only():
    s = stack(Policy(max_frame_bytes=20_000))
    body = await warm(s)
    body = after(await s.turn({**body, "input": [*body["input"], {"type": "compaction_trigger"}]}), body)  # fmt: skip
    summary = [user("x" * 30_000), *body["input"][-2:-1]]
    await s.turn({**FIRST, "input": [*summary, user("go on")]})
    assert (Mode.HTTP_FULL, Reason.PAYLOAD_TOO_LARGE, 1) == (*outcome(s), s.last.attempts)
    await s.turn({**FIRST, "input": [*summary[1:], user("go on")]})
    assert Mode.WS_FULL == s.last.mode


async def test_a_compaction_that_has_to_go_over_http_takes_its_history_along_in_order():
    s = stack()
    body = await warm(s)
    body = after(await s.turn(body), body)
    history = [*body["input"][:-1], function_call("f", "{}", "c1"), output_of("c1")]
    trigger = {**body, "input": [*history, {"type": "compaction_trigger"}]}
    s.upstream = type(s.upstream)("default", s.upstream.base_url, Policy(max_frame_bytes=10))
    await s.turn(trigger)
    assert (Kind.COMPACTION, Mode.HTTP_FULL) == (s.last.kind, s.last.mode)
    sent = s.core.log[-1]
    assert (None, trigger["input"]) == (sent.previous_response_id, sent.body["input"])


@pytest.mark.parametrize("why", ["closed_1009", "upgrade"])
async def test_a_post_in_the_place_of_a_frame_has_nothing_of_the_frame(why):
    s = stack()
    if why == "upgrade":
        s.core.faults.on_upgrade(faults.RefuseUpgrade(503), times=None)
    else:
        s.core.faults.on_request(faults.close(1009))
    frame = {name: value for name, value in FIRST.items() if name != "stream"}
    events = await s.turn({**frame, "type": "response.create"}, transport="ws", socket="w")
    assert "response.completed" == events[-1]["type"]
    sent = s.core.log[-1].body
    assert not {"type", "generate", "previous_response_id", "stream_id"} & sent.keys()
    assert (True, FIRST["input"]) == (sent["stream"], sent["input"])
    assert Mode.HTTP_FULL == s.last.mode


@pytest.mark.parametrize("fresh", [False, True])
async def test_a_send_that_fails_is_made_up_for_where_the_connection_was_an_old_one(fresh):
    s = stack()
    body = await warm(s)
    connect = s.sockets.connect

    async def dead(frame: bytes) -> None:
        raise ConnectionLost(None, sent=False)

    async def connecting(*args):
        connection = await connect(*args)
        if fresh:
            connection.send = dead
        return connection

    s.sockets.connect = connecting
    s.sockets.opened[0].send = dead
    answer = await s.answer(body)
    if fresh:
        assert (502, 1) == (answer.status, len(s.core.log))
    else:
        events = [json.loads(event.data) async for event in answer if event.data]
        assert "response.completed" == events[-1]["type"]
        assert (Mode.WS_FULL, Reason.CONNECTION_LOST) == outcome(s)
    assert None is s.core.log[-1].previous_response_id
    assert 2 == len(s.facts)


@pytest.mark.parametrize(
    ("fault", "status", "end"),
    [
        (faults.Incomplete(), Status.INCOMPLETE, "response.incomplete"),
        (faults.RenameTerminal(), Status.COMPLETED, "response.done"),
    ],
)
async def test_every_good_end_is_an_end_whatever_closes_after_it(fault, status, end):
    s = stack()
    s.core.faults.on_request(fault, faults.CloseAfterwards(1000))
    events = await s.turn(FIRST)
    assert [end] == [event["type"] for event in events if event["type"] == end]
    assert "response.failed" not in [event["type"] for event in events]
    assert (status, 1, 1) == (s.last.status, s.last.attempts, len(s.core.log))
    assert s.last.usage.input_tokens


async def test_losses_in_a_row_lead_to_http_and_back_after_a_while():
    s = stack()
    s.core.faults.on_request(faults.abort())
    await s.turn(FIRST)
    await s.turn(FIRST)
    assert Mode.WS_FULL == s.last.mode  # one loss changes nothing
    s.core.faults.on_request(faults.abort(), times=5)
    for _ in range(5):
        await s.turn(FIRST)
    await s.turn(FIRST)
    assert (Mode.HTTP_FULL, Reason.WS_UNAVAILABLE) == outcome(s)
    s.clock.advance(61)
    await s.turn(FIRST)
    assert Mode.WS_FULL == s.last.mode
    s.core.faults.on_request(faults.abort())
    await s.turn(FIRST)
    await s.turn(FIRST)
    assert Mode.WS_FULL == s.last.mode  # the one that worked began the count anew


async def test_a_bare_server_error_after_output_is_the_clients():
    s = stack()
    raw = {"type": "error", "error": {"type": "server_error", "code": None}, "sequence_number": 2}
    s.core.faults.on_request(faults.ErrorFrame("server_error", None, raw=raw, after=4))
    events = await s.turn(FIRST)
    assert (1, 1) == (len(s.core.log), s.last.attempts)
    assert events[-1]["type"] in ("error", "response.failed")
    assert Status.ERROR == s.last.status


async def test_a_provider_that_is_silent_costs_a_bounded_wait_and_its_connection():
    s = stack(Policy(first_event_timeout=0.0))
    s.core.faults.on_request(faults.silence())
    answer = await s.answer(FIRST)
    assert (504, "first_event_timeout") == (answer.status, s.last.error_code)
    assert s.last.duration_ms is not None
    s.upstream = type(s.upstream)("default", s.upstream.base_url, Policy())
    await s.turn(FIRST)
    assert (Mode.WS_FULL, 2) == (s.last.mode, len(s.sockets.opened))


async def test_five_turns_after_a_drop_are_all_served():
    s = stack()
    body = await warm(s)
    s.core.faults.on_request(faults.abort(after=3))
    await s.turn(body)
    for n in range(5):
        events = await s.turn(body)
        assert "response.completed" == events[-1]["type"]
        assert (Mode.WS_FULL if n == 0 else Mode.WS_INCREMENTAL) == s.last.mode
        body = after(events, body)


@pytest.mark.parametrize("has_websockets", [True, False])
async def test_a_warm_up_in_the_midst_of_a_socket_is_never_a_generation(has_websockets):
    s = stack()
    if not has_websockets:
        s.core.faults.on_upgrade(faults.RefuseUpgrade(426), times=None)
    call = {"transport": "ws", "socket": "w"}
    await s.turn(FIRST, **call)
    made = len(s.core.log)
    warming = {**FIRST, "generate": False, "input": [user("two")]}
    events = await s.turn(warming, **call)
    assert ("response.completed", []) == (events[-1]["type"], events[-1]["response"]["output"])
    assert Kind.WARMUP == s.last.kind
    sent = s.core.log[made:]
    assert [False] * has_websockets == [attempt.body.get("generate") for attempt in sent]
    named = {**FIRST, "previous_response_id": events[-1]["response"]["id"], "input": []}
    events = await s.turn(named, **call)
    assert 1 <= len(events[-1]["response"]["output"])
    assert (Kind.GENERATION, 3) == (s.last.kind, len(s.facts))
    if has_websockets:
        assert s.facts[1].usage.input_tokens is not None
    held = [json.loads(item.text) for item in s.core.held(s.last.response_id).items]
    assert [user("two")] == [item for item in held if item.get("role") == "user"]


async def test_declarations_that_came_with_the_warm_up_are_in_the_post():
    s = stack()
    s.core.faults.on_upgrade(faults.RefuseUpgrade(426), times=None)
    tools = {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "f"}]}  # fmt: skip
    call = {"transport": "ws", "socket": "w"}
    events = await s.turn({**FIRST, "generate": False, "input": [tools]}, **call)
    named = {**FIRST, "previous_response_id": events[-1]["response"]["id"]}
    await s.turn(named, **call)
    assert [tools, *FIRST["input"]] == s.core.log[-1].body["input"]


@pytest.mark.parametrize("transport", ["sse", "http"])
async def test_a_turn_that_fails_on_the_socket_and_succeeds_over_http_is_one_row(transport):
    s = stack()
    s.core.faults.on_request(faults.close(1009))
    await s.turn({**FIRST, "stream": transport == "sse"}, transport=transport)
    [row] = s.facts
    assert (Mode.HTTP_FULL, 2, Status.COMPLETED) == (row.mode, row.attempts, row.status)
    assert row.usage.input_tokens == s.core.log[-1].usage["input_tokens"]
