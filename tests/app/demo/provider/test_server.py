"""The provider on a port, as raw clients see it."""

import asyncio
import gzip
import json
import time

import aiohttp
import pytest
import zstandard
from aiohttp import WSMsgType

from app.demo.provider.actions import Gate
from app.demo.provider.faults import (
    AbortUpgrade,
    ErrorFrame,
    HangUpgrade,
    Hold,
    HttpError,
    RefuseUpgrade,
    SseForm,
    abort,
    close,
    garbage,
    silence,
    stall,
)
from app.demo.provider.latency import Latency
from tests.support.provider import AUTH, Now, frame, provider, provider_thread

BODY = {"model": "gpt-5.5", "input": "hi"}
LOST = (aiohttp.ClientError, ConnectionError)


async def take(socket, until=("response.completed", "error")):
    """Events up to the terminal one."""
    out = []
    async with asyncio.timeout(10):
        async for message in socket:
            out.append(json.loads(message.data))
            if out[-1]["type"] in until:
                break
    return out


@pytest.fixture
async def http():
    async with aiohttp.ClientSession(headers=AUTH) as session:
        yield session


# --- HTTP --------------------------------------------------------------------------------------


async def test_a_post_is_answered_in_json(http):
    async with provider(replies=["hello"]) as up:
        async with http.post(f"{up.url}/responses", json=BODY) as answer:
            body = await answer.json()
        assert (answer.status, body["output"][0]["content"][0]["text"]) == (200, "hello")


async def test_a_stream_is_served_byte_for_byte(http):
    async with provider(replies=["hello"]) as up:
        async with http.post(f"{up.url}/responses", json={**BODY, "stream": True}) as answer:
            raw = await answer.read()
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        blocks = raw.decode().split("\n\n")
        assert blocks.pop() == ""
        for number, block in enumerate(blocks):
            event, data = block.split("\n")
            value = json.loads(data.removeprefix("data: "))
            assert event == f"event: {value['type']}"
            assert value["sequence_number"] == number
        assert value["response"]["output"][0]["content"][0]["text"] == "hello"


@pytest.mark.parametrize(
    ("form", "end"),
    [
        (SseForm(newline="\r\n"), b"}\r\n\r\n"),
        (SseForm(final_newline=False), b"}"),
        (SseForm(done_line=True), b"data: [DONE]\n\n"),
        (SseForm(done_line=True, final_newline=False), b"data: [DONE]\n\n"),
    ],
)
async def test_the_end_of_a_stream_in_each_form(http, form, end):
    async with provider(replies=["hello"]) as up:
        up.core.faults.on_request(form)
        async with http.post(f"{up.url}/responses", json={**BODY, "stream": True}) as answer:
            raw = await answer.read()
        assert raw.endswith(end)
        assert raw.count(b"response.completed") >= 1


async def test_a_stream_can_come_without_content_type(http):
    async with provider(replies=["hello"]) as up:
        up.core.faults.on_request(SseForm(content_type=None))
        async with http.post(f"{up.url}/responses", json={**BODY, "stream": True}) as answer:
            await answer.read()
        assert "content-type" not in answer.headers


async def test_a_body_that_does_not_parse_in_the_midst(http):
    async with provider(replies=["hello"]) as up:
        up.core.faults.on_request(garbage("{oops", after=1))
        async with http.post(f"{up.url}/responses", json={**BODY, "stream": True}) as answer:
            assert b"\ndata: {oops\n\n" in b"\n" + await answer.read()


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [("gzip", gzip.compress), ("zstd", zstandard.ZstdCompressor().compress)],
)
async def test_a_compressed_body_is_read(http, encoding, encode):
    async with provider() as up:
        headers = {"content-encoding": encoding, "content-type": "application/json"}
        data = encode(json.dumps(BODY).encode())
        async with http.post(f"{up.url}/responses", data=data, headers=headers) as answer:
            assert answer.status == 200
        assert up.core.log[0].body == BODY


async def test_an_unknown_encoding_is_415(http):
    async with provider() as up:
        headers = {"content-encoding": "rot13"}
        async with http.post(f"{up.url}/responses", data=b"x", headers=headers) as answer:
            assert answer.status == 415


