"""What Codex writes down of its sessions tells the same requests that the gateway has seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.importers.codex import read
from app.importers.importer import Around
from app.importers.lines import split
from app.ledger.rows import TurnRow
from tests.support.codex import Codex
from tests.support.stack import stack

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
        seen = [row for row in it.rows() if row.kind != "warmup"]
    found = logged(codex.home)
    assert told(seen) == told(found)
    assert [1, 1] == [sum(row.ttft_ms is not None for row in rows) for rows in by_turn(found)]
    for mine, theirs in zip(seen, found, strict=True):
        assert abs(mine.started_at - theirs.started_at) < 1_000
        assert abs(mine.ended_at - theirs.ended_at) < 1_000


def by_turn(rows: list[TurnRow]) -> list[list[TurnRow]]:
    names = dict.fromkeys(row.turn_group for row in rows)
    return [[row for row in rows if row.turn_group == name] for name in names]
