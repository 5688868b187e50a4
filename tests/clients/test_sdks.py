"""The OpenAI SDK and the Agents SDK, in an environment of their own, through the whole service."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
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


class Script:
    """A script that reads one job per line: loading an SDK takes longer than all that it does."""

    def __init__(self, name: str, package: str, folder: Path) -> None:
        python = ROOT / ".cache" / "clients" / "bin" / "python"
        if not list((ROOT / ".cache" / "clients").glob(f"lib/python3*/site-packages/{package}")):
            missing("The SDKs", INSTALL)
        self._errors = folder / "errors"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [str(python), str(SCRIPTS / name)],
                env={"PATH": os.environ["PATH"], "HOME": str(folder)},
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def __call__(self, *arguments: str) -> dict[str, Any]:
        """What came of one job; fails with the script's errors if it failed, also an earlier one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(arguments) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, self._errors.read_text()
        return json.loads(line)  # type: ignore[no-any-return]

    def end(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate(timeout=30)


@pytest.fixture(scope="module")
def openai_sdk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    script = Script("openai_sdk.py", "openai", tmp_path_factory.mktemp("openai"))
    yield script
    script.end()


@pytest.fixture(scope="module")
def agents_sdk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    script = Script("openai_agents.py", "agents", tmp_path_factory.mktemp("agents"))
    yield script
    script.end()


@pytest.mark.parametrize(("how", "transport"), [("json", "http"), ("stream", "sse")])
def test_the_sdk_replays_and_the_upstream_gets_the_end(
    tmp_path: Path, openai_sdk: Script, how: str, transport: str
) -> None:
    with stack(tmp_path) as it:
        told = openai_sdk(it.url, how, "4")
        rows = it.rows()

        assert told["last"].startswith("Done:")
        assert told["ids"] == [row.response_id for row in rows]
        assert [row.mode for row in rows] == ["ws_full"] + 4 * ["ws_incremental"]
        assert [row.reason for row in rows] == ["no_baseline"] + 4 * ["ok"]
        assert [row.items_sent for row in rows] == 5 * [1]
        assert {row.client_transport for row in rows} == {transport}
        assert {row.session for row in rows} == {"sdk-session"}
        assert it.checked() == 5


def test_the_sdk_over_a_websocket_keeps_its_own_anchors(tmp_path: Path, openai_sdk: Script) -> None:
    with stack(tmp_path) as it:
        told = openai_sdk(it.url, "socket", "4")
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
def test_agents_that_replay_are_continued(
    tmp_path: Path, agents_sdk: Script, how: str, transport: str
) -> None:
    with stack(tmp_path) as it:
        told = agents_sdk(it.url, how, "3")
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
    tmp_path: Path, agents_sdk: Script, how: str, mode: str
) -> None:
    with stack(tmp_path) as it:
        told = agents_sdk(it.url, how, "2", "anchored")
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
