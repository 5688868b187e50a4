"""Codex over HTTP replays its whole history with every request; the upstream gets only the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.codex import Codex
from tests.support.stack import stack

pytestmark = [pytest.mark.clients, pytest.mark.timeout(150)]


def test_a_run_of_many_requests_is_full_once_and_incremental_from_then_on(tmp_path: Path) -> None:
    with stack(tmp_path) as it:
        result = Codex(tmp_path, it.url).run("run echo hi 11 times")
        rows = it.rows()

        assert result.code == 0, result.errors
        assert result.last.startswith("Done:")
        assert len(result.named("command_execution")) == 11
        assert [row.mode for row in rows] == ["ws_full"] + 11 * ["ws_incremental"]
        assert [row.reason for row in rows] == ["no_baseline"] + 11 * ["ok"]
        assert {row.status for row in rows} == {"completed"}
        assert {(row.kind, row.client_transport) for row in rows} == {("generation", "sse")}
        assert all("previous_response_id" not in e.body for e in it.tap.exchanges)
        assert [row.items_total for row in rows] == [len(e.body["input"]) for e in it.tap.exchanges]
        assert {row.items_sent for row in rows[1:]} == {1}
        assert it.checked() == 12
        assert len(it.up.core.upgrades) == 1


def test_parallel_calls_are_continued_with_all_their_outputs(tmp_path: Path) -> None:
    with stack(tmp_path) as it:
        result = Codex(tmp_path, it.url).run("run echo hi 4 times in parallel")
        first, second = it.rows()

        assert result.code == 0, result.errors
        assert len(result.named("command_execution")) == 4
        assert (first.mode, second.mode) == ("ws_full", "ws_incremental")
        assert second.items_sent == 4
        assert it.checked() == 2


@pytest.mark.parametrize("kind", ["codex", "azure"])
@pytest.mark.parametrize("websocket", [True, False], ids=["ws", "http"])
def test_other_providers_are_continued_too(tmp_path: Path, kind: str, websocket: bool) -> None:
    with stack(tmp_path, kind) as it:
        result = Codex(tmp_path, it.url, websocket=websocket).run("run echo hi 3 times")
        rows = it.rows()

        assert result.code == 0, result.errors
        assert [row.mode for row in rows] == ["ws_full"] + (len(rows) - 1) * ["ws_incremental"]
        assert len(rows) == (5 if websocket else 4)
        assert it.checked() == len(rows)


@pytest.mark.parametrize("first", [True, False], ids=["ws-then-http", "http-then-ws"])
def test_a_resume_over_the_other_transport_is_continued(tmp_path: Path, first: bool) -> None:
    with stack(tmp_path) as it:
        Codex(tmp_path, it.url, websocket=first).run("run echo hi")
        before = it.rows()
        second = Codex(tmp_path, it.url, websocket=not first).run("and now?", resume=True)
        turn = it.rows()[-1]

        assert second.code == 0, second.errors
        assert (turn.mode, turn.reason, turn.items_sent) == ("ws_incremental", "ok", 1)
        assert turn.connection == before[-1].connection
        assert turn.previous_response_id == before[-1].response_id
        assert it.checked() == len(it.rows())


def test_bodies_compressed_by_an_account_login_are_continued(tmp_path: Path) -> None:
    with stack(tmp_path) as it:
        result = Codex(tmp_path, it.url, account=True).run("run echo hi 2 times")
        rows = it.rows()

        assert result.code == 0, result.errors
        encodings = {e.headers.get("content-encoding") for e in it.tap.exchanges}
        assert encodings == {"zstd"}
        sent = {e.header("content-encoding") for e in it.up.core.log}
        assert sent == {None}
        assert [row.mode for row in rows] == ["ws_full", "ws_incremental", "ws_incremental"]
        assert it.checked() == 3
