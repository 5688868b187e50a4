"""Faults from the field: events, usage and times (docs/field-reports.md)."""

from __future__ import annotations

import json

import pytest

from app.demo.provider import faults
from app.demo.provider.replies import function_call, message, reasoning
from engine.errors import ConnectionLost
from engine.model import Mode, Policy, Reason, Status, UsageState
from tests.support.first_turns import FIRST, after, stack, warm
from tests.support.loopback import Stack
from tests.support.provider import make_core

DETAILED = {
    "input_tokens": 84, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 16,
    "output_tokens_details": {"reasoning_tokens": 16}, "total_tokens": 100,
}  # fmt: skip
OFF = Policy(continuation="off")
WIRES = pytest.mark.parametrize("policy", [Policy(), OFF], ids=["ws", "http"])


def tokens(s: Stack) -> tuple:
    usage = s.last.usage
    return usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.reasoning_tokens


@WIRES
@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ([faults.Incomplete()], Status.INCOMPLETE),
        ([faults.ErrorFrame("server_error", shape="failed", after=2)], Status.FAILED),
        ([], Status.COMPLETED),
    ],
)
async def test_usage_counts_however_the_response_ends(policy, fault, status):
    s = stack(policy)
    s.core.faults.on_request(*fault, faults.Usage(DETAILED))
    await s.turn(FIRST)
    assert status is s.last.status
    if status is not Status.FAILED:  # the provider reports none there
        assert (84, 0, 16, 16) == tokens(s)


@WIRES
async def test_a_failure_after_the_head_of_a_good_answer_is_a_failure(policy):
    s = stack(policy)
    s.core.faults.on_request(faults.ErrorFrame("server_error", shape="failed", after=3))
    answer = await s.answer(FIRST)
    async for _ in answer:
        pass
    assert (200, Status.FAILED, "server_error") == (answer.status, s.last.status, s.last.error_code)


@WIRES
async def test_an_answer_that_speaks_of_errors_is_a_good_one(policy):
    s = Stack(make_core(replies=['the error: {"type":"response.failed"}']), policy)
    await s.turn(FIRST)
    assert (Status.COMPLETED, None) == (s.last.status, s.last.error_code)


@WIRES
@pytest.mark.parametrize("value", [None, {}, {"input_tokens": None, "output_tokens": None}])
async def test_usage_that_is_missing_is_unknown(policy, value):
    s = stack(policy)
    s.core.faults.on_request(faults.Usage(value))
    await s.turn(FIRST)
    assert (None, None, None, None) == tokens(s)
    assert (Status.COMPLETED, UsageState.MISSING) == (s.last.status, s.last.usage.state)


async def test_usage_of_zeros_is_a_row_of_zeros():
    s = stack()
    s.core.faults.on_request(
        faults.Usage({"input_tokens": 0, "output_tokens": 0, "total_tokens": 0})
    )
    await s.turn(FIRST)
    assert (0, 0, UsageState.REPORTED) == (
        s.last.usage.input_tokens,
        s.last.usage.output_tokens,
        s.last.usage.state,
    )


async def test_details_that_nobody_knows_leave_the_chain_and_the_rest_of_the_usage_alone():
    s = stack()
    body = await warm(s)
    tail = {**DETAILED, "input_tokens_details": {"cached_tokens": 60, "orchestration_input_tokens": 5}}  # fmt: skip
    for _ in range(3):
        s.core.faults.on_request(faults.Usage(tail))
        body = after(await s.turn(body), body)
        assert (Mode.WS_INCREMENTAL, Reason.OK) == (s.last.mode, s.last.reason)
        assert (84, 60, 24) == (*tokens(s)[:2], s.last.usage.non_cached_tokens)


@WIRES
@pytest.mark.parametrize("stream", [True, False])
async def test_the_row_has_the_usage_that_the_client_received(policy, stream):
    s = stack(policy)
    usage = {**DETAILED, "input_tokens": 2000, "input_tokens_details": {"cached_tokens": 1792}, "total_tokens": 2016}  # fmt: skip
    s.core.faults.on_request(faults.Usage(usage))
    last = (await s.turn({**FIRST, "stream": stream}, transport="sse" if stream else "http"))[-1]
    received = (last["response"] if stream else last)["usage"]
    assert usage == received
    assert (2000, 1792, 16, 16) == tokens(s)


@WIRES
async def test_a_last_event_of_a_strange_shape_is_the_end_of_one_row(policy):
    s = stack(policy)
    strange = {
        "type": "response.completed",
        "response": {
            "id": "resp_1", "status": "completed", "output": [], "new": [{"x": "y" * 57_000}],
            "usage": {"input_tokens": 7, "output_tokens": 2, "output_tokens_details": []},
        },
    }  # fmt: skip
    s.core.faults.on_request(faults.extra_event(strange, after=-1))
    events = await s.turn(FIRST)
    assert strange in events
    assert [(7, 2)] == [(row.usage.input_tokens, row.usage.output_tokens) for row in s.facts]


@WIRES
async def test_a_clean_close_after_one_delta_is_one_row(policy):
    s = stack(policy)
    s.core.faults.on_request(faults.close(1000, after="response.output_text.delta"))
    await s.turn(FIRST)
    assert [Status.ERROR] == [row.status for row in s.facts]


@WIRES
async def test_an_event_that_does_not_parse_is_passed_on_and_ends_nothing(policy, caplog):
    s = stack(policy)
    await s.turn(FIRST, session="before")
    assert "" == caplog.text
    s.core.faults.on_request(faults.garbage(after=2))
    answer = await s.answer(FIRST)
    seen = [event.data async for event in answer]
    assert b'{"type":"response.output_te' in seen
    assert json.loads(seen[-1])["type"] == "response.completed"
    assert 2 * [Status.COMPLETED] == [row.status for row in s.facts]
    assert f"turn {s.last.turn_id}: 1 events could not be read" in caplog.text
    assert "response.output_te" not in caplog.text


