import asyncio
import json

import pytest
from aiohttp import web

from engine.model import EpochReason, Kind, Mode, Policy, Reason, Status
from tests.support.fake_driver import AUTH, KEYS, Edge
from tests.support.plain_upstream import upstream

PATH = "/v1/responses/compact"
BODY = {"model": "m", "input": [{"role": "user", "content": "hi"}], "prompt_cache_key": "s"}
ANSWER = {
    "id": "resp_c",
    "object": "response.compaction",
    "output": [],
    "usage": {
        "input_tokens": 900,
        "input_tokens_details": {"cached_tokens": 800},
        "output_tokens": 50,
        "total_tokens": 950,
    },
}


async def compacted(handler, body=BODY, **more):
    async with upstream(handler) as url:
        edge = Edge(upstream=url)
        exchange = await edge.post(PATH, body, **more)
        await edge.gateway.aclose()
    return exchange, edge


def answering(value, status=200, headers=None):
    async def handler(request):
        handler.seen.append((request.raw_path, await request.read(), dict(request.headers)))
        return web.Response(
            status=status,
            body=value if isinstance(value, bytes) else json.dumps(value).encode(),
            headers={"content-type": "application/json"} | (headers or {}),
        )

    handler.seen = []
    return handler


def epoch_of(edge, session="s"):
    scope = edge.driver.sessions.scope((KEYS.hmac("tenant", "Bearer sk-test"), "default", session))
    return scope.epoch(session)


async def test_a_compaction_is_passed_through_and_is_a_row():
    handler = answering(ANSWER, headers={"x-request-id": "r"})
    got, edge = await compacted(handler)
    assert (got.status, json.loads(got.body), got.headers["x-request-id"]) == (200, ANSWER, "r")
    [(path, body, headers)] = handler.seen
    assert (path, json.loads(body)) == (PATH, BODY)
    assert headers["Authorization"] == "Bearer sk-test"
    [row] = edge.facts
    assert (row.kind, row.status, row.mode, row.reason) == (
        Kind.COMPACTION,
        Status.COMPLETED,
        Mode.HTTP_FULL,
        Reason.CONTINUATION_OFF,
    )
    assert (row.usage.input_tokens, row.usage.cached_tokens, row.usage.output_tokens) == (
        900,
        800,
        50,
    )
    assert (row.session, row.model, row.items_total, row.attempts) == ("s", "m", 1, 1)
    assert (row.response_id, row.http_status) == ("resp_c", 200)
    assert got.headers["x-warmline-turn"] == row.turn_id
    assert got.headers["x-warmline-mode"] == "http_full"
    assert edge.driver.calls == []


async def test_the_engine_learns_that_the_sessions_history_was_compacted():
    _, edge = await compacted(answering(ANSWER))
    assert epoch_of(edge).pending == EpochReason.COMPACTION


async def test_a_compaction_without_a_session_is_a_row_of_an_unnamed_one():
    _, edge = await compacted(answering(ANSWER), body={"model": "m", "input": "hi"})
    assert edge.facts[0].session == f"anon-{edge.facts[0].turn_id}"


@pytest.mark.parametrize(
    ("status", "expected"), [(400, Status.ERROR), (429, Status.RATE_LIMITED), (500, Status.ERROR)]
)
async def test_a_failed_compaction_reaches_the_client_unchanged_and_resets_nothing(
    status, expected
):
    error = {"error": {"message": "m", "code": "c"}}
    got, edge = await compacted(answering(error, status, {"retry-after": "7"}))
    assert (got.status, json.loads(got.body), got.headers["retry-after"]) == (status, error, "7")
    [row] = edge.facts
    assert (row.status, row.http_status, row.error_code) == (expected, status, "c")
    assert epoch_of(edge).pending is None


@pytest.mark.parametrize("answer", [b"no json", b"[]", b'{"id":7,"usage":3}'])
async def test_an_answer_that_cannot_be_read_is_passed_on_with_usage_unknown(answer):
    got, edge = await compacted(answering(answer))
    assert got.body == answer
    assert (edge.facts[0].usage.input_tokens, edge.facts[0].response_id) == (None, None)


async def test_a_body_that_cannot_be_read_is_passed_on_as_it_is():
    handler = answering({"error": {"code": "invalid_json"}}, 400)
    got, edge = await compacted(handler, body=b"no json")
    assert handler.seen[0][1] == b"no json"
    assert (got.status, edge.facts[0].model) == (400, None)


async def test_a_body_that_is_refused_is_a_row_of_a_compaction():
    edge = Edge(max_body_bytes=4)
    got = await edge.post(PATH, b"12345")
    assert got.status == 413
    assert [(row.kind, row.status) for row in edge.facts] == [(Kind.COMPACTION, Status.REFUSED)]


async def test_an_unreachable_upstream_is_502_and_a_row():
    edge = Edge(upstream="http://127.0.0.1:9/v1")
    got = await edge.post(PATH, BODY)
    await edge.gateway.aclose()
    assert (got.status, got.error["code"]) == (502, "upstream_unreachable")
    assert [(row.status, row.http_status) for row in edge.facts] == [(Status.ERROR, 502)]
    assert got.headers["x-warmline-turn"] == edge.facts[0].turn_id


async def test_half_a_request_is_no_turn():
    edge = Edge()
    exchange = edge.start(PATH, chunks=[])
    exchange.leave()
    await exchange.run()
    assert (exchange.sent, edge.facts) == ([], [])


async def test_a_client_that_leaves_is_waited_for_within_the_drain_and_is_a_row():
    arrived = asyncio.Event()

    async def handler(_request):
        arrived.set()
        await asyncio.Event().wait()

    async with upstream(handler) as url:
        edge = Edge(upstream=url, policy=Policy(drain_timeout=0.0))
        exchange = edge.start(PATH, BODY, headers=[AUTH])
        task = asyncio.ensure_future(exchange.run())
        await arrived.wait()
        exchange.leave()
        await task
        await edge.gateway.aclose()
    assert exchange.sent == []
    assert [row.status for row in edge.facts] == [Status.CLIENT_CLOSED]