async def test_a_scripted_status_reaches_the_client_with_its_headers(http):
    async with provider() as up:
        up.core.faults.on_request(HttpError(429, headers=(("Retry-After", "7"),)))
        async with http.post(f"{up.url}/responses", json=BODY) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (429, "7")


@pytest.mark.parametrize("stream", [True, False])
async def test_an_abort_before_any_event_breaks_the_request(http, stream):
    async with provider() as up:
        up.core.faults.on_request(abort())
        with pytest.raises(LOST):
            await http.post(f"{up.url}/responses", json={**BODY, "stream": stream})
        assert up.core.log[0].outcome == "aborted"


async def test_an_abort_in_mid_stream_breaks_the_body(http):
    async with provider() as up:
        up.core.faults.on_request(abort(after=3))
        async with http.post(f"{up.url}/responses", json={**BODY, "stream": True}) as answer:
            with pytest.raises(aiohttp.ClientPayloadError):
                await answer.read()


async def test_a_clean_cut_ends_the_body_without_a_terminal_event(http):
    async with provider() as up:
        up.core.faults.on_request(close(after=3))
        async with http.post(f"{up.url}/responses", json={**BODY, "stream": True}) as answer:
            raw = await answer.read()
        assert raw.count(b"\n\n") == 3
        assert b"response.completed" not in raw


async def test_a_client_that_leaves_a_silent_request_is_noticed(http):
    async with provider() as up:
        up.core.faults.on_request(silence())
        request = asyncio.create_task(http.post(f"{up.url}/responses", json=BODY))
        await up.wait_until(lambda: bool(up.core.log) and up.core.log[0].outcome == "hung")
        request.cancel()


async def test_a_held_stream_goes_on_when_the_gate_opens(http):
    gate = Gate()
    async with provider(replies=["hello"]) as up:
        up.core.faults.on_request(Hold(gate, after=2))
        async with http.post(f"{up.url}/responses", json={**BODY, "stream": True}) as answer:
            await answer.content.readuntil(b"response.in_progress")
            assert up.core.log[0].outcome == "running"
            gate.open()
            assert b"response.completed" in await answer.read()


# --- WebSocket ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/v1/responses", "/codex/responses", "/backend-api/codex/responses"]
)
async def test_a_socket_is_served_under_every_path(http, path):
    async with provider(replies=["one", "two"]) as up:
        async with http.ws_connect(up.origin + path) as socket:
            await socket.send_str(frame())
            first = (await take(socket))[-1]["response"]
            await socket.send_str(frame("more", previous_response_id=first["id"]))
            second = (await take(socket))[-1]["response"]
        assert len(up.core.transcripts[second["id"]]) == 4
        assert up.core.upgrades[0].path == path


@pytest.mark.parametrize("status", [401, 403, 404, 426, 429, 500, 503])
async def test_a_refused_upgrade_shows_its_status(http, status):
    async with provider() as up:
        up.core.faults.on_upgrade(RefuseUpgrade(status, headers=(("Retry-After", "5"),)))
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(f"{up.url}/responses")
        assert refused.value.status == status
        assert refused.value.headers["retry-after"] == "5"


async def test_an_upgrade_without_a_key_is_401(http):
    async with provider() as up, aiohttp.ClientSession() as anonymous:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await anonymous.ws_connect(f"{up.url}/responses")
        assert refused.value.status == 401


async def test_an_upgrade_can_be_dropped(http):
    async with provider() as up:
        up.core.faults.on_upgrade(AbortUpgrade(), times=None)  # this client tries twice
        with pytest.raises(LOST):
            await http.ws_connect(f"{up.url}/responses")


async def test_an_upgrade_can_stay_unanswered(http):
    async with provider() as up:
        up.core.faults.on_upgrade(HangUpgrade())
        attempt = asyncio.create_task(http.ws_connect(f"{up.url}/responses"))
        await up.wait_until(lambda: bool(up.core.upgrades))
        assert not attempt.done()
        attempt.cancel()


@pytest.mark.parametrize("code", [1000, 1001, 1009, 1011, 4402])
@pytest.mark.parametrize("after", [0, 2])
async def test_a_close_reaches_the_client_with_its_code(http, code, after):
    async with provider() as up:
        up.core.faults.on_request(close(code, after=after))
        async with http.ws_connect(f"{up.url}/responses") as socket:
            await socket.send_str(frame())
            assert len(await take(socket)) == after
            assert socket.close_code == code


