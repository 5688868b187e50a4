import asyncio
import json

import pytest

from engine.driver import Event
from engine.model import Status
from tests.support.fake_driver import AUTH, Edge, plain, stream

CREATED = {"type": "response.created", "response": {"id": "r1"}}
DONE = {"type": "response.completed", "response": {"id": "r1"}}


def create(**fields):
    return {"type": "response.create", "model": "m", "input": "hi"} | fields


async def test_a_create_is_a_turn_and_its_events_are_frames_byte_for_byte():
    data = b'{ "type":"response.created", "text":"\xe5\x8c\x97" }'
    edge = Edge(stream(Event(data), DONE))
    async with edge.socket(headers=[AUTH, ("session-id", "s")]) as socket:
        await socket.accepted()
        socket.say(create(stream=True))
        assert (await socket.next())["text"] == data.decode()
        assert await socket.event() == DONE
    call = edge.call
    assert json.loads(call.body) == create(stream=True)
    assert (call.transport, call.session) == ("ws", "s")
    assert edge.driver.closed_sockets == [call.socket]


async def test_an_upgrade_is_accepted_before_anything_is_asked_of_the_engine():
    edge = Edge()
    async with edge.socket() as socket:
        await socket.accepted()
        assert edge.driver.calls == []


async def test_the_bytes_of_a_frame_reach_the_engine_as_they_are():
    text = '{"type" : "response.create", "input":"北\\u00e9"}'
    edge = Edge(stream(DONE))
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(text)
        await socket.event()
    assert edge.call.body == text.encode()


async def test_creates_run_in_order_one_after_the_other():
    go_on = asyncio.Event()
    edge = Edge(stream({"type": "a1"}, go_on.wait, {"type": "a2"}), stream({"type": "b1"}))
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(create(input="a"))
        socket.say(create(input="b"))
        assert await socket.event() == {"type": "a1"}
        assert len(edge.driver.calls) == 1
        go_on.set()
        assert [await socket.event() for _ in range(2)] == [{"type": "a2"}, {"type": "b1"}]
    first, second = edge.driver.calls
    assert first.socket == second.socket
    assert first.turn_id != second.turn_id


async def test_a_queued_create_was_received_when_it_came():
    go_on = asyncio.Event()
    edge = Edge(stream({"type": "a1"}, go_on.wait), stream(DONE))
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(create())
        await socket.event()
        received = edge.clock.monotonic()
        socket.say(create())
        await socket.taken()
        edge.clock.advance(7)
        go_on.set()
        await socket.event()
    assert edge.call.received_mono == received


async def test_each_frame_names_its_own_turn():
    """CASES 57: what the upgrade says of a turn holds for none of its frames."""
    upgrade = ("x-codex-turn-metadata", '{"turn_id":"","request_kind":"prewarm"}')
    edge = Edge(stream(DONE), stream(DONE))
    async with edge.socket(headers=[AUTH, upgrade, ("thread-id", "t")]) as socket:
        await socket.accepted()
        for turn in ("t1", "t2"):
            socket.say(create(client_metadata={"turn_id": turn}))
            await socket.event()
    assert [call.turn_group for call in edge.driver.calls] == ["t1", "t2"]
    assert edge.call.headers == (AUTH, ("thread-id", "t"))


async def test_the_reset_of_an_upgrade_is_asked_for_once():
    edge = Edge(stream(DONE), stream(DONE))
    async with edge.socket(headers=[("x-warmline-epoch-reset", "summarize")]) as socket:
        await socket.accepted()
        for _ in range(2):
            socket.say(create())
            await socket.event()
    assert [call.epoch_reset for call in edge.driver.calls] == ["summarize", None]


# --- errors ------------------------------------------------------------------------------------


async def test_an_error_is_nested_and_carries_its_status():
    body = {"error": {"message": "m", "type": "t", "code": "c", "param": None}}
    async with Edge(plain(429, body)).socket() as socket:
        await socket.accepted()
        socket.say(create())
        assert await socket.event() == {"type": "error", "status": 429, **body}


async def test_the_providers_own_error_frame_is_relayed_as_it_is():
    frame = b'{"type": "error", "status":400, "error":{"code":"previous_response_not_found"}}'
    async with Edge(plain(400, {"error": {}}, frame=frame)).socket() as socket:
        await socket.accepted()
        socket.say(create())
        assert (await socket.next())["text"] == frame.decode()


async def test_a_complete_json_answer_is_the_terminal_event():
    async with Edge(plain(200, {"id": "r1"})).socket() as socket:
        await socket.accepted()
        socket.say(create())
        assert await socket.event() == {"type": "response.completed", "response": {"id": "r1"}}


