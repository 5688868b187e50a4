import csv
import io
import json
from pathlib import Path

from tests.support.commands import run


def exported(*arguments: str) -> list[dict[str, str]]:
    result = run("export", "--database", "ledger.sqlite3", "--to", "2028-01-01", *arguments)
    assert 0 == result.exit_code, result.output
    return list(csv.DictReader(io.StringIO(result.stdout_bytes.decode("utf-8-sig"), newline="")))


def test_export_writes_all_turns_oldest_first(ledger):
    assert [row.turn_id for row in ledger] == [line["turn_id"] for line in exported()]


def test_export_writes_the_turns_of_a_filter(ledger):
    assert ["b"] == [line["model"] for line in exported("--where", "model=b")]
    assert ["a", "'=a"] == [line["model"] for line in exported("--where", "model=!b")]
    window = ("--from", "2027-01-15T09:00", "--tz", "UTC", "--by", "started")
    assert ["b", "'=a"] == [line["model"] for line in exported(*window)]


def test_export_takes_columns_raw_text_and_a_byte_order_mark(ledger):
    lines = exported("--columns", "model,turn_id", "--raw", "--bom")
    assert ["model", "turn_id"] == list(lines[0])
    assert "=a" == lines[2]["model"]
    result = run("export", "--database", "ledger.sqlite3", "--bom", "--columns", "model")
    assert result.stdout_bytes.startswith(b"\xef\xbb\xbfmodel\r\n")


def test_export_writes_json_lines(ledger):
    result = run(
        "export", "--database", "ledger.sqlite3", "--to", "2028-01-01", "--format", "jsonl"
    )
    assert 0 == result.exit_code, result.output
    assert [row.as_dict() for row in ledger] == [
        json.loads(line) for line in result.stdout_bytes.splitlines()
    ]


def test_export_into_a_file_leaves_just_that_file(ledger, tmp_path: Path):
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "turns.csv"
    assert [] == exported("--output", str(target))
    assert 4 == target.read_bytes().count(b"\r\n")
    assert ["turns.csv"] == [path.name for path in target.parent.iterdir()]
