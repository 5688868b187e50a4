"""What Codex writes down of its sessions tells the same requests that the gateway has seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.clock import SystemClock
from app.importers.codex import read
from app.importers.identity import Identity
from app.importers.importer import Around
from app.importers.lines import split
from app.importers.run import Report, run
from app.ledger.rows import TurnRow
from app.ledger.same_call import NEAR_MS
from tests.support.codex import AppServer, Codex
from tests.support.stack import Stack, stack

pytestmark = [pytest.mark.clients, pytest.mark.timeout(150)]

SAME = (
    "response_id",
    "kind",
    "session",
    "root_session",
    "turn_group",
    "client",
    "client_version",
    "model",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "usage_state",
    "status",
)


def logged(home: Path) -> list[TurnRow]:
    found: list[TurnRow] = []
    for path in sorted(home.glob("sessions/*/*/*/rollout-*.jsonl")):
        with path.open("rb") as file:
            items = list(read(split(file), Around(path.name)))
        rows = [item for item in items if isinstance(item, TurnRow)]
        assert items == rows, "nothing was skipped"
        found += rows
    return found


def bring(it: Stack, home: Path) -> Report:
    """Import all rollouts into the ledger of the gateway that they went through."""
    assert it.service.web.engine is not None
    assert it.service.keys is not None
    identity = Identity(it.service.keys)
    return run(it.service.web.engine, [home / "sessions"], SystemClock(), identity=identity)


def told(rows: list[TurnRow]) -> list[tuple[object, ...]]:
    return [tuple(getattr(row, name) for name in SAME) for row in rows]


@pytest.mark.parametrize("websocket", [False, True], ids=["http", "websocket"])
def test_the_rollout_has_each_request_of_the_gateway_and_no_other(
    tmp_path: Path, websocket: bool
) -> None:
    with stack(tmp_path) as it:
        codex = Codex(tmp_path, it.url, websocket=websocket)
        assert 0 == codex.run("run echo hi 3 times").code
        assert 0 == codex.run("run echo again", resume=True).code
        rows = it.rows()
        report = bring(it, codex.home)
        assert [measured(row) for row in rows] == [measured(row) for row in it.rows()]
        again = bring(it, codex.home)
    seen = [row for row in rows if row.kind != "warmup"]
    found = logged(codex.home)
    assert told(seen) == told(found)
    assert (len(found), len(found), 0) == (report.counts.new, report.merged, report.differing)
    assert (0, 0) == (again.counts.new, again.merged)
    assert [1, 1] == [sum(row.ttft_ms is not None for row in rows) for rows in by_turn(found)]
    for mine, theirs in zip(seen, found, strict=True):
        assert abs(mine.started_at - theirs.started_at) <= NEAR_MS
        assert abs(mine.ended_at - theirs.ended_at) <= NEAR_MS


def test_sub_agents_are_sessions_of_their_own_and_copy_nothing(tmp_path: Path) -> None:
    with stack(tmp_path) as it:
        codex = Codex(tmp_path, it.url, model="mock-model")
        with AppServer(codex) as app:
            app.turn("spawn an agent: run echo hi 2 times")
            app.wait_for_children(2)
        seen = it.rows()
        assert len(seen) == bring(it, codex.home).merged
        assert [measured(row) for row in seen] == [measured(row) for row in it.rows()]
    found = logged(codex.home)
    assert 3 == len({row.session for row in found})
    assert sorted(told(seen)) == sorted(told(found))


def test_compactions_are_rows_of_their_kind_and_the_next_one_says_so(tmp_path: Path) -> None:
    with stack(tmp_path) as it:
        codex = Codex(tmp_path, it.url)
        with AppServer(codex) as app:
            app.turn("run echo hi")
            app.compact()
            app.turn("run echo again")
        seen = it.rows()
        assert len(seen) == bring(it, codex.home).merged
        assert [measured(row) for row in seen] == [measured(row) for row in it.rows()]
    found = logged(codex.home)
    assert told(seen) == told(found)
    resets = [(row.kind, row.epoch_reset_reason, row.epoch) for row in seen]
    assert resets == [(row.kind, row.epoch_reset_reason, row.epoch) for row in found]
    assert ("generation", "compaction", 2) in resets


def test_a_change_of_model_compacts_with_the_model_before(tmp_path: Path) -> None:
    with stack(tmp_path) as it:
        codex = Codex(tmp_path, it.url)
        codex.run("run echo hi")
        codex.run("and now?", resume=True, model="gpt-5.6-sol")
        seen = it.rows()
    assert ("gpt-5.5", "gpt-5.6-sol") == (seen[-2].model, seen[-1].model)
    assert told(seen) == told(logged(codex.home))


def measured(row: TurnRow) -> tuple[object, ...]:
    """What an import leaves as the gateway has it: all but verdicts and prices."""
    names = ("turn_id", "source", "mode", "session_key", "started_at", "ttft_ms", *SAME)
    return tuple(getattr(row, name) for name in names)


def by_turn(rows: list[TurnRow]) -> list[list[TurnRow]]:
    names = dict.fromkeys(row.turn_group for row in rows)
    return [[row for row in rows if row.turn_group == name] for name in names]
