import asyncio
import gzip

import aiohttp
import pytest
from aiohttp import web

from app.gateway import passthrough
from app.gateway.upstreams import Target
from engine.driver import Upstream
from engine.model import Policy
from tests.support.fake_driver import AUTH, Edge, Exchange
from tests.support.plain_upstream import upstream


def lower(headers):
    return {name.lower(): value for name, value in headers.items()}


async def passed(handler, method="GET", path="/v1/models", body=b"", **more):
    """The exchange, the edge, after the gateway has closed what it opened."""
    async with upstream(handler) as url:
        edge = Edge(upstream=url)
        exchange = await Exchange(edge.gateway, method, path, body, **more).run()
        await edge.gateway.aclose()
    return exchange, edge


async def test_method_path_query_and_headers_reach_the_upstream_as_they_were_sent():
    seen = []

    async def handler(request):
        seen.append((request.method, request.raw_path, lower(request.headers)))
        return web.json_response({})

    _, edge = await passed(
        handler,
        "GET",
        "/codex/responses/resp%2F1/input_items",
        headers=[AUTH, ("accept-encoding", "zstd,gzip"), ("x-warmline-token", "t"), ("te", "x")],
        query=b"after=%20a+b&include[]=x",
    )
    [(method, path, headers)] = seen
    assert method == "GET"
    assert path == "/v1/responses/resp%2F1/input_items?after=%20a+b&include[]=x"
    host = headers.pop("host")
    assert host.startswith("127.0.0.1:")
    assert headers == {"authorization": "Bearer sk-test", "accept-encoding": "zstd,gzip"}
    assert (edge.driver.calls, edge.facts, edge.passed) == ([], [], [("default", 200)])


async def test_status_headers_and_bytes_come_back_unchanged_also_when_compressed():
    raw = gzip.compress(b'{"object":"list"}')

    async def handler(_request):
        headers = {"content-encoding": "gzip", "x-request-id": "r", "content-type": "x/y"}
        return web.Response(status=418, body=raw, headers=headers)

    got, edge = await passed(handler)
    assert (got.status, got.body, got.complete) == (418, raw, True)
    assert got.headers["content-encoding"] == "gzip"
    assert got.headers["content-length"] == str(len(raw))
    assert got.headers["x-request-id"] == "r"
    assert "date" not in got.headers
    assert edge.passed == [("default", 418)]


async def test_redirects_are_the_clients_to_follow():
    async def handler(_request):
        raise web.HTTPFound("https://elsewhere.example/")

    got, _ = await passed(handler)
    assert (got.status, got.headers["location"]) == (302, "https://elsewhere.example/")


@pytest.mark.parametrize("length", [True, False])
async def test_a_body_is_streamed_through_as_it_was_sent(length):
    seen = []

    async def handler(request):
        seen.append((await request.read(), request.headers.get("content-length")))
        seen.append(request.headers.get("content-encoding"))
        return web.Response()

    headers = [("content-encoding", "zstd")]
    headers.append(("content-length", "6") if length else ("transfer-encoding", "chunked"))
    await passed(handler, "POST", "/v1/files", headers=headers, chunks=[b"abc", b"", b"def"])
    assert seen == [(b"abcdef", "6" if length else None), "zstd"]


async def test_an_answer_is_relayed_while_it_is_coming():
    go_on = asyncio.Event()

    async def handler(request):
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"first")
        await go_on.wait()
        await answer.write(b"second")
        return answer

    async with upstream(handler) as url:
        edge = Edge(upstream=url)
        exchange = Exchange(edge.gateway, "GET", "/v1/x")
        task = asyncio.ensure_future(exchange.run())
        while b"first" not in (exchange.body if exchange.sent else b""):
            exchange.arrived.clear()
            await exchange.arrived.wait()
        assert exchange.body == b"first"
        go_on.set()
        await task
        await edge.gateway.aclose()
    assert exchange.body == b"firstsecond"


