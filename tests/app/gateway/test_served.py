"""The gateway on a port, with the real engine behind it and the built-in provider upstream."""

import asyncio
import gzip
import io
import json
import time

import aiohttp
import pytest
import zstandard
from aiohttp import web
from openai import AsyncOpenAI

from app.demo.provider.actions import Gate
from app.demo.provider.faults import Hold, HttpError, RefuseUpgrade, silence
from app.settings import load
from tests.support.plain_upstream import upstream
from tests.support.provider import AUTH, MODEL, provider, user
from tests.support.service import running


def config(folder, upstream, *, policy="", **flags):
    file = folder / "warmline.toml"
    file.write_text(f"[upstreams.default]\n{policy}\n")
    given = {"database": str(folder / "ledger.sqlite3"), "upstream": upstream}
    return load(config=file, environ={}, flags=given | flags)


def body(given="hi", **fields):
    return {"model": MODEL, "input": given, "store": False, "stream": True} | fields


def create(given="hi", **fields):
    return {"type": "response.create", "model": MODEL, "store": False, "input": given} | fields


async def events_of(socket, until=("response.completed", "response.incomplete", "error")):
    """The events of one response."""
    found = []
    async with asyncio.timeout(10):
        while not found or found[-1]["type"] not in until:
            found.append(json.loads((await socket.receive()).data))
    return found


def sockets(live, path="/v1/responses", **headers):
    return live.http.ws_connect(live.url.replace("http", "ws") + path, headers=AUTH | headers)


@pytest.mark.parametrize(
    ("name", "compress"), [("gzip", gzip.compress), ("zstd", zstandard.compress)]
)
async def test_a_compressed_body_is_served_like_a_plain_one(tmp_path, name, compress):
    async with provider(replies=["hello"]) as up, running(config(tmp_path, up.url)) as live:
        data = compress(json.dumps(body("compressed", stream=False)).encode())
        headers = AUTH | {"content-encoding": name, "content-type": "application/json"}
        async with live.http.post(f"{live.url}/v1/responses", data=data, headers=headers) as got:
            answer = await got.json()
        assert (got.status, answer["status"]) == (200, "completed")
        assert up.core.log[-1].body["input"] == "compressed"


async def test_events_are_relayed_byte_for_byte_from_an_http_upstream(tmp_path):
    async with provider(replies=["北é🙂"] * 2) as up:
        settings = config(tmp_path, up.url, policy='continuation = "off"')
        async with running(settings) as live:
            texts = []
            for url in (up.url, f"{live.url}/v1"):
                async with live.http.post(f"{url}/responses", json=body(), headers=AUTH) as got:
                    texts.append((got.headers["content-type"], await got.text()))
            through, direct = texts[1], texts[0]
            assert through[0] == direct[0]
            shape = [line for line in through[1].splitlines() if line.startswith("event:")]
            assert shape == [line for line in direct[1].splitlines() if line.startswith("event:")]
            assert "北é🙂" in through[1] or "\\u5317" in through[1]


async def test_the_official_client_streams_and_continues(tmp_path):
    async with provider() as up, running(config(tmp_path, up.url)) as live:
        async with AsyncOpenAI(base_url=f"{live.url}/v1", api_key="sk-test") as client:
            history = []
            for text in ("one", "two"):
                history.append(user(text))
                raw = await client.responses.with_raw_response.create(
                    model=MODEL, input=history, store=False, prompt_cache_key="s"
                )
                history += [item.model_dump(exclude_unset=True) for item in raw.parse().output]
        assert raw.headers["x-warmline-mode"] == "ws_incremental"
        rows = await live.rows(2)
        assert [row["client"] for row in rows] == ["AsyncOpenAI/Python"] * 2


@pytest.mark.parametrize(
    "path", ["/v1/responses", "/codex/responses", "/backend-api/codex/responses"]
)
async def test_a_client_socket_with_its_own_anchors_is_served_under_every_alias(tmp_path, path):
    async with provider() as up, running(config(tmp_path, up.url)) as live:
        async with sockets(live, path) as socket:
            await socket.send_json(create("one"))
            first = (await events_of(socket))[-1]["response"]
            await socket.send_json(create([user("two")], previous_response_id=first["id"]))
            second = (await events_of(socket))[-1]
        assert second["type"] == "response.completed"
        rows = await live.rows(2)
        assert [(row["mode"], row["client_transport"]) for row in rows] == [
            ("ws_incremental", "ws"),
            ("ws_full", "ws"),
        ]


