import json
from pathlib import Path

import pytest

from app.ledger.database import prepare
from app.ledger.writer import write_rows
from tests.support.commands import run
from tests.support.databases import migrated
from tests.support.rows import make_row

COLD = {"cache_verdict": "one_off_full", "cache_grade": "proven", "missed_tokens": 13_952}


@pytest.fixture
def ledger(tmp_path: Path) -> None:
    engine = prepare(migrated(tmp_path / "ledger.sqlite3"))
    rows = [
        make_row(turn_id="cold", response_id="resp_2", previous_response_id="resp_1", **COLD),
        make_row(turn_id="edited", mode="ws_full", reason="prefix_mismatch", **COLD),
        make_row(turn_id="paused", **COLD | {"cache_verdict": "idle"}),
        make_row(turn_id="warm", cache_verdict="hit", cache_grade="proven", missed_tokens=0),
    ]
    write_rows(engine, rows)
    engine.dispose()


def collected(*more: str):
    return run("evidence", "--database", "ledger.sqlite3", "--to", "2028-01-01", *more)


@pytest.mark.usefixtures("ledger")
def test_turns_whose_prefix_was_the_same_and_that_were_cold_are_collected():
    result = collected()
    assert 0 == result.exit_code, result.output
    (line,) = [json.loads(line) for line in result.stdout.splitlines()]
    wanted = {"turn_id": "cold", "response_id": "resp_2", "layer": "provider"}
    assert wanted.items() <= line.items()
    assert "session-a" not in result.stdout
    assert "1 turn with a proven prefix missed 13,952 tokens.\n" == result.stderr


@pytest.mark.usefixtures("ledger")
def test_evidence_takes_the_filters_of_an_export_and_goes_to_a_file(tmp_path: Path):
    result = collected("-o", "cold.jsonl", "--where", "mode=ws_full")
    assert (0, b"") == (result.exit_code, (tmp_path / "cold.jsonl").read_bytes())
    assert "0 turns with a proven prefix missed 0 tokens.\n" == result.stderr
