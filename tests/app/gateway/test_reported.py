"""Faults from the field, over real sockets (docs/field-reports.md)."""

import asyncio
import json
import logging

from websockets.asyncio.server import serve

from app.demo.provider.faults import HttpError, Usage
from app.gateway.identity import identify, peek
from app.keys import Keys
from engine.transports.websocket import WebSockets
from tests.app.gateway.test_served import body, config, create, events_of, sockets
from tests.support.provider import AUTH, provider, user
from tests.support.service import running


async def test_each_response_of_a_client_socket_is_a_row_with_all_its_details(tmp_path):
    """The id of the request that opened the socket is that of none of its turns."""
    async with provider() as up, running(config(tmp_path, up.url)) as live:
        history = []
        async with sockets(live, **{"x-client-request-id": "same"}) as socket:
            for n in range(1, 4):
                usage = {
                    "input_tokens": 100 * n,
                    "input_tokens_details": {"cached_tokens": 40 * n},
                    "output_tokens": 10 * n,
                    "output_tokens_details": {"reasoning_tokens": 5 * n},
                    "total_tokens": 110 * n,
                }
                up.core.faults.on_request(Usage(usage))
                history.append(user(str(n)))
                await socket.send_json(create(history))
                history += (await events_of(socket))[-1]["response"]["output"]
        rows = sorted(await live.rows(3), key=lambda row: row["input_tokens"])
    names = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "total_tokens")
    assert [[row[name] for name in names] for row in rows] == [
        [100 * n, 40 * n, 10 * n, 5 * n, 110 * n] for n in range(1, 4)
    ]
    assert len({row["response_id"] for row in rows}) == len({row["turn_id"] for row in rows}) == 3


async def test_what_is_secret_is_in_no_log_no_row_and_no_export(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    secret = "sk-canary-1234567"
    async with provider() as up, running(config(tmp_path, up.url)) as live:
        error = HttpError(401, f"Incorrect key: Bearer {secret}", code="invalid_api_key")
        up.core.faults.on_request(error, times=2)
        headers = AUTH | {"authorization": f"Bearer {secret}"}
        url = f"{live.url}/v1/responses?token={secret}"
        async with live.http.post(url, json=body(), headers=headers) as got:
            assert got.status == 401
        async with live.http.get(f"{live.url}/v1/models?token={secret}", headers=headers) as got:
            await got.read()
        async with sockets(live, f"/v1/responses?token={secret}") as socket:
            await socket.send_json(create())
            await events_of(socket)
        rows = await live.rows(2)
        tables = [await live.text("/api/requests.csv"), await live.text("/metrics")]
    assert secret not in json.dumps(rows) + "".join(tables)
    assert secret not in caplog.text


async def test_a_ping_of_the_provider_is_answered_while_nobody_reads():
    answered = asyncio.Event()

    async def pinging(connection):
        pong = await connection.ping()
        await pong
        answered.set()
        await connection.wait_closed()

    async with serve(pinging, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        connection = await WebSockets().connect(f"ws://127.0.0.1:{port}/", [], 5.0)
        async with asyncio.timeout(5):
            await answered.wait()
        assert not connection.closed
        await connection.close()


async def test_a_provider_waits_for_a_reader_that_is_slow():
    """What is not read yet is held up at the sender; nothing of it is lost."""
    count, sent, stalled = 600, [], asyncio.Event()

    async def flooding(connection):
        for n in range(count):
            sending = asyncio.ensure_future(connection.send(str(n).rjust(65_536)))
            if not (await asyncio.wait([sending], timeout=0.3))[0]:
                stalled.set()
            await sending
            sent.append(n)
        await connection.wait_closed()

    async with serve(flooding, "127.0.0.1", 0, compression=None) as server:
        port = server.sockets[0].getsockname()[1]
        connection = await WebSockets().connect(f"ws://127.0.0.1:{port}/", [], 5.0)
        async with asyncio.timeout(20):
            await stalled.wait()
            assert len(sent) < count / 2
            assert [int(await connection.receive()) for _ in range(count)] == list(range(count))
        await connection.close()


def test_the_id_of_a_request_is_the_name_of_no_session():
    names = {
        identify(Keys(b"k" * 32), (("x-client-request-id", f"r{n}"),), peek(b"{}")).session
        for n in range(100)
    }
    assert names == {None}
