"""deploy/nginx.conf before two gateways that do what a test says."""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from app.gateway.headers import decode
from app.gateway.identity import Fields, identify
from app.keys import Keys
from tests.support.children import free_ports
from tests.support.nginx import NAME, SERVED_BY, Front, front

KEYS = Keys(b"k" * 32)
PATH = "/v1/responses"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gateways:
    """Two of them. ``seen`` has what they got: the port, and the request."""

    def __init__(self, ports: list[int]) -> None:
        self.ports = ports
        self.seen: list[tuple[int, web.Request]] = []
        self._runners: dict[int, web.AppRunner] = {}

    @asynccontextmanager
    async def doing(self, handler: Handler, *, only: int | None = None) -> AsyncIterator[None]:
        """Answer so inside of the block; ``only``: the other one refuses connections."""
        for port in self.ports if only is None else [only]:
            app = web.Application(client_max_size=1 << 30)
            app.router.add_route("*", "/{path:.*}", self._noting(port, handler))
            runner = web.AppRunner(
                app,
                handler_cancellation=True,
                shutdown_timeout=0.1,
                access_log=None,
                max_field_size=1 << 16,
            )
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
            self._runners[port] = runner
        try:
            yield
        finally:
            for runner in self._runners.values():
                await runner.cleanup()
            self._runners.clear()

    def _noting(self, port: int, handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            self.seen.append((port, request))
            return await handler(request)

        return handle


@pytest.fixture(scope="module")
def ports() -> list[int]:
    return free_ports(2)


@pytest.fixture(scope="module")
def nginx(ports: list[int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with front(tmp_path_factory.mktemp("nginx"), ports) as made:
        yield made


@pytest.fixture
def gateways(ports: list[int]) -> Gateways:
    return Gateways(ports)


@pytest.fixture
async def client(nginx: Front) -> AsyncIterator[aiohttp.ClientSession]:
    async with nginx.client() as http:
        yield http


@contextmanager
def connected(nginx: Front) -> Iterator[ssl.SSLSocket]:
    """A client's connection; it is closed without a farewell."""
    with (
        socket.create_connection(("127.0.0.1", nginx.port), 10) as plain,
        nginx.trust.wrap_socket(plain, server_hostname=NAME) as connection,
    ):
        yield connection


async def fine(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(text="fine")


# --- which gateway -----------------------------------------------------------------------------

NAMES = ("x-warmline-session", "thread-id", "session-id", "x-session-id")
values = st.text("abAB1-_:/ é", max_size=6)


@st.composite
def some_headers(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Names of sessions in either spelling, and credentials."""
    found = []
    for name in NAMES:
        if draw(st.booleans()):
            spelt = draw(st.sampled_from((name, name.replace("-", "_"), name.title())))
            found.append((spelt, draw(values)))
    found += [
        (name, draw(st.sampled_from(("Bearer one", "Bearer two"))))
        for name in ("authorization", "api-key")
        if draw(st.booleans())
    ]
    return draw(st.permutations(found))


def chosen_by(nginx: Front, headers: list[tuple[str, str]]) -> str:
    """What nginx chooses a gateway by."""
    connection = http.client.HTTPConnection("127.0.0.1", nginx.probe, timeout=10)
    try:
        connection.putrequest("GET", "/v1/responses?a=b", skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value.encode())
        connection.endheaders()
        return connection.getresponse().read().decode()
    finally:
        connection.close()


@given(some_headers())
def test_a_gateway_is_chosen_by_the_session_that_the_gateway_will_tell(
    nginx: Front, headers: list[tuple[str, str]]
) -> None:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    session = identify(KEYS, decode(raw), Fields()).session
    given_names = dict(headers)
    credential = f"{given_names.get('authorization', '')} {given_names.get('api-key', '')}"
    unnamed = "127.0.0.1" if credential == " " else credential
    assert (unnamed if session is None else session) == chosen_by(nginx, headers)


@pytest.mark.parametrize("name", NAMES)
def test_a_header_that_comes_twice_chooses_as_one(nginx: Front, name: str) -> None:
    assert "a" == chosen_by(nginx, [(name, "a"), (name, "b")])


async def test_a_session_goes_to_one_gateway_and_sessions_to_both(
    nginx: Front, gateways: Gateways, client: aiohttp.ClientSession
) -> None:
    async with gateways.doing(fine):
        served = {
            number: {await served_by(nginx, client, f"session-{number}") for _ in range(3)}
            for number in range(20)
        }
    assert {1} == {len(found) for found in served.values()}
    assert set(gateways.ports) == set.union(*served.values())


async def served_by(nginx: Front, client: aiohttp.ClientSession, session: str) -> int:
    """The port of the gateway that answered a turn of this session."""
    headers = {"thread_id": session}
    async with client.post(nginx.url + PATH, headers=headers, data=b"{}") as answer:
        assert (200, "fine") == (answer.status, await answer.text())
        return int(answer.headers[SERVED_BY].rpartition(":")[2])


# --- what passes -------------------------------------------------------------------------------

CLAIMED = {
    "X-Forwarded-For": "8.8.8.8",
    "X-Forwarded-Proto": "gopher",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Port": "1",
    "X-Real-IP": "8.8.8.8",
    "Forwarded": "for=8.8.8.8",
}


@pytest.mark.parametrize(
    ("path", "added"),
    [
        ("/v1/responses", {}),
        ("/u/azure/v1/models", {}),
        ("/backend-api/codex/responses", {}),
        ("/codex", {}),
        ("/login", {"X-Forwarded-Proto": "https"}),
        ("/v1x", {"X-Forwarded-Proto": "https"}),
        ("/api/summary", {"X-Forwarded-Proto": "https"}),
    ],
)
async def test_headers_pass_as_they_are_and_those_of_proxies_are_nobodys_word(
    nginx: Front,
    gateways: Gateways,
    client: aiohttp.ClientSession,
    path: str,
    added: dict[str, str],
) -> None:
    sent = {
        "Authorization": "Bearer sk",
        "x_session_id": "one",
        "Cookie": "a=b",
        "X-Codex-Turn-Metadata": "m" * 20_000,
        "Accept": "text/event-stream",
        "User-Agent": "codex/1",
    }
    async with (
        gateways.doing(fine),
        client.post(nginx.url + path, headers=sent | CLAIMED, data=b"{}") as answer,
    ):
        assert 200 == answer.status
    got = dict(gateways.seen[-1][1].headers)
    assert f"{NAME}:{nginx.port}" == got.pop("Host")
    expected = {"Content-Length": "2", "Content-Type": "application/octet-stream"}
    assert sent | added | expected == got


async def test_path_and_query_pass_as_they_were_written(
    nginx: Front, gateways: Gateways, client: aiohttp.ClientSession
) -> None:
    path = "/u/azure/v1//files/a%2Fb%20c?q=%41&empty="
    async with (
        gateways.doing(fine),
        client.get(URL(nginx.url + path, encoded=True)) as answer,
    ):
        assert 200 == answer.status
    assert path == gateways.seen[-1][1].raw_path


async def test_a_request_passes_as_it_comes(
    nginx: Front, gateways: Gateways, client: aiohttp.ClientSession
) -> None:
    came = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        await came.wait()
        yield b" second"

    async def read(request: web.Request) -> web.Response:
        first = await request.content.readexactly(5)
        came.set()
        return web.Response(body=first + await request.content.read())

    async with (
        asyncio.timeout(20),
        gateways.doing(read),
        client.post(nginx.url + PATH, data=body()) as answer,
    ):
        assert b"first second" == await answer.read()


async def test_events_pass_as_they_come(
    nginx: Front, gateways: Gateways, client: aiohttp.ClientSession
) -> None:
    came = asyncio.Event()

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: 1\n\n")
        await came.wait()
        await response.write(b"data: 2\n\n")
        return response

    async with (
        asyncio.timeout(20),
        gateways.doing(stream),
        client.post(nginx.url + PATH, data=b"{}") as answer,
    ):
        assert b"data: 1\n\n" == await answer.content.readexactly(9)
        came.set()
        assert b"data: 2\n\n" == await answer.content.read()


async def test_a_websocket_passes_both_ways(
    nginx: Front, gateways: Gateways, client: aiohttp.ClientSession
) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        made = web.WebSocketResponse(max_msg_size=0)
        await made.prepare(request)
        async for message in made:
            await made.send_str(message.data)
        return made

    text = "x" * 2_000_000
    async with gateways.doing(echo), client.ws_connect(nginx.url + PATH, max_msg_size=0) as made:
        await made.send_str(text)
        assert text == await made.receive_str(timeout=20)


async def test_a_client_that_leaves_is_gone_for_the_gateway_too(
    nginx: Front, gateways: Gateways
) -> None:
    came, left = asyncio.Event(), asyncio.Event()

    async def think(request: web.Request) -> web.StreamResponse:
        await request.read()
        came.set()
        try:
            return await asyncio.Event().wait()  # type: ignore[return-value]
        except asyncio.CancelledError:
            left.set()
            raise

    async with gateways.doing(think), asyncio.timeout(5):
        with connected(nginx) as connection:
            head = f"POST {PATH} HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {1 << 20}\r\n\r\n"
            connection.sendall(head.encode() + bytes(1 << 20))
            await came.wait()
        await left.wait()


# --- gateways that end -------------------------------------------------------------------------


async def test_a_turn_that_was_sent_is_not_sent_again(
    nginx: Front, gateways: Gateways, client: aiohttp.ClientSession
) -> None:
    async def die(request: web.Request) -> web.StreamResponse:
        await request.read()
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with gateways.doing(die), client.post(nginx.url + PATH, data=b"{}") as answer:
        assert 502 == answer.status
    assert 1 == len(gateways.seen)


async def test_one_turn_that_is_lost_moves_no_session(
    nginx: Front, gateways: Gateways, client: aiohttp.ClientSession
) -> None:
    async def lose_the_first(request: web.Request) -> web.StreamResponse:
        if len(gateways.seen) == 1:
            assert request.transport is not None
            request.transport.abort()
        return await fine(request)

    async with gateways.doing(lose_the_first):
        async with client.post(nginx.url + PATH, data=b"{}", headers={"thread_id": "s"}) as answer:
            assert 502 == answer.status
        port = gateways.seen[0][0]
        assert [port] * 5 == [await served_by(nginx, client, "s") for _ in range(5)]


async def test_no_turn_is_lost_while_a_gateway_refuses_connections(
    nginx: Front, gateways: Gateways, client: aiohttp.ClientSession
) -> None:
    last = gateways.ports[1]
    async with gateways.doing(fine, only=last):
        for number in range(20):
            headers = {"thread_id": f"session-{number}"}
            async with client.post(
                nginx.url + PATH, data=bytes(200_000), headers=headers
            ) as answer:
                assert 200 == answer.status
    assert [last] * 20 == [port for port, _ in gateways.seen]


async def test_the_log_has_neither_query_nor_header(
    nginx: Front, gateways: Gateways, client: aiohttp.ClientSession
) -> None:
    headers = {"authorization": "Bearer sk-canary-1", "thread_id": "canary-2"}
    async with gateways.doing(fine):
        url = f"{nginx.url}/v1/logged?api-key=canary-3"
        async with client.post(url, headers=headers, data=b"canary-4") as answer:
            assert 200 == answer.status
    logs = "".join(path.read_text() for path in Path(nginx.folder).glob("*.log"))
    assert "/v1/logged" in logs
    assert "canary" not in logs
