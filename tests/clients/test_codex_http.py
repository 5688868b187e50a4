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
