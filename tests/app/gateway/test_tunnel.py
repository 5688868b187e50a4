import asyncio
import json

import pytest

from app.gateway.handover import SharedConnection
from engine.errors import ConnectFailed, UpgradeRejected
from engine.model import Mode, Reason, Status
from tests.support.fake_driver import AUTH, Edge, FakeConnection, FakeSockets, stream

CREATED = {"type": "response.created", "response": {"id": "r1"}}
DONE = {"type": "response.completed", "response": {"id": "r1", "status": "completed"}}
LANE = {"type": "response.create", "stream_id": "a", "model": "m", "input": "hi"}


def edge_with(*steps, script=()):
    return Edge(*script, sockets=FakeSockets(*steps))


async def test_frames_pass_unchanged_both_ways():
    up = FakeConnection()
    edge = edge_with(up)
    text = '{ "type":"response.create",  "stream_id":"a", "input":"北\\u00e9" }'
    async with edge.socket(headers=[AUTH, ("accept", "x"), ("thread-id", "t")]) as socket:
        await socket.accepted()
        socket.say(text)
        up.say({"type": "response.created", "stream_id": "a", "unknown": 1})
        event = await socket.event()
    assert up.sent == [text.encode()]
    assert event == {"type": "response.created", "stream_id": "a", "unknown": 1}
    [(url, headers)] = edge.sockets.opened
    assert url == "ws://upstream.test/v1/responses"
    assert headers == {"authorization": "Bearer sk-test", "thread-id": "t"}
    assert edge.driver.calls == []


@pytest.mark.parametrize("kind", ["response.steer", "response.interrupt", "anything.new"])
async def test_any_frame_but_a_create_makes_the_socket_a_tunnel(kind):
    up = FakeConnection()
    edge = edge_with(up, script=[stream(DONE)])
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say({"type": "response.create"})
        assert await socket.event() == DONE
        socket.say({"type": kind, "response_id": "r1"})
        await up.was_sent.wait()
        socket.say({"type": "response.create"})
        up.say({"type": "ok"})
        await socket.event()
        await socket.taken()
    assert [json.loads(frame)["type"] for frame in up.sent] == [kind, "response.create"]
    assert len(edge.driver.calls) == 1


async def test_the_tunnel_ends_with_its_upstream_and_so_does_the_socket():
    up = FakeConnection()
    async with edge_with(up).socket() as socket:
        await socket.accepted()
        socket.say(LANE)
        up.end(1001)
        assert await socket.next() == {"type": "websocket.close", "code": 1001}
        await socket.task


async def test_an_end_without_a_code_is_told_as_1011():
    up = FakeConnection()
    async with edge_with(up).socket() as socket:
        await socket.accepted()
        socket.say(LANE)
        up._incoming.put_nowait(0)
        assert await socket.next() == {"type": "websocket.close", "code": 1011}


async def test_the_upstream_connection_ends_with_the_client():
    up = FakeConnection()
    async with edge_with(up).socket() as socket:
        await socket.accepted()
        socket.say(LANE)
        await up.was_sent.wait()
    assert up.closed


async def test_its_turns_are_rows_with_the_mode_of_their_frames():
    up = FakeConnection()
    edge = edge_with(up)
    async with edge.socket(headers=[AUTH, ("thread-id", "t")]) as socket:
        await socket.accepted()
        socket.say(LANE)
        await up.was_sent.wait()
        lane = {"stream_id": "a"}
        up.say(CREATED | lane, DONE | lane)
        await socket.event()
        await socket.event()
        up.was_sent.clear()
        socket.say(LANE | {"previous_response_id": "r1"})
        await up.was_sent.wait()
        up.say(CREATED | lane)
        await socket.event()
    first, second = edge.facts
    assert (first.mode, first.reason, first.status) == (
        Mode.WS_FULL,
        Reason.CONTINUATION_OFF,
        Status.COMPLETED,
    )
    assert (second.mode, second.reason, second.status) == (
        Mode.WS_INCREMENTAL,
        Reason.CLIENT_ANCHORED,
        Status.CLIENT_CLOSED,
    )
    assert first.session == second.session == "t"