async def test_a_client_that_leaves_ends_the_upstreams_answer():
    broken_off = asyncio.Event()

    async def handler(request):
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while True:
                await answer.write(b"x" * 1024)
                await asyncio.sleep(0.001)
        finally:
            broken_off.set()

    async with upstream(handler) as url:
        edge = Edge(upstream=url)
        exchange = Exchange(edge.gateway, "GET", "/v1/x")
        task = asyncio.ensure_future(exchange.run())
        await exchange.arrived.wait()
        exchange.leave()
        async with asyncio.timeout(5):
            await task
            await broken_off.wait()
        await edge.gateway.aclose()
    assert not exchange.complete


async def test_a_client_that_leaves_before_the_answer_ends_the_request():
    arrived, broken_off = asyncio.Event(), asyncio.Event()

    async def handler(request):
        arrived.set()
        try:
            while True:
                await asyncio.sleep(0.001)
                if request.transport is None or request.transport.is_closing():
                    break
        finally:
            broken_off.set()
        return web.Response()

    for body in (b"", b"{}"):
        arrived.clear()
        broken_off.clear()
        async with upstream(handler) as url:
            edge = Edge(upstream=url)
            headers = [("content-length", str(len(body)))]
            exchange = Exchange(edge.gateway, "POST", "/v1/chat", body, headers=headers)
            task = asyncio.ensure_future(exchange.run())
            async with asyncio.timeout(5):
                await arrived.wait()
                exchange.leave()
                await task
                await broken_off.wait()
            await edge.gateway.aclose()
        assert (exchange.sent, edge.passed) == ([], [])


async def test_a_client_that_leaves_in_mid_upload_is_no_fault(caplog):
    async def handler(request):
        await request.read()
        return web.Response()

    async with upstream(handler) as url:
        edge = Edge(upstream=url)
        headers = [("content-length", "9")]
        exchange = Exchange(edge.gateway, "POST", "/v1/files", headers=headers, chunks=[])
        exchange._messages.put_nowait({"type": "http.request", "body": b"abc", "more_body": True})
        exchange.leave()
        await exchange.run()
        await edge.gateway.aclose()
    assert exchange.sent == []
    assert not [record for record in caplog.records if record.name.startswith("app.")]


async def test_an_unreachable_upstream_is_502_and_nothing_of_it_is_told():
    edge = Edge(upstream="http://127.0.0.1:9/v1")
    got = await Exchange(edge.gateway, "GET", "/v1/models", query=b"token=canary").run()
    await edge.gateway.aclose()
    assert (got.status, got.error["code"]) == (502, "upstream_unreachable")
    assert b"canary" not in got.body
    assert edge.passed == [("default", 502)]


async def test_an_answer_that_breaks_off_breaks_the_clients_off_too():
    async def handler(request):
        answer = web.StreamResponse(headers={"content-length": "100"})
        await answer.prepare(request)
        await answer.write(b"half")
        request.transport.abort()
        return answer

    async with upstream(handler) as url:
        edge = Edge(upstream=url)
        exchange = Exchange(edge.gateway, "GET", "/v1/x")
        with pytest.raises(ConnectionAbortedError):
            await exchange.run()
        await edge.gateway.aclose()
    assert not exchange.complete


@pytest.mark.parametrize("end", ["", "?x=%2B&y=a b"])
def test_paths_and_queries_are_not_rewritten(end):
    target = Target(Upstream("u", "https://h.example/v1"), "/a%2Fb//c", end[1:])
    assert str(passthrough.url_of(target)) == f"https://h.example/v1/a%2Fb//c{end}"


def test_the_policys_times_bound_connecting_and_silence_but_not_the_whole():
    limits = passthrough.timeout_of(Policy(connect_timeout=3, idle_timeout=7))
    assert (limits.total, limits.sock_connect, limits.sock_read) == (None, 3, 7)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (aiohttp.ConnectionTimeoutError(), 502),
        (aiohttp.SocketTimeoutError(), 504),
        (TimeoutError(), 504),
        (aiohttp.ServerDisconnectedError(), 502),
        (ConnectionResetError(), 502),
    ],
)
def test_each_transport_failure_has_its_status(error, status):
    assert passthrough.refusal_of(error).status == status
