import json

import pytest

from app.gateway.asgi import Gateway
from app.gateway.wire import Refusal
from app.http_connection import MEMORY
from engine.model import Policy
from tests.support.fake_driver import AUTH, Edge, Exchange, plain

HOST = "localhost:8787"


@pytest.mark.parametrize("prefix", ["/v1", "/codex", "/backend-api/codex", "/u/azure/v1"])
async def test_a_post_to_responses_is_a_turn_under_every_alias(prefix):
    edge = Edge(plain(200, {"id": "r1"}), named={"azure": "http://azure.test/openai/v1"})
    got = await edge.post(f"{prefix}/responses")
    assert json.loads(got.body) == {"id": "r1"}
    assert edge.call.upstream.name == ("azure" if "azure" in prefix else "default")


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_the_gateway_handles_its_own_paths_only(kind):
    ours = ("/v1/responses", "/v1/models", "/codex/responses", "/u/x/v1/responses")
    assert all(Gateway.handles({"type": kind, "path": path}) for path in ours)
    others = ("/", "/api/summary", "/v1.html", "/metrics", "/u/x")
    assert not any(Gateway.handles({"type": kind, "path": path}) for path in others)
    assert not Gateway.handles({"type": "lifespan"})


async def test_the_host_rule_and_the_token_hold_for_every_route():
    edge = Edge(gateway_token="t")
    for path in ("/v1/responses", "/v1/responses/compact", "/v1/files"):
        assert (await edge.post(path, host="evil.example")).status == 403
        got = await edge.post(path)
        assert (got.status, got.error["code"]) == (401, "invalid_gateway_token")
    assert (edge.driver.calls, edge.facts) == ([], [])


async def test_the_token_is_stripped_before_the_upstream():
    edge = Edge(plain(200, {}), gateway_token="t")
    got = await edge.post(headers=[AUTH, ("x-warmline-token", "t")])
    assert got.status == 200
    assert edge.call.headers == (AUTH,)


async def test_the_query_of_a_turn_reaches_its_upstream():
    edge = Edge(plain(200, {}))
    await edge.post(query=b"api-version=preview")
    assert edge.call.upstream.http_url.endswith("/v1/responses?api-version=preview")


async def test_an_unknown_upstream_is_404():
    assert (await Edge().post("/u/other/v1/responses")).error["code"] == "unknown_upstream"


async def test_a_scope_without_a_raw_path_is_served_by_its_path():
    edge = Edge(plain(200, {}))
    exchange = Exchange(edge.gateway, "POST", "/v1/responses", b"{}")
    exchange._scope["raw_path"] = None
    assert (await exchange.run()).status == 200


# --- upgrades ----------------------------------------------------------------------------------


async def denied(edge, path="/v1/responses", **more):
    async with edge.socket(path, **more) as socket:
        start, body = await socket.next(), await socket.next()
    assert start["type"] == "websocket.http.response.start"
    return start["status"], json.loads(body["body"])["error"]["code"]


async def test_an_upgrade_is_426_at_once_when_websockets_are_off():
    edge = Edge(policy=Policy(continuation="off"))
    assert await denied(edge) == (426, "websocket_off")
    assert edge.driver.calls == []


async def test_a_refusal_is_made_anew_each_time_and_keeps_no_frames_of_the_times_before(
    monkeypatch,
):
    edge, refusals = Edge(policy=Policy(continuation="off")), []

    async def keep(_scope, send, refusal):
        refusals.append(refusal)
        await send({"type": "websocket.close"})

    monkeypatch.setattr("app.gateway.asgi.refuse_upgrade", keep)
    for _ in range(2):
        async with edge.socket() as socket:
            await socket.next()
    first, second = refusals
    assert (first.code, second.code) == ("websocket_off", "websocket_off")
    assert first is not second


async def test_an_upgrade_without_the_token_is_refused_before_it_is_accepted():
    edge = Edge(gateway_token="t")
    assert await denied(edge) == (401, "invalid_gateway_token")
    assert await denied(edge, headers=[("x-warmline-token", "x")]) == (401, "invalid_gateway_token")
    async with edge.socket(headers=[("x-warmline-token", "t")]) as socket:
        await socket.accepted()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (
            {"headers": [(b"host", b"evil.example"), (b"x-warmline-token", b"t")]},
            "host_not_allowed",
        ),
        ({"headers": [(b"host", HOST.encode())]}, "invalid_gateway_token"),
        ({"raw_path": b"/u/none/v1/responses"}, "unknown_upstream"),
    ],
)
def test_a_head_is_let_in_as_long_as_it_is_the_same_and_refused_each_time(change, code):
    gateway, memory = Edge(gateway_token="t").gateway, {}
    headers = [(b"host", HOST.encode()), (b"x-warmline-token", b"t")]
    good = {"path": "/", "raw_path": b"/v1/responses", "query_string": b"", "headers": headers}
    good |= {"extensions": {MEMORY: memory}}
    for _ in range(2):
        targets = [gateway._admit(good, is_websocket=False) for _ in range(2)]
        assert targets[0] is targets[1]
        for _ in range(2):
            with pytest.raises(Refusal) as refused:
                gateway._admit(good | change, is_websocket=False)
            assert code == refused.value.code


async def test_an_upgrade_of_a_foreign_page_or_host_is_refused():
    edge = Edge()
    origin = ("origin", "https://evil.example")
    assert await denied(edge, headers=[origin]) == (403, "origin_not_allowed")
    assert await denied(edge, host="evil.example") == (403, "host_not_allowed")


async def test_only_responses_take_websockets():
    assert await denied(Edge(), "/v1/realtime") == (404, "not_found")


async def test_a_server_that_cannot_deny_closes():
    async with Edge(gateway_token="t").socket(denial=False) as socket:
        assert await socket.next() == {"type": "websocket.close", "code": 1008}


async def test_a_closed_gateway_serves_nobody():
    edge = Edge()
    await edge.gateway.aclose()
    with pytest.raises(RuntimeError):
        await edge.post()