@pytest.mark.parametrize("fault", [abort(after=2), close(1006, after=2)])
async def test_a_reset_is_no_close_frame(http, fault):
    async with provider() as up:
        up.core.faults.on_request(fault)
        async with http.ws_connect(f"{up.url}/responses") as socket:
            await socket.send_str(frame())
            assert len(await take(socket)) == 2
            assert socket.close_code == 1006


async def test_a_frame_of_sixteen_mebibytes_is_closed_with_1009(http):
    async with provider() as up, http.ws_connect(f"{up.url}/responses") as socket:
        await socket.send_str(frame("x" * 16 * 1024 * 1024))
        assert await take(socket) == []
        assert socket.close_code == 1009


async def test_a_frame_just_below_is_answered(http):
    async with (
        provider() as up,
        http.ws_connect(f"{up.url}/responses", max_msg_size=0) as socket,
    ):
        await socket.send_str(frame("x" * (16 * 1024 * 1024 - 1000)))
        assert (await take(socket))[-1]["type"] == "response.completed"


async def test_frames_of_one_lane_are_answered_in_order(http):
    async with provider(replies=["one", "two"]) as up:
        async with http.ws_connect(f"{up.url}/responses") as socket:
            await socket.send_str(frame("a"))
            await socket.send_str(frame("b"))
            events = await take(socket) + await take(socket)
        ids = [
            e["response"]["id"]
            for e in events
            if e["type"] in ("response.created", "response.completed")
        ]
        assert [ids[0] == ids[1], ids[1] == ids[2], ids[2] == ids[3]] == [True, False, True]


async def test_lanes_run_side_by_side(http):
    gate = Gate()
    async with provider(replies=["one", "two"]) as up:
        up.core.faults.on_request(Hold(gate, after=1))
        async with http.ws_connect(f"{up.url}/responses") as socket:
            await socket.send_str(frame(stream_id="a"))
            await up.wait_until(lambda: up.core.log and up.core.log[0].events == 1)
            await socket.send_str(frame(stream_id="b"))
            first = await take(socket)
            gate.open()
            second = await take(socket)
        assert [first[-1]["stream_id"], second[-1]["stream_id"]] == ["b", "a"]


async def test_a_client_that_leaves_in_mid_response_is_logged(http):
    async with provider() as up:
        up.core.faults.on_request(stall(after=2))
        async with http.ws_connect(f"{up.url}/responses") as socket:
            await socket.send_str(frame())
            await take(socket, until=("response.in_progress",))
        await up.wait_until(lambda: not up.core.live())
        assert up.core.log[0].outcome == "hung"
        up.core.faults.on_request(Hold(Gate(), after=2))
        async with http.ws_connect(f"{up.url}/responses") as socket:
            await socket.send_str(frame())
            await take(socket, until=("response.in_progress",))
        await up.wait_until(lambda: up.core.log[1].outcome == "client_closed")


@pytest.mark.parametrize(("code", "seen"), [(1000, 1000), (1011, 1011), (None, 1006), (1006, 1006)])
async def test_idle_connections_can_be_dropped(http, code, seen):
    async with provider() as up:
        async with http.ws_connect(f"{up.url}/responses") as socket:
            await socket.send_str(frame())
            await take(socket)
            drop = asyncio.create_task(up.drop_connections(code))
            assert (await socket.receive()).type in (
                WSMsgType.CLOSE,
                WSMsgType.CLOSED,
                WSMsgType.ERROR,
            )
            assert await drop == 1
            assert socket.close_code == seen
        assert up.core.live() == []
        assert up.core.connections[0].closed_by == "dropped"


async def test_a_busy_connection_is_spared_unless_asked_for(http):
    gate = Gate()
    async with provider() as up:
        up.core.faults.on_request(Hold(gate, after=1))
        async with http.ws_connect(f"{up.url}/responses") as socket:
            await socket.send_str(frame())
            await up.wait_until(lambda: up.core.log and up.core.log[0].events == 1)
            assert await up.drop_connections() == 0
            assert await up.drop_connections(only_idle=False, nth=5) == 0
            assert await up.drop_connections(only_idle=False, nth=0) == 1
            await take(socket)
            assert socket.close_code == 1006


