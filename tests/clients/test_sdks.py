"""The OpenAI SDK and the Agents SDK, in an environment of their own, through the whole service."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.codex import ROOT, missing
from tests.support.stack import stack

pytestmark = [pytest.mark.clients, pytest.mark.timeout(120)]

INSTALL = (
    "python3 -m venv .cache/clients && "
    ".cache/clients/bin/pip install -r tests/clients/requirements.txt"
)
SCRIPTS = Path(__file__).parent / "scripts"


def run(script: str, *arguments: str, folder: Path) -> dict[str, Any]:
    """What the script printed; fails with its errors if it failed."""
    python = ROOT / ".cache" / "clients" / "bin" / "python"
    package = "agents" if "agents" in script else "openai"
    if not list((ROOT / ".cache" / "clients").glob(f"lib/python3*/site-packages/{package}")):
        missing("The SDKs", INSTALL)
    done = subprocess.run(
        [str(python), str(SCRIPTS / script), *arguments],
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("how", "transport"), [("json", "http"), ("stream", "sse")])
def test_the_sdk_replays_and_the_upstream_gets_the_end(
    tmp_path: Path, how: str, transport: str
) -> None:
    with stack(tmp_path) as it:
        told = run("openai_sdk.py", it.url, how, "4", folder=tmp_path)
        rows = it.rows()

        assert told["last"].startswith("Done:")
        assert told["ids"] == [row.response_id for row in rows]
        assert [row.mode for row in rows] == ["ws_full"] + 4 * ["ws_incremental"]
        assert [row.reason for row in rows] == ["no_baseline"] + 4 * ["ok"]
        assert [row.items_sent for row in rows] == 5 * [1]
        assert {row.client_transport for row in rows} == {transport}
        assert {row.session for row in rows} == {"sdk-session"}
        assert it.checked() == 5


def test_the_sdk_over_a_websocket_keeps_its_own_anchors(tmp_path: Path) -> None:
    with stack(tmp_path) as it:
        told = run("openai_sdk.py", it.url, "socket", "4", folder=tmp_path)
        rows = it.rows()

        assert told["last"].startswith("Done:")
        assert told["ids"] == [row.response_id for row in rows]
        assert [row.previous_response_id for row in rows] == [None, *told["ids"][:-1]]
        assert [row.mode for row in rows] == ["ws_full"] + 4 * ["ws_incremental"]
        assert [row.reason for row in rows] == ["no_baseline"] + 4 * ["ok"]
        assert {row.client_transport for row in rows} == {"ws"}
        assert len({row.session for row in rows}) == 1
        assert it.checked() == 5


@pytest.mark.parametrize(("how", "transport"), [("http", "http"), ("socket", "ws")])
def test_agents_that_replay_are_continued(tmp_path: Path, how: str, transport: str) -> None:
    with stack(tmp_path) as it:
        told = run("openai_agents.py", it.url, how, "3", folder=tmp_path)
        rows = it.rows()

        assert told["last"].startswith("Done:")
        assert told["ids"] == [row.response_id for row in rows]
        assert [row.mode for row in rows] == ["ws_full"] + 7 * ["ws_incremental"]
        assert [row.reason for row in rows] == ["no_baseline"] + 7 * ["ok"]
        assert [row.items_sent for row in rows] == 8 * [1]
        assert {row.client_transport for row in rows} == {transport}
        assert len({row.session for row in rows}) == 1
        assert not any("previous_response_id" in e.body for e in it.tap.exchanges)
        assert it.checked() == 8


@pytest.mark.parametrize(
    ("how", "mode"), [("http", "http_incremental"), ("socket", "ws_incremental")]
)
def test_agents_that_name_stored_responses_go_through_unchanged(
    tmp_path: Path, how: str, mode: str
) -> None:
    with stack(tmp_path) as it:
        told = run("openai_agents.py", it.url, how, "2", "anchored", folder=tmp_path)
        rows = it.rows()

        assert told["ids"] == [row.response_id for row in rows]
        assert len(rows) == 6
        for row, exchange in zip(rows, it.tap.exchanges, strict=True):
            named = exchange.body.get("previous_response_id")
            if named is not None:
                assert (row.mode, row.reason) == (mode, "client_anchored")
                assert (row.previous_response_id, row.items_sent) == (named, 1)
        assert sum(row.reason == "client_anchored" for row in rows) == 4
        assert it.checked() == 6
