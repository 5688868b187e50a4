"""Codex's other conversations: Lite models, sub-agents, compaction, a change of model."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.demo.provider import faults
from tests.support import provider
from tests.support.codex import AppServer, Codex
from tests.support.stack import stack

pytestmark = [pytest.mark.clients, pytest.mark.timeout(150)]

WIRES = pytest.mark.parametrize("websocket", [True, False], ids=["ws", "http"])


@WIRES
def test_a_lite_model_with_tools_in_its_input_is_continued(tmp_path: Path, websocket: bool) -> None:
    with stack(tmp_path) as it:
        result = Codex(tmp_path, it.url, model="gpt-6-sol", websocket=websocket).run(
            "run echo hi 3 times"
        )
        rows = it.rows()

        assert result.code == 0, result.errors
        bodies = [exchange.body for exchange in it.tap.exchanges]
        assert not any("tools" in body for body in bodies)
        assert any(item["type"] == "additional_tools" for b in bodies for item in b["input"])
        turns = [row for row in rows if row.kind == "generation"]
        assert [row.items_sent for row in turns] == [7, 1, 1, 1]
        assert [row.mode for row in rows] == ["ws_full"] + (len(rows) - 1) * ["ws_incremental"]
        assert len(rows) == (5 if websocket else 4)
        assert it.checked() == len(rows)


@WIRES
def test_sub_agents_never_take_their_parents_chain(tmp_path: Path, websocket: bool) -> None:
    with stack(tmp_path) as it:
        codex = Codex(tmp_path, it.url, model="mock-model", websocket=websocket)
        with AppServer(codex) as app:
            end = app.turn("spawn an agent: run echo hi 2 times")
            app.wait_for_children(2)
        rows = it.rows()

        assert end["status"] == "completed"
        sessions = {row.session for row in rows}
        assert len(sessions) == 3
        assert len({row.root_session for row in rows}) == 1
        for session in sessions:
            own = [row for row in rows if row.session == session]
            assert [row.mode for row in own] == ["ws_full"] + (len(own) - 1) * ["ws_incremental"]
            assert {row.connection for row in own} == {own[0].connection}
        assert len({row.connection for row in rows}) == len(sessions)
        assert it.checked() == len(rows)


@WIRES
def test_local_compaction_is_a_row_of_its_kind_and_resets_the_epoch(
    tmp_path: Path, websocket: bool
) -> None:
    with stack(tmp_path) as it:
        with AppServer(Codex(tmp_path, it.url, websocket=websocket)) as app:
            app.turn("run echo hi")
            compacted = app.compact()
            after = app.turn("run echo again")
        rows = it.rows()

        assert (compacted["status"], after["status"]) == ("completed", "completed")
        told = [(row.kind, row.mode, row.reason, row.epoch_reset_reason) for row in rows[-3:]]
        assert told == [
            ("compaction", "ws_full", "non_input_fields_changed", None),
            ("generation", "ws_full", "epoch_reset", "compaction"),
            ("generation", "ws_incremental", "ok", None),
        ]
        assert it.checked() == len(rows) == (6 if websocket else 5)


@pytest.mark.parametrize("upgrade", [101, 426], ids=["ws", "http"])
def test_remote_compaction_is_carried_and_resets_the_epoch(tmp_path: Path, upgrade: int) -> None:
    def prepare(up: provider.Running) -> None:
        if upgrade != 101:
            up.core.faults.on_upgrade(faults.RefuseUpgrade(upgrade), times=None)

    with stack(tmp_path, prepare=prepare) as it:
        codex = Codex(tmp_path, it.url, builtin=True)
        codex.log_in()
        with AppServer(codex) as app:
            app.turn("run echo hi")
            compacted = app.compact()
            after = app.turn("run echo again")
        rows = it.rows()

        assert (compacted["status"], after["status"]) == ("completed", "completed")
        assert [row.kind for row in rows] == [
            "warmup",
            "generation",
            "generation",
            "compaction",
            "generation",
            "generation",
        ]
        turn, following = it.tap.exchanges[3:5]
        assert turn.body["input"][-1]["type"] == "compaction_trigger"
        assert [item["type"] for item in turn.output] == ["compaction"]
        assert "compaction" in [item["type"] for item in following.body["input"]]
        if upgrade == 101:
            assert (rows[3].mode, rows[3].items_sent) == ("ws_incremental", 1)
            assert (rows[4].mode, rows[4].reason) == ("ws_full", "epoch_reset")
            assert rows[4].epoch_reset_reason == "compaction"
        else:
            assert {(row.mode, row.reason) for row in rows[1:]} == {("http_full", "ws_rejected")}
        assert it.checked() == len(rows)


def test_a_resume_with_another_model_compacts_and_starts_again(tmp_path: Path) -> None:
    with stack(tmp_path) as it:
        codex = Codex(tmp_path, it.url)
        codex.run("run echo hi")
        before = len(it.rows())
        second = codex.run("and now?", resume=True, model="gpt-5.6-sol")
        compaction, turn = it.rows()[before:]

        assert second.code == 0, second.errors
        assert (compaction.model, turn.model) == ("gpt-5.5", "gpt-5.6-sol")
        assert (compaction.kind, turn.kind) == ("compaction", "generation")
        assert (turn.mode, turn.reason) == ("ws_full", "epoch_reset")
        assert turn.epoch_reset_reason == "compaction"
        assert it.checked() == before + 2