async def test_a_session_outlives_the_client_socket(tmp_path):
    """The upstream connection stays; who resumes uploads only what is new."""
    async with provider() as up, running(config(tmp_path, up.url)) as live:
        history = [user("one")]
        for text in (None, "two"):
            if text is not None:
                history.append(user(text))
            async with sockets(live, **{"thread-id": "t"}) as socket:
                await socket.send_json(create(history))
                history += (await events_of(socket))[-1]["response"]["output"]
        rows = await live.rows(2)
        assert [row["mode"] for row in rows] == ["ws_incremental", "ws_full"]
        assert rows[0]["items_sent"] == 1
        assert len(up.core.live()) == 1


async def test_an_upgrade_is_426_where_continuation_is_off(tmp_path):
    async with provider() as up:
        async with running(config(tmp_path, up.url, policy='continuation = "off"')) as live:
            with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
                await sockets(live)
            assert caught.value.status == 426
        assert list(up.core.log) == []


async def test_the_official_client_is_continued_over_http_from_kept_responses(tmp_path):
    policy = 'continuation = "store"\nmodels = ["gpt-*"]'
    async with provider() as up, running(config(tmp_path, up.url, policy=policy)) as live:
        async with AsyncOpenAI(base_url=f"{live.url}/v1", api_key="sk-test") as client:
            history = []
            for text in ("one", "two"):
                history.append(user(text))
                raw = await client.responses.with_raw_response.create(
                    model=MODEL, input=history, prompt_cache_key="s"
                )
                history += [item.model_dump(exclude_unset=True) for item in raw.parse().output]
        assert raw.headers["x-warmline-mode"] == "http_incremental"
        rows = await live.rows(2)
        assert [(row["mode"], row["reason"]) for row in rows] == [
            ("http_incremental", "ok"),
            ("http_full", "no_baseline"),
        ]
        assert up.core.log[-1].body["input"] == [user("two")]
        assert up.core.upgrades == []
        async with live.http.get(f"{live.url}/metrics") as got:
            text = await got.text()
        assert 'warmline_continuation_continuations_total{upstream="default"} 1.0' in text
        assert 'warmline_continuation_chains{upstream="default"} 2.0' in text
        assert 'warmline_continuation_unsupported_bases{upstream="default"} 0.0' in text


async def test_an_observed_upstream_gets_what_the_clients_send_and_rows_say_what_could_have_been(
    tmp_path,
):
    policy = 'continuation = "observe"'
    async with provider() as up, running(config(tmp_path, up.url, policy=policy)) as live:
        sent, history = [], []
        for text in ("one", "two"):
            history.append(user(text))
            sent.append(json.dumps(body(history, stream=False), indent=1))
            headers = AUTH | {"content-type": "application/json", "session-id": "h"}
            url = f"{live.url}/v1/responses"
            async with live.http.post(url, data=sent[-1], headers=headers) as got:
                history += (await got.json())["output"]
        history = []
        async with sockets(live, **{"session-id": "w"}) as socket:
            for text in ("three", "four"):
                history.append(user(text))
                sent.append(json.dumps(create(history), indent=1))
                await socket.send_str(sent[-1])
                history += (await events_of(socket))[-1]["response"]["output"]
        assert sent == [attempt.frame for attempt in up.core.log]
        assert ["http", "http", "ws", "ws"] == [attempt.transport for attempt in up.core.log]
        found = [
            (row["mode"], row["reason"], row["eligible"], row["shadow_mode"], row["shadow_reason"])
            for row in await live.rows(4)
        ]
        assert found == [
            (mode, "continuation_off", False, shadow, reason)
            for mode in ("ws_full", "http_full")
            for shadow, reason in (("ws_incremental", "ok"), ("ws_full", "no_baseline"))
        ]