async def test_private_events_are_relayed_as_received_and_begin_and_end_nothing():
    s = Stack(make_core("codex", replies=["hello"]))
    limits = {"type": "codex.rate_limits", "rate_limits": {"limit_reached": True, "allowed": False}}
    timing = {"type": "responsesapi.websocket_timing", "timing": {}}
    s.core.faults.on_request(faults.extra_event(limits, after=0))
    s.core.faults.on_request(faults.extra_event(timing, after=3))
    events = await s.turn({**FIRST, "instructions": "be brief"})
    assert (limits, "response.completed") == (events[0], events[-1]["type"])
    assert (Status.COMPLETED, None) == (s.last.status, s.last.error_code)
    assert s.last.usage.input_tokens


async def test_a_stream_without_a_content_type_is_a_stream():
    s = stack(OFF)
    posted = s.http.post

    async def untyped(*args):
        answer = await posted(*args)
        answer.headers = [(name, value) for name, value in answer.headers if name != "content-type"]
        return answer

    s.http.post = untyped
    events = await s.turn(FIRST)
    assert "response.completed" == events[-1]["type"]
    assert (Status.COMPLETED, True) == (s.last.status, s.last.usage.input_tokens is not None)


async def test_a_body_that_breaks_off_inside_an_event_is_a_row_of_a_failure():
    s = stack(OFF)
    posted = s.http.post

    async def broken(*args):
        answer = await posted(*args)
        chunks = answer.chunks

        async def some():
            n = 0
            async for chunk in chunks():
                n += 1
                if n == 3:
                    yield chunk[: len(chunk) // 2]
                    raise ConnectionLost(None, sent=True)
                yield chunk

        answer.chunks = some
        return answer

    s.http.post = broken
    events = await s.turn(FIRST)
    assert "response.failed" == events[-1]["type"]
    assert [(Status.ERROR, "connection_lost")] == [(r.status, r.error_code) for r in s.facts]


async def test_a_terminal_event_that_comes_twice_is_counted_once():
    s = stack()
    body, total = FIRST, 0
    for n in range(3):
        if n == 2:
            again = {
                "type": "response.completed",
                "response": {"id": s.last.response_id, "status": "completed", "usage": DETAILED},
            }
            s.core.faults.on_request(faults.extra_event(again, after=0))
        body = after(await s.turn(body, transport="ws", socket="w"), body)
        total += s.core.log[-1].usage["total_tokens"]
    assert 3 == len({row.response_id for row in s.facts}) == len(s.facts)
    assert total == sum(row.usage.input_tokens + row.usage.output_tokens for row in s.facts)


# --- times ----------------------------------------------------------------------------------------


def timed(reply, times: dict[str, float], after_all: float = 6.0) -> Stack:
    """Each first event of a type is received so many seconds after the request was."""
    s = Stack(make_core(replies=[reply]))
    connect = s.sockets.connect
    begin = s.clock.monotonic()

    async def connecting(*args):
        connection = await connect(*args)
        receive = connection.receive

        async def late() -> bytes:
            data = await receive()
            due = times.get(json.loads(data)["type"])
            if due is not None:
                s.clock.advance(max(0.0, begin + due - s.clock.monotonic()))
            return data

        connection.receive = late
        return connection

    s.sockets.connect = connecting
    return s


CREATED, ADDED, TEXT = (
    "response.created",
    "response.output_item.added",
    "response.output_text.delta",
)
ARGUMENTS, END = "response.function_call_arguments.delta", "response.completed"


@pytest.mark.parametrize(
    ("reply", "times", "ttft"),
    [
        pytest.param(
            [reasoning("gA"), message("hello")], {CREATED: 0.2, ADDED: 0.3, TEXT: 5.0, END: 6.0},
            5000.0, id="text after reasoning",
        ),
        pytest.param([], {CREATED: 0.2, END: 6.0}, None, id="nothing"),
    ],
)  # fmt: skip
async def test_the_first_token_is_the_first_output_and_never_the_whole_time(reply, times, ttft):
    s = timed(reply, times)
    answer = await s.answer(FIRST)
    async for _ in answer:
        pass
    told = (s.last.first_event_ms, s.last.ttft_ms, s.last.duration_ms)
    assert (200.0, ttft, 6000.0) == pytest.approx(told, abs=0.5)


async def test_a_tool_call_is_an_output_too():
    times = {CREATED: 0.2, ADDED: 1.0, ARGUMENTS: 2.0, END: 6.0}
    s = timed([function_call("f", '{"a":1}', "c1")], times)
    answer = await s.answer(FIRST)
    async for _ in answer:
        pass
    assert s.last.ttft_ms in (pytest.approx(1000.0, abs=0.5), pytest.approx(2000.0, abs=0.5))


async def test_the_time_to_the_first_token_begins_with_the_clients_request():
    s = stack()
    connect = s.sockets.connect

    async def slow(*args):
        s.clock.advance(3.0)
        return await connect(*args)

    s.sockets.connect = slow
    call = s.call(FIRST)
    s.clock.advance(2.0)  # it waited before it was the engine's
    answer = await s.driver.run(call)
    async for _ in answer:
        pass
    assert (5000.0, 3000.0) == pytest.approx((s.last.ttft_ms, s.last.connect_ms), abs=0.5)
    assert 2000.0 == pytest.approx(s.last.queue_ms, abs=0.5)
