"""The service as a whole: a client's request becomes an answer, a row, a figure and a live row."""

import asyncio
import json
import threading

import pytest
from starlette.testclient import TestClient

from app.errors import LedgerError
from app.ledger.probe import Probe
from app.main import create_app
from tests.support.provider import AUTH, MODEL, provider
from tests.support.service import running, settings

CANARY = "canary-77aa"


def message(text):
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def ask(url, history, **more):
    body = {"model": MODEL, "input": history, "stream": True, "prompt_cache_key": "agent-7"} | more
    return f"{url}/v1/responses", {"json": body, "headers": AUTH}


async def turn(live, history, **more):
    """One streamed turn; the history grows by the answer."""
    url, options = ask(live.url, history, **more)
    async with live.http.post(url, **options) as answer:
        assert answer.status == 200, await answer.text()
        async for line in answer.content:
            if line.startswith(b"data: {"):
                event = json.loads(line[6:])
                if event["type"] == "response.output_item.done":
                    history.append(event["item"])
        return dict(answer.headers)


async def test_a_conversation_is_continued_recorded_and_seen(tmp_path):
    async with provider() as up, running(settings(tmp_path, up.url)) as live:
        history = []
        for text in ("one", "two", "three"):
            history.append(message(text))
            headers = await turn(live, history)
        assert headers["x-warmline-mode"] == "ws_incremental"
        rows = await live.rows()
        assert [row["mode"] for row in rows] == ["ws_incremental", "ws_incremental", "ws_full"]
        assert rows[0]["turn_id"] == headers["x-warmline-turn"]
        assert rows[0]["session"] == "agent-7"
        assert rows[0]["items_sent"] == 1
        summary = await live.get("/api/summary")
        assert summary["continuation"]["incremental"] == 2
        chart = await live.get("/api/charts/modes")
        assert chart["summary"] == "3 turns: 66.7 % incremental."
        metrics = await live.text("/metrics")
        assert 'mode="ws_incremental"' in metrics
        assert "warmline_ledger_rows_written_total 3.0" in metrics


async def test_a_row_reaches_every_browser_as_it_is_written(tmp_path):
    async with provider() as up, running(settings(tmp_path, up.url)) as live:
        url = live.url.replace("http", "ws") + "/api/live"
        async with (
            live.http.ws_connect(url) as first,
            live.http.ws_connect(url + "?mode=!ws_full") as second,
            asyncio.timeout(10),
        ):
            for socket in (first, second):
                hello = await socket.receive_json()
                assert (hello["seq"], hello["type"]) == (0, "hello")
            history = [message("one")]
            await turn(live, history)
            history.append(message("two"))
            await turn(live, history)
            seen = []
            while len(seen) < 2:
                seen += (await first.receive_json())["rows"]
            assert [row["mode"] for row in seen] == ["ws_full", "ws_incremental"]
            assert all(row["price_note"] for row in seen)
            only = await second.receive_json()
            assert (only["seq"], only["type"]) == (1, "rows")
            assert [row["mode"] for row in only["rows"]] == ["ws_incremental"]
            assert only["rows"][0] == (await live.rows())[0]


async def test_the_settings_show_what_became_of_an_upstreams_turns(tmp_path):
    async with provider() as up, running(settings(tmp_path, up.url)) as live:
        history = []
        for text in ("one", "two"):
            history.append(message(text))
            await turn(live, history)
        await live.rows(2)
        (default,) = (await live.get("/api/settings"))["upstreams"]
        figures = default["figures"]
        assert (2, 1, 1, 1, 0) == tuple(
            figures[name]
            for name in ("requests", "continuations", "delta_items", "chains", "unsupported_bases")
        )


async def test_the_gateway_stands_before_the_dashboards_own_checks(tmp_path):
    config = settings(tmp_path, "http://127.0.0.1:1/v1", token="secret-token")
    async with running(config) as live:
        async with live.http.get(live.url + "/api/summary") as refused:
            assert refused.status == 401
        url, options = ask(live.url, [message("x")])
        async with live.http.post(url, **options) as answer:
            assert answer.status == 502
            assert "x-warmline-turn" in answer.headers
            assert "content-security-policy" not in answer.headers