@pytest.mark.parametrize("status", [401, 429])
async def test_what_the_upstream_answers_to_the_upgrade_reaches_the_client(tmp_path, status):
    refusal = RefuseUpgrade(status, headers=(("retry-after", "9"),), code="c")
    async with provider() as up, running(config(tmp_path, up.url)) as live:
        up.core.faults.on_upgrade(refusal, times=2)
        async with sockets(live) as socket:
            await socket.send_json(create())
            [error] = await events_of(socket)
            assert (error["type"], error["status"], error["error"]["code"]) == (
                "error",
                status,
                "c",
            )
        async with live.http.post(f"{live.url}/v1/responses", json=body(), headers=AUTH) as got:
            answer = await got.json()
        assert (got.status, answer["error"]["code"]) == (status, "c")
        assert got.headers["retry-after"] == "9"


async def test_an_error_before_the_stream_keeps_its_status(tmp_path):
    """CASES 65: never an empty 200."""
    fault = HttpError(400, "no", code="bad", kind="invalid_request_error")
    async with provider() as up, running(config(tmp_path, up.url)) as live:
        up.core.faults.on_request(fault)
        async with live.http.post(f"{live.url}/v1/responses", json=body(), headers=AUTH) as got:
            answer = await got.json()
        assert (got.status, answer["error"]["code"]) == (400, "bad")
        [row] = await live.rows(1)
        assert (row["http_status"], row["status"]) == (400, "error")


# --- the client leaves -------------------------------------------------------------------------


async def test_a_client_that_leaves_during_silence_is_noticed_within_a_second(tmp_path):
    policy = "drain_timeout = 0.05"
    async with provider() as up, running(config(tmp_path, up.url, policy=policy)) as live:
        up.core.faults.on_request(silence())
        request = asyncio.ensure_future(
            live.http.post(f"{live.url}/v1/responses", json=body(), headers=AUTH)
        )
        await up.wait_until(lambda: len(up.core.log) == 1)
        left = time.monotonic()
        request.cancel()
        [row] = await live.rows(1)
        assert time.monotonic() - left < 1
        assert row["status"] == "client_closed"


async def test_what_a_client_left_behind_is_read_to_its_end_for_its_usage(tmp_path):
    gate = Gate()
    async with provider() as up, running(config(tmp_path, up.url)) as live:
        up.core.faults.on_request(Hold(gate, after=2))
        async with live.http.post(f"{live.url}/v1/responses", json=body(), headers=AUTH) as got:
            await got.content.readany()
            got.close()
        gate.open()
        [row] = await live.rows(1)
        assert row["status"] == "client_closed"
        assert row["input_tokens"] is not None


async def test_a_client_socket_that_leaves_in_mid_turn_is_a_row(tmp_path):
    policy = "drain_timeout = 0.05"
    async with provider() as up, running(config(tmp_path, up.url, policy=policy)) as live:
        up.core.faults.on_request(silence())
        socket = await sockets(live)
        await socket.send_json(create())
        await up.wait_until(lambda: len(up.core.log) == 1)
        await socket.close()
        [row] = await live.rows(1)
        assert (row["status"], row["client_transport"]) == ("client_closed", "ws")


# --- tunnels -----------------------------------------------------------------------------------


async def test_lanes_of_one_client_socket_keep_apart_through_a_tunnel(tmp_path):
    """CASES 56."""
    async with provider(replies=["of a", "of b"]) as up, running(config(tmp_path, up.url)) as live:
        async with sockets(live) as socket:
            for lane in ("a", "b"):
                await socket.send_json(create(f"for {lane}", stream_id=lane))
            ends = {}
            async with asyncio.timeout(10):
                while len(ends) < 2:
                    event = json.loads((await socket.receive()).data)
                    assert event["stream_id"] in ("a", "b")
                    if event["type"] == "response.completed":
                        ends[event["stream_id"]] = event["response"]["id"]
        rows = await live.rows(2)
        assert {row["response_id"] for row in rows} == set(ends.values())
        assert {row["reason"] for row in rows} == {"continuation_off"}
        assert {row["status"] for row in rows} == {"completed"}