async def test_a_peer_that_answers_no_ping_is_dropped(http):
    async with provider(heartbeat=0.05) as up:
        await http.ws_connect(f"{up.url}/responses", autoping=False)
        await up.wait_until(lambda: bool(up.core.connections) and not up.core.live())


async def test_a_frozen_connection_reads_nothing_more(http):
    impatient = aiohttp.ClientWSTimeout(ws_close=0.05)
    async with (
        provider() as up,
        http.ws_connect(f"{up.url}/responses", timeout=impatient) as socket,
    ):
        await up.wait_until(lambda: len(up.core.live()) == 1)
        await socket.send_str(frame())
        await take(socket)
        assert up.freeze_connections() == 1
        await socket.send_str(frame())
        with pytest.raises(TimeoutError):
            await up.wait_until(lambda: len(up.core.log) > 1, seconds=0.05)


# --- the shell itself --------------------------------------------------------------------------


async def test_delays_are_slept_and_scaled(http):
    latency = Latency(connect=0, http_request=1.0, request=0, per_output_token=0)
    async with provider(latency=latency, speed=0.05) as up:
        started = time.monotonic()
        async with http.post(f"{up.url}/responses", json=BODY) as answer:
            await answer.read()
        assert time.monotonic() - started >= 0.05


async def test_a_mistake_of_the_script_is_raised_when_the_server_ends(http):
    async def run():
        async with provider() as up:
            up.core.faults.on_request(abort(after="response.never"))
            async with http.ws_connect(f"{up.url}/responses") as socket:
                await socket.send_str(frame())
                assert await take(socket) == []
                assert socket.close_code == 1011

    with pytest.raises(ValueError, match="which this response does not have"):
        await run()


async def test_a_missing_reply_is_raised_too(http):
    def empty(_asked):
        raise LookupError("no reply left")

    async def run():
        async with (
            provider(responder=empty) as up,
            http.post(f"{up.url}/responses", json=BODY) as answer,
        ):
            assert answer.status == 500

    with pytest.raises(LookupError, match="no reply left"):
        await run()


async def test_waiting_for_what_never_comes_fails():
    async with provider() as up:
        with pytest.raises(TimeoutError):
            await up.wait_until(lambda: False, seconds=0.01)


async def test_the_clock_of_the_core_is_the_tests(http):
    now = Now()
    async with provider(now=now) as up, http.ws_connect(f"{up.url}/responses") as socket:
        await up.wait_until(lambda: bool(up.core.live()))
        now.advance(3600)
        await socket.send_str(frame())
        [event] = await take(socket)
        assert event["error"]["code"] == "websocket_connection_limit_reached"
        assert (await socket.receive()).type is WSMsgType.CLOSE


async def test_an_error_frame_leaves_the_connection_open(http):
    async with provider() as up, http.ws_connect(f"{up.url}/responses") as socket:
        up.core.faults.on_request(ErrorFrame())
        await socket.send_str(frame())
        assert [event["type"] for event in await take(socket)] == ["error"]
        await socket.send_str(frame())
        assert (await take(socket))[-1]["type"] == "response.completed"


def test_it_runs_in_a_thread_for_synchronous_clients():
    with provider_thread(replies=["hello"]) as up:
        assert up.url.startswith("http://127.0.0.1:")
        assert up.call("drop_connections") == 0
        assert up.core.log == []


async def test_a_silent_connection_expires_by_the_providers_clock_and_a_ping_is_not_silence(http):
    now = Now()
    async with provider("vercel", now=now) as up:
        async with http.ws_connect(f"{up.url}/responses", autoping=False) as socket:
            for _ in range(2):
                now.advance(200)
                await socket.ping(b"x")
                pong = await socket.receive(10)
                assert (WSMsgType.PONG, b"x") == (pong.type, pong.data)
                assert 0 == await up.expire()
            now.advance(300)
            assert 1 == await up.expire()
            end = await socket.receive(10)
            assert (WSMsgType.CLOSE, 1001) == (end.type, end.data)
        assert [] == up.core.live()