async def test_a_request_that_is_passed_through_is_counted_and_no_row(tmp_path):
    async with provider() as up, running(settings(tmp_path, up.url)) as live:
        async with live.http.get(live.url + "/v1/models", headers=AUTH) as answer:
            assert answer.status == 200
            await answer.read()
        metrics = await live.text("/metrics")
        line = 'warmline_passed_requests_total{code_class="2xx",upstream="default"} 1.0'
        assert line in metrics
        assert await live.rows() == []


async def test_nothing_of_a_prompt_or_a_credential_is_shown_anywhere(tmp_path):
    async with provider(replies=[CANARY]) as up, running(settings(tmp_path, up.url)) as live:
        history = [message(CANARY)]
        await turn(live, history, instructions=CANARY, metadata={"k": CANARY})
        history[0] = message(CANARY + " edited")
        history.append(message("more"))
        await turn(live, history)
        await live.rows(2)
        for path in ("/api/requests", "/api/requests.csv", "/api/summary", "/metrics"):
            text = await live.text(path)
            assert CANARY not in text
            assert "sk-test" not in text
        while_it_runs = written_to(tmp_path)
        assert any(name.endswith(".journal") for name in while_it_runs)
    for text in (*while_it_runs.values(), *written_to(tmp_path).values()):
        assert CANARY.encode() not in text
        assert b"sk-test" not in text


async def test_the_event_loop_goes_on_while_the_probe_of_the_ledger_ends(tmp_path, monkeypatch):
    loop, close, went_on = asyncio.get_running_loop(), Probe.close, []

    def closing(probe: Probe) -> None:
        turned = threading.Event()
        loop.call_soon_threadsafe(turned.set)
        went_on.append(turned.wait(5))
        close(probe)

    monkeypatch.setattr(Probe, "close", closing)
    async with running(settings(tmp_path, "http://127.0.0.1:1/v1")):
        pass
    assert [True] == went_on


def written_to(folder) -> dict[str, bytes]:
    """What stands in all files below a folder."""
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_names_are_hashed_where_that_is_asked_for(tmp_path):
    async with provider() as up:
        config = settings(tmp_path, up.url, pseudonymize="true")
        async with running(config) as live:
            await turn(live, [message("x")])
            (row,) = await live.rows()
            assert row["session"] != "agent-7"
            assert row["session"] == live.service.keys.hmac("name", "agent-7")
            assert row["prompt_cache_key"] == row["session"]
            assert not any(b"agent-7" in text for text in written_to(tmp_path).values())


async def test_the_last_rows_are_written_before_the_service_ends(tmp_path):
    async with provider() as up:
        config = settings(tmp_path, up.url)
        async with running(config) as live:
            await turn(live, [message("x")])
            live.service.writer._linger = 60.0
            await turn(live, [message("y")])
        assert live.service.writer.state().queued == 0
        assert live.service.web.engine is None
        async with running(config) as live:
            assert len(await live.rows()) == 2


def test_another_key_than_the_ledgers_stops_the_start(tmp_path):
    config = settings(tmp_path, "http://127.0.0.1:1/v1")
    with TestClient(create_app(config), base_url="http://127.0.0.1"):
        pass
    config.key_file.unlink()
    with pytest.raises(LedgerError) as caught, TestClient(create_app(config)):
        pass
    assert caught.value.code == "key_mismatch"


def test_the_application_can_start_again_after_its_end(tmp_path):
    app = create_app(settings(tmp_path, "http://127.0.0.1:1/v1"))
    for _ in range(2):
        with TestClient(app, base_url="http://127.0.0.1") as client:
            assert client.get("/readyz").json()["status"] == "ok"
            assert "warmline_ledger_queued_rows" in client.get("/metrics").text
    client = TestClient(app, base_url="http://127.0.0.1")
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200


def test_outside_of_its_lifespan_the_gateway_says_so(tmp_path):
    client = TestClient(
        create_app(settings(tmp_path, "http://127.0.0.1:1/v1")), base_url="http://127.0.0.1"
    )
    answer = client.post("/v1/responses", json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