async def test_comments_of_an_http_upstream_are_no_frames():
    async with Edge(stream(Event(b"", b": ping\n\n"), DONE)).socket() as socket:
        await socket.accepted()
        socket.say(create())
        assert await socket.event() == DONE


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("no json", "invalid_json"),
        ("[1]", "invalid_json"),
        ("", "invalid_json"),
        (b'{"type":"response.create"}', "binary_frame"),
        ('{"model":"m"}', "missing_type"),
        ('{"type":7}', "missing_type"),
    ],
)
async def test_a_frame_that_is_no_request_gets_an_error_and_the_socket_goes_on(frame, code):
    edge = Edge(stream(DONE))
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(frame)
        error = await socket.event()
        assert (error["type"], error["status"], error["error"]["code"]) == ("error", 400, code)
        socket.say(create())
        assert await socket.event() == DONE
    assert [(row.status, row.error_code) for row in edge.facts] == [(Status.REFUSED, code)]


async def test_a_frame_beyond_the_limit_is_413_and_a_row():
    edge = Edge(max_body_bytes=60)
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(create(input="x" * 60))
        assert (await socket.event())["status"] == 413
    assert [row.http_status for row in edge.facts] == [413]
    assert edge.facts[0].client_transport == "ws"


async def test_a_fault_of_the_engine_is_an_error_frame_that_quotes_nothing(caplog):
    edge = Edge(RuntimeError("canary"), stream(DONE))
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(create())
        error = await socket.event()
        assert (error["status"], error["error"]["code"]) == (500, "internal_error")
        socket.say(create())
        assert await socket.event() == DONE
    assert "canary" not in caplog.text


# --- the client leaves -------------------------------------------------------------------------


async def test_a_client_that_leaves_in_mid_turn_is_told_to_the_engine_and_the_rest_is_drained():
    drained = []

    async def left():
        await edge.driver.has_left.wait()

    async def end():
        drained.append(True)

    edge = Edge(stream(CREATED, left, DONE, end))
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(create())
        assert await socket.event() == CREATED
        socket.leave()
        await socket.task
    assert drained == [True]
    assert len(socket.sent) == 2
    assert edge.driver.closed_sockets == [edge.call.socket]


async def test_the_engine_hears_of_a_departure_before_the_first_event():
    async def silent(_call):
        await edge.driver.has_left.wait()
        return plain(502, {"error": {}})

    edge = Edge(silent)
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(create())
        await edge.driver.called.wait()
    assert edge.driver.left == [edge.call.turn_id]


async def test_what_still_waits_when_the_client_leaves_is_never_sent_and_is_a_row():
    async def left():
        await edge.driver.has_left.wait()

    edge = Edge(stream(CREATED, left))
    async with edge.socket(headers=[("session-id", "s")]) as socket:
        await socket.accepted()
        socket.say(create())
        await socket.event()
        socket.say(create(input="waiting"))
        await socket.taken()
        socket.leave()
        await socket.task
    assert len(edge.driver.calls) == 1
    [row] = edge.facts
    assert (row.status, row.attempts, row.session) == (Status.CLIENT_CLOSED, 0, "s")


async def test_a_send_that_fails_means_that_the_client_left():
    go_on = asyncio.Event()
    edge = Edge(stream(CREATED, go_on.wait, DONE))
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(create())
        await socket.event()
        socket.gone = True
        go_on.set()
        await edge.driver.has_left.wait()
    assert len(socket.sent) == 2


# --- bounds ------------------------------------------------------------------------------------


async def test_more_queued_bytes_than_the_limit_are_refused_in_their_place():
    go_on = asyncio.Event()
    edge = Edge(stream(CREATED, go_on.wait), stream(DONE), max_body_bytes=200)
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(create())
        await socket.event()
        socket.say(create(input="x" * 80))
        socket.say(create(input="y" * 80))
        await socket.taken()
        go_on.set()
        assert await socket.event() == DONE
        error = await socket.event()
        assert (error["status"], error["error"]["code"]) == (429, "too_many_queued_requests")
    assert len(edge.driver.calls) == 2


async def test_a_flood_of_frames_ends_the_socket():
    hold = asyncio.Event()
    edge = Edge(stream(CREATED, hold.wait))
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(create())
        await socket.event()
        for _ in range(300):
            socket.say("no json")
        await edge.driver.has_left.wait()
        hold.set()
        assert await socket.next() == {"type": "websocket.close", "code": 1008}
    assert len(edge.driver.calls) == 1


async def test_a_fault_of_the_gateway_itself_closes_the_socket_and_quotes_nothing(
    caplog, monkeypatch
):
    async def broken(*_arguments):
        raise RuntimeError("canary")

    monkeypatch.setattr("app.gateway.tunnel.run", broken)
    edge = Edge()
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say({"type": "response.steer"})
        assert await socket.next() == {"type": "websocket.close", "code": 1011}
    assert "canary" not in caplog.text
    assert len(edge.driver.closed_sockets) == 1


async def test_a_client_that_leaves_while_its_request_is_read_has_asked_for_nothing():
    edge = Edge()
    reading, go_on = asyncio.Event(), asyncio.Event()
    read = edge.driver.read

    async def slow(body, **whose):
        reading.set()
        await go_on.wait()
        return await read(body, **whose)

    edge.driver.read = slow
    async with edge.socket() as socket:
        await socket.accepted()
        socket.say(create())
        await reading.wait()
        socket.leave()
        await socket.taken()
        go_on.set()
    assert [Status.CLIENT_CLOSED] == [row.status for row in edge.facts]
    assert [] == edge.driver.calls
