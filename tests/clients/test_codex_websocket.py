"""Codex over WebSocket: its own warm-up and its own anchors stay what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.codex import AppServer, Codex
from tests.support.stack import stack

pytestmark = [pytest.mark.clients, pytest.mark.timeout(150)]


def test_warm_up_and_anchors_of_the_client_work_unchanged(tmp_path: Path) -> None:
    with stack(tmp_path) as it:
        result = Codex(tmp_path, it.url, websocket=True).run("run echo hi 3 times")
        rows = it.rows()

        assert result.code == 0, result.errors
        assert len(result.named("command_execution")) == 3
        assert [row.kind for row in rows] == ["warmup"] + 4 * ["generation"]
        assert [row.mode for row in rows] == ["ws_full"] + 4 * ["ws_incremental"]
        assert [row.reason for row in rows] == ["no_baseline"] + 4 * ["ok"]
        assert {(row.status, row.client_transport, row.client) for row in rows} == {
            ("completed", "ws", "codex_exec")
        }
        assert [row.items_sent for row in rows] == [1, 3, 1, 1, 1]
        anchors = [exchange.body.get("previous_response_id") for exchange in it.tap.exchanges]
        assert anchors == [None, *(row.response_id for row in rows[:-1])]
        assert [row.previous_response_id for row in rows] == anchors
        assert it.checked() == 5
        assert [upgrade.status for upgrade in it.up.core.upgrades] == [101]


def test_a_resume_in_a_new_process_uploads_only_what_is_new(tmp_path: Path) -> None:
    with stack(tmp_path) as it:
        codex = Codex(tmp_path, it.url, websocket=True)
        first = codex.run("run echo hi 2 times")
        before = it.rows()
        second = codex.run("run echo again", resume=True)
        rows = it.rows()[len(before) :]

        assert (first.code, second.code) == (0, 0), second.errors
        assert [(row.kind, row.mode, row.reason) for row in rows] == [
            ("warmup", "ws_full", "no_baseline"),
            ("generation", "ws_incremental", "ok"),
            ("generation", "ws_incremental", "ok"),
        ]
        resumed = rows[1]
        asked = it.tap.exchanges[len(before) + 1].body
        # The whole history but the warm-up's item, the last answer, and what is asked now.
        answer = it.tap.exchanges[len(before) - 1].output
        assert len(asked["input"]) == (before[-1].items_total or 0) - 1 + len(answer) + 1
        assert resumed.items_sent == 1
        assert resumed.previous_response_id == before[-1].response_id
        assert resumed.connection == before[-1].connection
        assert resumed.session == before[-1].session
        assert it.checked() == len(before) + 3


def test_many_turns_in_one_process_stay_on_one_connection(tmp_path: Path) -> None:
    with stack(tmp_path) as it:
        with AppServer(Codex(tmp_path, it.url, websocket=True)) as codex:
            ends = [codex.turn(f"run echo {number}")["status"] for number in range(5)]
        rows = it.rows()

        assert ends == ["completed"] * 5
        assert [row.mode for row in rows] == ["ws_full"] + 10 * ["ws_incremental"]
        assert [row.reason for row in rows] == ["no_baseline"] + 10 * ["ok"]
        assert {row.items_sent for row in rows[2:]} == {1}
        assert len({row.connection for row in rows}) == 1
        assert it.tap.sockets == 1
        assert it.checked() == 11


@pytest.mark.parametrize("code", [1000, None], ids=["closed", "reset"])
def test_a_socket_lost_between_turns_costs_one_full_turn(tmp_path: Path, code: int | None) -> None:
    with stack(tmp_path) as it:
        with AppServer(Codex(tmp_path, it.url, websocket=True)) as codex:
            codex.turn("run echo hi")
            before = it.rows()
            dropped = it.up.call("drop_connections", code)
            after = codex.turn("run echo again")
        rows = it.rows()[len(before) :]

        assert dropped == 1
        assert after["status"] == "completed"
        assert [(row.mode, row.reason, row.fallback_reason) for row in rows] == [
            ("ws_full", "connection_lost", "closed"),
            ("ws_incremental", "ok", None),
        ]
        assert rows[0].eligible
        assert rows[0].items_sent == rows[0].items_total == (before[-1].items_total or 0) + 3
        assert it.tap.sockets == 1  # the client's own socket was never closed
        assert it.checked() == len(before) + 2
