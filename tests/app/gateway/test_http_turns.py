import asyncio
import json

import pytest

from engine.driver import Event
from engine.model import Mode, Reason, Status
from engine.turn import session_key
from tests.support.fake_driver import AUTH, ENGINE_KEY, KEYS, Edge, plain, stream

CREATED = {"type": "response.created", "response": {"id": "r1"}}
DELTA = {"type": "response.output_text.delta", "delta": "北é🙂"}
DONE = {"type": "response.completed", "response": {"id": "r1"}}


def framed(*events):
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


async def test_events_of_a_websocket_reach_an_http_client_as_server_sent_events():
    got = await Edge(stream(CREATED, DELTA, DONE)).post(body={"stream": True})
    assert (got.status, got.body, got.complete) == (200, framed(CREATED, DELTA, DONE), True)
    assert got.headers["content-type"].startswith("text/event-stream")
    assert got.headers["cache-control"] == "no-cache"


async def test_bytes_of_an_http_upstream_are_relayed_as_they_came():
    raw = b": hello\n\n", b"event:x\r\ndata:{}\r\n\r\n"
    answer = stream(*(Event(b"", piece) for piece in raw), headers=[("content-type", "text/x")])
    got = await Edge(answer).post(body={"stream": True})
    assert got.pieces == list(raw)
    assert got.headers["content-type"] == "text/x"


async def test_every_answer_names_its_turn_its_mode_and_its_reason():
    edge = Edge(
        stream(DONE, mode=Mode.WS_FULL, reason=Reason.PREFIX_MISMATCH),
        plain(429, {"error": {}}, mode=None, reason=None),
    )
    first, second = await edge.post(), await edge.post()
    assert first.headers["x-warmline-turn"] == edge.driver.calls[0].turn_id
    assert first.headers["x-warmline-mode"] == "ws_full"
    assert first.headers["x-warmline-reason"] == "prefix_mismatch"
    assert second.headers["x-warmline-turn"] == edge.driver.calls[1].turn_id
    assert second.headers["x-warmline-mode"] == "none"


async def test_the_engine_gets_the_body_the_identity_and_the_headers_to_forward():
    edge = Edge(plain(200, {}))
    body = b'{"model": "m", "client_metadata":{"turn_id":"t1"}, "input": "caf\xc3\xa9"}'
    await edge.post(
        body=body,
        headers=[
            AUTH,
            ("session-id", "root"),
            ("thread-id", "child"),
            ("user-agent", "codex_exec/0.171.0 (x)"),
            ("x-warmline-token", "t"),
            ("x-warmline-epoch-reset", "summarize"),
            ("content-length", "9999"),
        ],
    )
    call = edge.call
    assert call.body == body
    assert call.tenant == KEYS.hmac("tenant", "Bearer sk-test")
    assert (call.session, call.root_session, call.turn_group) == ("child", "root", "t1")
    assert (call.client, call.client_version) == ("codex_exec", "0.171.0")
    assert (call.transport, call.socket, call.epoch_reset) == ("http", None, "summarize")
    assert (call.received_at, call.received_mono) == (edge.clock.now(), edge.clock.monotonic())
    assert [name for name, _ in call.headers] == [
        "authorization",
        "session-id",
        "thread-id",
        "user-agent",
    ]


async def test_a_stream_is_asked_for_by_the_body():
    edge = Edge(plain(200, {}), plain(200, {}))
    await edge.post(body={"stream": True})
    await edge.post(body={"stream": False})
    assert [call.transport for call in edge.driver.calls] == ["sse", "http"]


@pytest.mark.parametrize("status", [200, 400, 401, 404, 413, 429, 500, 502, 529])
async def test_status_body_and_retry_after_reach_the_client_unchanged(status):
    body = b'{ "error" : {"code":"x", "message":"as it came"} }'
    headers = [("content-type", "application/problem+json"), ("retry-after", "9")]
    got = await Edge(plain(status, body, headers=headers)).post()
    assert (got.status, got.body, got.complete) == (status, body, True)
    assert got.headers["retry-after"] == "9"
    assert got.headers["content-type"] == "application/problem+json"
    assert got.headers["content-length"] == str(len(body))


async def test_a_json_answer_without_a_type_is_json():
    got = await Edge(plain(200, {"id": "r1"}, headers=())).post()
    assert got.headers["content-type"] == "application/json"


@pytest.mark.parametrize("body", [b"", b"no json", b"[1]", b'{"input": "\\ud800"', b"\xff"])
async def test_what_is_no_json_object_is_the_providers_to_judge(body):
    edge = Edge(plain(400, {"error": {"message": "the provider's own"}}))
    got = await edge.post(body=body)
    assert edge.call.body == body
    assert (got.status, got.error["message"]) == (400, "the provider's own")


async def test_a_body_in_many_chunks_is_one_body():
    edge = Edge(plain(200, {}))
    await edge.post(chunks=[b'{"a"', b":", b"1}"])
    assert edge.call.body == b'{"a":1}'


async def test_a_body_that_is_refused_is_a_row_and_never_reaches_the_engine():
    edge = Edge(max_body_bytes=10)
    edge.clock.advance(5)
    got = await edge.post(body=b"x" * 11, headers=[AUTH, ("session-id", "s")])
    assert (got.status, got.error["code"]) == (413, "request_too_large")
    [row] = edge.facts
    assert (row.status, row.http_status, row.error_code) == (
        Status.REFUSED,
        413,
        "request_too_large",
    )
    assert (row.session, row.root_session, row.mode, row.attempts) == ("s", "s", None, 0)
    assert row.session_key == session_key(ENGINE_KEY, row.tenant, "default", "s")
    assert got.headers["x-warmline-turn"] == row.turn_id
    assert not edge.driver.calls