async def test_an_interrupt_reaches_the_response_that_is_running(tmp_path):
    gate = Gate()
    async with (
        provider(replies=["a long answer " * 20]) as up,
        running(config(tmp_path, up.url)) as live,
    ):
        up.core.faults.on_request(Hold(gate, after=3))
        async with sockets(live) as socket:
            await socket.send_json(create())
            first = json.loads((await socket.receive()).data)
            response_id = first["response"]["id"]
            await socket.send_json({"type": "response.interrupt", "response_id": response_id})
            await up.wait_until(lambda: len(up.core.log) == 2)
            gate.open()
            last = (await events_of(socket))[-1]
            assert last["type"] == "response.incomplete"
            assert last["response"]["incomplete_details"]["reason"] == "interrupted"
            follow = create([user("go on")], previous_response_id=response_id)
            await socket.send_json(follow)
            assert (await events_of(socket))[-1]["type"] == "response.completed"
        rows = await live.rows(2)
        assert [row["status"] for row in rows] == ["completed", "incomplete"]
        assert rows[0]["reason"] == "client_anchored"
    assert {attempt.connection for attempt in up.core.log} == {up.core.log[0].connection}


# --- pass-through, compaction ------------------------------------------------------------------


async def test_other_routes_pass_through_and_compaction_is_a_row(tmp_path):
    async with provider() as up, running(config(tmp_path, up.url)) as live:
        async with live.http.get(f"{live.url}/codex/models?client_version=1", headers=AUTH) as got:
            assert got.status == 200
            await got.read()
        given = {"model": MODEL, "input": [user("one")]}
        url = f"{live.url}/v1/responses/compact"
        async with live.http.post(url, json=given, headers=AUTH) as got:
            answer = await got.json()
        assert got.status == 200
        assert got.headers["x-warmline-reason"] == "continuation_off"
        [row] = await live.rows(1)
        assert (row["kind"], row["response_id"]) == ("compaction", answer["id"])


async def test_the_head_of_an_answer_that_passes_through_does_not_wait_for_its_body(tmp_path):
    go_on = asyncio.Event()

    async def handler(request):
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        await go_on.wait()
        await answer.write(b"data: {}\n\n")
        return answer

    async with upstream(handler) as url, running(config(tmp_path, url)) as live:
        async with asyncio.timeout(5):
            got = await live.http.get(f"{live.url}/v1/responses/resp_1?stream=true", headers=AUTH)
        go_on.set()
        assert (got.status, await got.read()) == (200, b"data: {}\n\n")


# --- access ------------------------------------------------------------------------------------


async def test_without_the_gateway_token_nothing_reaches_the_upstream(tmp_path):
    async with provider() as up:
        async with running(config(tmp_path, up.url, gateway_token="secret-token")) as live:
            async with live.http.post(f"{live.url}/v1/responses", json=body(), headers=AUTH) as got:
                assert got.status == 401
            with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
                await sockets(live)
            assert caught.value.status == 401
            async with sockets(live, **{"x-warmline-token": "secret-token"}) as socket:
                await socket.send_json(create())
                assert (await events_of(socket))[-1]["type"] == "response.completed"
            assert len(await live.rows(1)) == 1
        [attempt] = up.core.log
        assert "secret-token" not in str(attempt.headers)


# --- bounds ------------------------------------------------------------------------------------


async def test_a_body_of_ten_megabytes_is_served(tmp_path):
    big = json.dumps(body([user("x" * 4000) for _ in range(2_500)])).encode()
    async with provider() as up, running(config(tmp_path, up.url)) as live:
        url = f"{live.url}/v1/responses"
        async with live.http.post(url, data=io.BytesIO(big), headers=AUTH) as got:
            assert got.status == 200
            await got.read()
        [row] = await live.rows(1)
        assert (row["items_total"], row["bytes_total"]) == (2_500, len(big))


async def test_the_providers_own_word_on_the_cache_is_in_the_row_where_it_is_wanted(tmp_path):
    policy = "diagnostics = true"
    async with provider() as up, running(config(tmp_path, up.url, policy=policy)) as live:
        history, answers = [user("x" * 8_000)], []
        for _ in range(2):
            asked = body(history, model="gpt-5.6-sol", stream=False, prompt_cache_key="s")
            url = f"{live.url}/v1/responses"
            async with live.http.post(url, json=asked, headers=AUTH) as got:
                answers.append(await got.json())
            history = [*history, *answers[-1]["output"], user("more")]
        assert answers[1]["prompt_cache_diagnostics"] == {"type": "cache_hit"}
        rows = await live.rows(2)
        assert ["cache_hit", None] == [row["provider_miss_reason"] for row in rows]
        assert "ws_incremental" == rows[0]["mode"]
