"""The upstream WebSocket on the wire."""

import asyncio
import contextlib
import json

import pytest
from websockets.asyncio.server import serve
from websockets.utils import accept_key

from app.demo.provider.faults import RefuseUpgrade
from engine.errors import ConnectFailed, ConnectionLost, UpgradeRejected
from engine.transports import websocket
from engine.transports.websocket import WebSockets
from tests.support.provider import frame, provider

HEADERS = [("authorization", "Bearer sk-test"), ("user-agent", "agent/1")]


def url(server):
    return "ws" + server.url.removeprefix("http") + "/responses"


async def test_a_frame_is_answered_and_a_ping_too():
    async with provider(replies=["hello"]) as up:
        connection = await WebSockets().connect(url(up), HEADERS, 5.0)
        assert await connection.ping(5.0)
        await connection.send(frame().encode())
        while json.loads(await connection.receive())["type"] != "response.completed":
            pass
        assert not connection.closed
        await connection.close()
        assert connection.closed
        with pytest.raises(ConnectionLost) as lost:
            await connection.send(b"{}")
        assert lost.value.sent is False
        assert not await connection.ping(5.0)


async def test_a_close_of_the_provider_is_told_with_its_code():
    async with provider() as up:
        connection = await WebSockets().connect(url(up), HEADERS, 5.0)
        await up.drop_connections(1001)
        with pytest.raises(ConnectionLost) as lost:
            await connection.receive()
        assert (lost.value.code, lost.value.sent, connection.closed) == (1001, True, True)


async def test_a_refused_upgrade_tells_status_headers_and_body():
    async with provider() as up:
        up.core.faults.on_upgrade(RefuseUpgrade(426))
        with pytest.raises(UpgradeRejected) as rejected:
            await WebSockets().connect(url(up), HEADERS, 5.0)
        assert rejected.value.status == 426
        assert all(name == name.lower() for name, _ in rejected.value.headers)


async def test_an_unreachable_upstream_is_a_failed_connect():
    async with provider() as up:
        gone = url(up)
    with pytest.raises(ConnectFailed) as failed:
        await WebSockets().connect(gone, HEADERS, 5.0)
    assert failed.value.cause in {"refused", "network"}


async def test_a_peer_that_speaks_no_http_fails_the_handshake():
    async def talk(reader, writer):
        await reader.readline()
        writer.write(b"hello\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectFailed) as failed:
            await WebSockets().connect(f"ws://127.0.0.1:{port}/", HEADERS, 5.0)
    assert failed.value.cause == "handshake"


async def test_a_redirect_is_not_followed_with_the_credential():
    seen = []

    async def elsewhere(connection):
        seen.append(connection.request.headers.get("authorization"))

    async with serve(elsewhere, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]

        def redirect(connection, request):
            answer = connection.respond(302, "")
            answer.headers["location"] = f"ws://127.0.0.1:{port}/"
            return answer

        async with serve(elsewhere, "127.0.0.1", 0, process_request=redirect) as first:
            at = first.sockets[0].getsockname()[1]
            with pytest.raises(UpgradeRejected) as rejected:
                await WebSockets().connect(f"ws://127.0.0.1:{at}/", HEADERS, 5.0)
    assert (rejected.value.status, seen) == (302, [])


async def test_a_receive_may_be_cancelled_without_losing_a_frame():
    async with provider(replies=["hello"]) as up:
        connection = await WebSockets().connect(url(up), HEADERS, 5.0)
        waiting = asyncio.ensure_future(connection.receive())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await connection.send(frame().encode())
        assert json.loads(await connection.receive())["type"] == "response.created"
        await connection.close()


@contextlib.asynccontextmanager
async def silent_peer(then):
    """Where a peer listens that accepts the upgrade, does ``then``, and never says a word."""

    async def talk(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        (key,) = (
            line.split(b": ")[1] for line in head.splitlines() if line.lower().startswith(b"sec-websocket-key")
        )  # fmt: skip
        accept = accept_key(key.decode()).encode()
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-accept: " + accept + b"\r\n\r\n"
        )
        with contextlib.closing(writer):
            await then(reader, writer)

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def test_a_frame_that_broke_off_cannot_have_been_processed():
    async def reset_early(reader, writer):
        await reader.readexactly(1)
        writer.transport.abort()

    async with silent_peer(reset_early) as at:
        connection = await WebSockets().connect(at, HEADERS, 5.0)
        with pytest.raises(ConnectionLost) as lost:
            await connection.send(bytes(32 * 1024 * 1024))
    assert (None, False, True) == (lost.value.code, lost.value.sent, connection.closed)


async def test_a_peer_that_does_not_answer_the_close_holds_nobody_up(monkeypatch):
    monkeypatch.setattr(websocket, "_CLOSE_SECONDS", 0.02)
    ended = asyncio.get_running_loop().create_future()

    async def read_on(reader, writer):
        with contextlib.suppress(ConnectionError):
            await reader.read()
        ended.set_result(True)

    async with silent_peer(read_on) as at:
        connection = await WebSockets().connect(at, HEADERS, 5.0)
        await connection.close()
        assert await ended
        assert connection.closed


async def test_a_peer_that_does_not_answer_the_upgrade_is_a_connect_that_timed_out():
    async def talk(reader, writer):
        with contextlib.closing(writer):
            await reader.read()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(ConnectFailed) as failed:
            await WebSockets().connect(f"ws://127.0.0.1:{port}/", HEADERS, 0.05)
    assert "timeout" == failed.value.cause
