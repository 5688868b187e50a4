"""The shipped fakes keep the rules that matter to a history."""

from __future__ import annotations

import json

import pytest

from engine.errors import ConnectFailed, ConnectionLost, UpgradeRejected
from engine.testing import (
    Fail,
    Incomplete,
    Lose,
    ManualClock,
    ScriptedUpstream,
    function_call,
    message,
    reasoning,
)
from tests.support.embedded import gave, said


async def asked(connection, given, previous=None) -> list[dict]:
    await connection.send(json.dumps({"input": given, "previous_response_id": previous}).encode())
    return [json.loads(await connection.receive()) for _ in range(len(connection._steps))]


async def posted(upstream, given, previous=None) -> tuple[int, str]:
    body = json.dumps({"input": given, "previous_response_id": previous}).encode()
    answer = await upstream.post("url", [], body, 1.0)
    return answer.status, b"".join([chunk async for chunk in answer.chunks()]).decode()


def test_the_clock_stands_still_until_it_is_moved():
    clock = ManualClock(10.0, 5.0)
    assert (10.0, 5.0) == (clock.now(), clock.monotonic())
    clock.advance(2.5)
    assert (12.5, 7.5) == (clock.now(), clock.monotonic())
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)


@pytest.mark.parametrize(
    ("reply", "output"),
    [
        ("hi", [message("hi")]),
        (function_call("f", "c"), [function_call("f", "c")]),
        ([reasoning("gA", "why"), message("a")], [reasoning("gA", "why"), message("a")]),
        (Incomplete([message("cut")]), [message("cut")]),
    ],
)
async def test_each_turn_is_answered_with_the_next_reply(reply, output):
    upstream = ScriptedUpstream([reply])
    connection = await upstream.connect("url", [("a", "b")], 1.0)
    events = await asked(connection, [said("hi")])
    kind = "response.incomplete" if isinstance(reply, Incomplete) else "response.completed"
    assert ("response.created", kind) == (events[0]["type"], events[-1]["type"])
    answered = events[-1]["response"]["output"]
    assert output == [{k: v for k, v in item.items() if k != "id"} for item in answered]
    assert answered == [e["item"] for e in events if e["type"] == "response.output_item.done"]
    assert [said("hi"), *answered] == upstream.held[events[-1]["response"]["id"]]
    assert [[("a", "b")]] == upstream.handshakes


async def test_when_the_script_is_over_every_turn_is_done():
    connection = await ScriptedUpstream().connect("url", [], 1.0)
    events = await asked(connection, "a string")
    assert "done" == events[-1]["response"]["output"][0]["content"][0]["text"]


async def test_a_connection_continues_its_latest_response_and_no_other():
    upstream = ScriptedUpstream()
    one, other = await upstream.connect("url", [], 1.0), await upstream.connect("url", [], 1.0)
    first = (await asked(one, [said("a")]))[-1]["response"]["id"]
    for connection in (other, one):
        (error,) = await asked(connection, [said("b")], "resp_unknown")
        assert (400, "previous_response_not_found") == (error["status"], error["error"]["code"])
    (error,) = await asked(one, [said("b")], first)
    assert "previous_response_not_found" == error["error"]["code"]  # the error evicted it
    first = (await asked(one, [said("a")]))[-1]["response"]["id"]
    second = (await asked(one, [said("b")], first))[-1]["response"]["id"]
    assert [said("a"), said("b")] == [i for i in upstream.held[second] if i.get("role") == "user"]
    (error,) = await asked(one, [said("c")], first)
    assert "error" == error["type"]


async def test_http_continues_nothing():
    upstream = ScriptedUpstream()
    status, text = await posted(upstream, [said("a")])
    assert (200, True) == (status, "response.completed" in text)
    assert (400, True) == (
        (result := await posted(upstream, [said("b")], "resp_1"))[0],
        "previous_response_not_found" in result[1],
    )
    assert [None, None] == [sent.connection for sent in upstream.sent]


async def test_a_call_needs_an_output():
    connection = await ScriptedUpstream().connect("url", [], 1.0)
    call = function_call("f", "c1")
    (error,) = await asked(connection, [said("a"), call])
    assert "missing_tool_output" == error["error"]["code"]
    assert "response.completed" == (await asked(connection, [call, gave("c1")]))[-1]["type"]


async def test_faults_end_a_response_where_they_are_told_to():
    upstream = ScriptedUpstream(
        [Fail("slow_down", status=503), Fail("bad", after=2), Lose(after=1)]
    )
    connection = await upstream.connect("url", [], 1.0)
    (error,) = await asked(connection, "a")
    assert (503, "slow_down") == (error["status"], error["error"]["code"])
    events = await asked(connection, "a")
    assert (3, "response.failed", "bad") == (
        len(events),
        events[-1]["type"],
        events[-1]["response"]["error"]["code"],
    )
    await connection.send(b'{"input":"a"}')
    assert "response.created" == json.loads(await connection.receive())["type"]
    with pytest.raises(ConnectionLost):
        await connection.receive()
    with pytest.raises(ConnectionLost):
        await connection.send(b'{"input":"a"}')
    assert {} == upstream.held


async def test_a_post_can_be_refused_and_lost():
    upstream = ScriptedUpstream([Fail("slow_down", status=503), Lose(after=1)])
    status, text = await posted(upstream, "a")
    assert (503, "slow_down") == (status, json.loads(text)["error"]["code"])
    with pytest.raises(ConnectionLost):
        await posted(upstream, "a")


async def test_connects_fail_as_often_as_told():
    upstream = ScriptedUpstream()
    upstream.refuse()
    upstream.refuse(status=426)
    with pytest.raises(ConnectFailed):
        await upstream.connect("url", [], 1.0)
    with pytest.raises(UpgradeRejected) as rejected:
        await upstream.connect("url", [], 1.0)
    assert 426 == rejected.value.status
    assert not (await upstream.connect("url", [], 1.0)).closed


async def test_dropped_connections_are_closed_and_answer_no_ping():
    upstream = ScriptedUpstream()
    connection = await upstream.connect("url", [], 1.0)
    assert await connection.ping(1.0)
    upstream.drop()
    assert not await connection.ping(1.0)
    with pytest.raises(ConnectionLost):
        await connection.receive()