@pytest.mark.parametrize(("encoding", "status"), [("br", 415), ("zstd", 400), ("gzip", 400)])
async def test_an_encoding_that_cannot_be_read_is_refused(encoding, status):
    edge = Edge()
    got = await edge.post(body=b"{}", headers=[AUTH, ("content-encoding", encoding)])
    assert got.status == status
    assert [row.http_status for row in edge.facts] == [status]
    assert edge.facts[0].session == f"anon-{edge.facts[0].turn_id}"


async def test_half_a_request_is_no_turn():
    edge = Edge()
    exchange = edge.start(chunks=[])
    exchange.leave()
    await exchange.run()
    assert (exchange.sent, edge.facts, edge.driver.calls) == ([], [], [])


async def test_nothing_is_sent_before_the_answer_is_known():
    known = asyncio.Event()

    async def later(_call):
        await known.wait()
        return plain(429, {"error": {}})

    exchange = Edge(later).start()
    task = asyncio.ensure_future(exchange.run())
    await asyncio.sleep(0)
    assert exchange.sent == []
    known.set()
    await task
    assert exchange.status == 429


# --- the client leaves -------------------------------------------------------------------------


async def test_a_client_that_leaves_before_the_answer_is_told_to_the_engine_at_once():
    """CASES 136: also during a long silence before the first event."""

    async def silent(_call):
        await edge.driver.has_left.wait()
        return plain(502, {"error": {}})

    edge = Edge(silent)
    exchange = edge.start(body={"stream": True})
    exchange.leave()
    await exchange.run()
    assert edge.driver.left == [edge.call.turn_id]
    assert exchange.sent == []


async def test_a_client_that_leaves_in_mid_stream_gets_nothing_more_while_the_engine_drains():
    drained = []

    async def left():
        await edge.driver.has_left.wait()

    async def end():
        drained.append(True)

    answer = stream(CREATED, left, DELTA, DONE, end)
    answer.client_left = lambda: edge.driver.client_left("by the answer")
    edge = Edge(answer)
    exchange = edge.start(body={"stream": True})
    task = asyncio.ensure_future(exchange.run())
    await exchange.arrived.wait()
    exchange.leave()
    await task
    assert drained == [True]
    assert exchange.body == framed(CREATED)
    assert not exchange.complete
    assert len(edge.driver.left) == 1


async def test_a_server_that_raises_on_send_means_that_the_client_left():
    edge = Edge(stream(CREATED, DELTA, DONE))
    exchange = edge.start(body={"stream": True})

    async def broken():
        if len(exchange.sent) == 2:
            raise BrokenPipeError

    exchange.before_send = broken
    await exchange.run()
    assert edge.driver.left == [edge.call.turn_id]
    assert exchange.body == framed(CREATED)


async def test_a_slow_client_slows_the_upstream_down():
    taken = []

    def step(number):
        async def note():
            taken.append(number)

        return note

    may_send = asyncio.Semaphore(0)
    exchange = Edge(stream(step(1), CREATED, step(2), DELTA, step(3), DONE)).start()
    exchange.before_send = may_send.acquire
    task = asyncio.ensure_future(exchange.run())
    may_send.release()  # the head of the answer
    for _ in range(20):
        await asyncio.sleep(0)
    assert taken == [1]
    for _ in range(9):
        may_send.release()
    await task
    assert taken == [1, 2, 3]


# --- faults ------------------------------------------------------------------------------------


async def test_a_fault_of_the_engine_is_a_500_that_quotes_nothing(caplog):
    got = await Edge(RuntimeError("canary")).post()
    assert (got.status, got.error["code"]) == (500, "internal_error")
    assert b"canary" not in got.body
    assert "canary" not in caplog.text
    assert "RuntimeError" in caplog.text


async def test_a_fault_in_mid_stream_ends_the_connection_instead_of_the_answer(caplog):
    async def fail():
        raise RuntimeError("canary")

    exchange = Edge(stream(CREATED, fail)).start()
    with pytest.raises(ConnectionAbortedError) as caught:
        await exchange.run()
    assert not exchange.complete
    assert "canary" not in caplog.text + str(caught.value)


async def test_a_cancelled_request_ends_the_iteration_of_its_answer():
    ended = []

    async def events():
        try:
            yield Event(b'{"type":"response.created"}')
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    answer = stream()
    answer.events = events()
    exchange = Edge(answer).start()
    task = asyncio.ensure_future(exchange.run())
    await exchange.arrived.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


async def test_events_that_come_at_once_are_one_message():
    async def batches():
        yield [Event(json.dumps(event).encode()) for event in (CREATED, DELTA)]
        yield [Event(json.dumps(DONE).encode())]

    answer = stream()
    answer.batches = batches()
    got = await Edge(answer).post(body={"stream": True})
    assert got.pieces == [framed(CREATED, DELTA), framed(DONE)]


async def test_the_last_message_of_an_answer_holds_its_last_events():
    left = [[CREATED], [DONE]]

    async def batches():
        while left:
            yield [Event(json.dumps(event).encode()) for event in left.pop(0)]

    answer = stream()
    answer.batches, answer.is_over = batches(), lambda: not left
    exchange = Edge(answer).start(body={"stream": True})
    await exchange.run()
    bodies = [one for one in exchange.sent if one["type"] == "http.response.body"]
    assert [(framed(CREATED), True), (framed(DONE), False)] == [
        (one["body"], one["more_body"]) for one in bodies
    ]