async def test_a_refused_upgrade_reaches_the_client_with_its_status_and_the_socket_goes_on():
    body = b'{"error":{"message":"m","code":"c"}}'
    up = FakeConnection()
    edge = edge_with(UpgradeRejected(401, [], body), ConnectFailed("refused"), up)
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(LANE)
        error = await socket.event()
        assert (error["status"], error["error"]["code"]) == (401, "c")
        socket.say(LANE)
        error = await socket.event()
        assert (error["status"], error["error"]["code"]) == (502, "upstream_unreachable")
        socket.say(LANE)
        await up.was_sent.wait()
    assert [row.status for row in edge.facts] == [Status.ERROR, Status.ERROR, Status.CLIENT_CLOSED]
    assert [row.http_status for row in edge.facts] == [401, 502, None]


async def test_a_frame_that_is_refused_is_a_row_and_does_not_end_the_tunnel():
    up = FakeConnection()
    edge = edge_with(up)
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(LANE)
        socket.say(b"binary")
        assert (await socket.event())["error"]["code"] == "binary_frame"
        up.say(CREATED)
        assert await socket.event() == CREATED
    assert len(up.sent) == 1
    refused = [row.error_code for row in edge.facts if row.status is Status.REFUSED]
    assert ["binary_frame"] == refused


# --- the connection that serves the socket -----------------------------------------------------


def serving(up, *, ends=None):
    """A turn of the engine's on this connection: its frame, its first event, and then its end."""
    connection = SharedConnection(up)

    async def step(call):
        await connection.send(call.body)
        return stream(CREATED, *([ends.wait] if ends else []), DONE)

    return step


async def test_the_tunnel_takes_the_connection_that_served_the_socket():
    up = FakeConnection()
    edge = edge_with(script=[serving(up)])
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say({"type": "response.create"})
        assert [await socket.event() for _ in range(2)] == [CREATED, DONE]
        up.was_sent.clear()
        socket.say(LANE | {"previous_response_id": "r1"})
        await up.was_sent.wait()
    assert (len(up.sent), edge.sockets.opened) == (2, [])
    assert [row.reason for row in edge.facts] == [Reason.CLIENT_ANCHORED]


@pytest.mark.parametrize("kind", ["response.interrupt", "response.steer"])
async def test_a_frame_about_the_running_response_goes_to_its_connection_at_once(kind):
    up, ends = FakeConnection(), asyncio.Event()
    edge = edge_with(script=[serving(up, ends=ends)])
    async with edge.socket(headers=[AUTH, ("thread-id", "t")]) as socket:
        await socket.accepted()
        socket.say({"type": "response.create"})
        assert await socket.event() == CREATED
        up.was_sent.clear()
        socket.say({"type": kind, "response_id": "r1"})
        await up.was_sent.wait()
        assert json.loads(up.sent[-1])["type"] == kind
        ends.set()
        assert await socket.event() == DONE
        up.say(CREATED, DONE)  # the successor that steering brings
        assert [await socket.event() for _ in range(2)] == [CREATED, DONE]
        socket.say({"type": "response.create", "previous_response_id": "r1"})
        await socket.taken()
    assert [row.session for row in edge.facts] == ["t", "t"]
    assert len(edge.driver.calls) == 1


async def test_a_connection_that_ends_with_the_running_response_makes_no_tunnel():
    up, ends = FakeConnection(), asyncio.Event()
    edge = edge_with(script=[serving(up, ends=ends), stream(DONE)])
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say({"type": "response.create"})
        await socket.event()
        up.was_sent.clear()
        socket.say({"type": "response.interrupt"})
        await up.was_sent.wait()
        await up.close()
        ends.set()
        assert await socket.event() == DONE
        socket.say({"type": "response.create"})
        assert await socket.event() == DONE
    assert len(edge.driver.calls) == 2


async def test_a_frame_that_comes_before_the_turn_has_a_connection_waits_for_its_end():
    up, ends = FakeConnection(), asyncio.Event()

    async def over_http(_call):
        await ends.wait()
        return stream(DONE)

    edge = edge_with(up, script=[over_http])
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say({"type": "response.create"})
        await edge.driver.called.wait()
        socket.say({"type": "response.interrupt"})
        await socket.taken()
        assert up.sent == []
        ends.set()
        assert await socket.event() == DONE
        await up.was_sent.wait()
    assert len(edge.sockets.opened) == 1


async def test_an_upstream_that_is_lost_while_a_frame_is_sent_ends_the_tunnel():
    up = FakeConnection()
    edge = edge_with(up)
    async with edge.socket() as socket:
        await socket.accepted()
        up.closed = True
        socket.say(LANE)
        assert await socket.next() == {"type": "websocket.close", "code": 1011}
    assert [row.status for row in edge.facts] == [Status.ERROR]
