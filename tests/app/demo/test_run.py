"""The demo, whole: in this process, and as a process that a signal ends."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
import tomllib
from collections import defaultdict
from pathlib import Path

import aiohttp
import pytest
from openai import AsyncOpenAI

from app.demo.run import _listen, greeting, running
from app.errors import AppError
from app.main import create_app
from tests.support.service import Running

UNREACHABLE = "http://127.0.0.1:9/v1"
EXPECTED = {
    "coder": {("ws_full", "no_baseline"), ("ws_incremental", "ok")},
    "notes": {
        ("ws_full", "no_baseline"),
        ("ws_incremental", "ok"),
        ("ws_full", "prefix_mismatch"),
    },
    "writer": {("ws_full", "no_baseline"), ("ws_incremental", "ok"), ("ws_full", "epoch_reset")},
    "crew": {("ws_full", "no_baseline"), ("ws_incremental", "ok")},
    "legacy": {("http_full", "ws_rejected")},
}


async def test_each_agent_shows_what_it_stands_for_and_nothing_else():
    found = defaultdict(set)
    async with (
        running(create_app, speed=0, pace=0, days=0, openai=UNREACHABLE) as demo,
        aiohttp.ClientSession() as http,
    ):
        service = Running(demo.url, demo.app.state.service, http)
        async with asyncio.timeout(60):
            while set(demo.agents.rounds) != set(EXPECTED):
                await asyncio.sleep(0.05)
        rows = await service.rows()
        for agent in EXPECTED:
            shown = await service.get("/api/requests", q=f"{agent}-1", limit="500")
            for row in shown["rows"]:
                found[agent].add((row["mode"], row["reason"]))
    assert dict(found) == EXPECTED
    assert demo.agents.failures == 0
    assert {row["status"] for row in rows} == {"completed"}
    assert {row["source"] for row in rows} == {"sample"}
    assert {row["epoch_reset_reason"] for row in rows if row["reason"] == "epoch_reset"} == {
        "summarize"
    }
    helpers = [row for row in rows if "helper" in row["session"]]
    assert {row["root_session"].split("-")[0] for row in helpers} == {"crew"}


async def test_real_traffic_is_not_marked_as_sample():
    async with (
        running(create_app, speed=0, pace=1, days=0, openai=UNREACHABLE) as demo,
        aiohttp.ClientSession() as http,
    ):
        body = {"model": "gpt-5.5", "input": "hi"}
        async with http.post(demo.url + "/u/openai/v1/responses", json=body) as answer:
            assert answer.status == 502
        service = Running(demo.url, demo.app.state.service, http)
        assert await asyncio.to_thread(demo.app.state.service.writer.flush)
        rows = (await service.get("/api/requests", upstream="openai"))["rows"]
    assert [row["source"] for row in rows] == ["gateway"]


async def test_it_tells_where_to_look_and_how_to_point_a_client_at_it():
    async with running(create_app, speed=0, pace=1, days=0, openai=UNREACHABLE) as demo:
        told = greeting(demo)
        async with AsyncOpenAI(base_url=f"{demo.url}/v1", api_key="any", max_retries=0) as client:
            answer = await client.responses.create(model="gpt-5.5", input="hi", store=False)
    assert f"Dashboard   {demo.url}/\n" in told
    assert f"Alerts      {demo.url}/alerts\n" in told
    assert f"export OPENAI_BASE_URL={demo.url}/u/openai/v1\n" in told
    assert answer.status == "completed"
    config = textwrap.dedent(told.partition("config.toml:\n")[2].partition("\n\n")[0])
    provider = tomllib.loads(config)["model_providers"]["warmline"]
    assert provider["base_url"] == f"{demo.url}/u/openai/v1"
    assert provider["supports_websockets"] is True


async def test_the_history_is_on_the_page_from_the_start():
    async with (
        running(create_app, speed=0, pace=1, days=2, openai=UNREACHABLE) as demo,
        aiohttp.ClientSession() as http,
    ):
        service = Running(demo.url, demo.app.state.service, http)
        summary = await service.get("/api/summary", **{"from": "now-3d", "to": "now-50s"})
    assert demo.history_rows > 500
    assert summary["turns"]["total"] == demo.history_rows


async def test_the_planted_fault_is_told_and_later_its_end():
    """Both go through the outbox to the built-in receiver; at a tenth of the times."""
    async with (
        running(create_app, speed=0, pace=0.1, days=1, openai=UNREACHABLE) as demo,
        aiohttp.ClientSession() as http,
    ):
        async with asyncio.timeout(60):
            while len(demo.receiver.received()) < 2:
                await asyncio.sleep(0.05)
        service = Running(demo.url, demo.app.state.service, http)
        resolved, firing = (await service.get("/api/alerts/received"))["received"][-2:]
        link = firing["body"]["data"]["links"]["rows"]
        rows = (await service.get(link.removeprefix(demo.url).replace("/", "/api/", 1)))["rows"]
        groups = (await service.get("/api/breaks", **{"from": "now-2d"}))["groups"]
    (parted,) = (group for group in groups if group["reason"] == "prefix_mismatch")
    assert parted["turns"] > len(rows), "the history has breaks of the same cause"
    assert [(each["type"], each["verified"]) for each in (firing, resolved)] == [
        ("cache.alert.firing", True),
        ("cache.alert.resolved", True),
    ]
    assert firing["title"] == "Firing: Agent notes: prefix mismatches"
    told, ended = firing["body"]["data"], resolved["body"]["data"]
    assert told["alert_id"] == ended["alert_id"]
    assert (ended["cause"], ended["started_at"]) == ("cleared", told["started_at"])
    assert told["numerator"] == len(rows)
    assert all(row["session"].startswith("notes-") for row in rows)


async def test_a_port_that_is_taken_is_an_error_that_says_so():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AppError, match=f"Port {port} cannot be used"):
            async with running(create_app, port=port):
                pytest.fail("it started")


def test_small_frames_are_sent_at_once():
    """asyncio sees to that where the protocol of the socket is named, and only there."""
    with _listen(0) as listener:
        assert socket.IPPROTO_TCP == listener.proto


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(number: signal.Signals, tmp_path: Path):
    command = [sys.executable, "-c", "from app.cli import main; main()", "demo", "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path), "HOME": str(tmp_path / "home")},
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Ctrl-C ends it" in line:
                break
        assert len(list(tmp_path.glob("warmline-demo-*"))) == 1
        process.send_signal(number)
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    assert "The demo's database is removed." in out
    assert list(tmp_path.iterdir()) == []
