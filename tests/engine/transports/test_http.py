"""The upstream over HTTP on the wire."""

import asyncio
import json
import socket

import pytest

from engine.errors import ConnectFailed, ConnectionLost
from engine.transports.http import Http
from tests.support.provider import provider

HEADERS = [("authorization", "Bearer sk-test"), ("content-type", "application/json")]


def body(**fields):
    return json.dumps({"model": "gpt-5.5", "input": "hi", "store": False, **fields}).encode()


@pytest.fixture
async def http():
    client = Http()
    yield client
    await client.aclose()
    await client.aclose()


async def test_a_post_is_answered_with_status_headers_and_body(http):
    async with provider(replies=["hello"]) as up:
        answer = await http.post(up.url + "/responses", HEADERS, body(stream=False), 5.0)
        assert (answer.status, dict(answer.headers)["content-type"].split(";")[0]) == (200, "application/json")  # fmt: skip
        text = b"".join([chunk async for chunk in answer.chunks()])
        assert json.loads(text)["status"] == "completed"
        await answer.close()


async def test_a_stream_can_be_left_before_its_end_and_the_next_post_works(http):
    async with provider(replies=["one", "two"]) as up:
        first = await http.post(up.url + "/responses", HEADERS, body(stream=True), 5.0)
        await first.close()
        second = await http.post(up.url + "/responses", HEADERS, body(stream=True), 5.0)
        text = b"".join([chunk async for chunk in second.chunks()])
        assert b"response.completed" in text


async def test_an_unreachable_upstream_is_a_failed_connect(http):
    async with provider() as up:
        gone = up.url
    with pytest.raises(ConnectFailed) as failed:
        await http.post(gone + "/responses", HEADERS, body(), 5.0)
    assert failed.value.cause == "refused"


async def test_an_upstream_that_accepts_nobody_is_a_connect_that_timed_out(http):
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        with pytest.raises(ConnectFailed) as failed:
            await http.post(f"http://127.0.0.1:{full.getsockname()[1]}/", HEADERS, body(), 0.05)
    assert failed.value.cause == "timeout"


async def answered_with(http, *parts):
    async def talk(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.writelines(parts)
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        answer = await http.post(f"http://127.0.0.1:{port}/", HEADERS, b"{}", 5.0)
        try:
            return answer.status, [chunk async for chunk in answer.chunks()]
        finally:
            await answer.close()


async def test_an_upstream_that_hangs_up_is_lost_and_may_have_seen_the_post(http):
    with pytest.raises(ConnectionLost) as lost:
        await answered_with(http)
    assert lost.value.sent is True


async def test_a_body_that_breaks_off_is_lost(http):
    with pytest.raises(ConnectionLost):
        await answered_with(http, b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")


async def test_a_redirect_is_not_followed(http):
    status, _ = await answered_with(
        http, b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
    )
    assert status == 302
