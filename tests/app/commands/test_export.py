import csv
import gzip
import importlib
import io
import json
from pathlib import Path

from app.keys import load_or_create
from tests.support.commands import run

command = importlib.import_module("app.commands.export")


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


def test_the_name_of_the_file_says_what_it_is(ledger, tmp_path: Path):
    assert [] == exported("--output", "turns.jsonl.gz", "--columns", "model")
    assert [{"model": "a"}, {"model": "b"}, {"model": "=a"}] == [
        json.loads(line)
        for line in gzip.decompress(Path("turns.jsonl.gz").read_bytes()).splitlines()
    ]
    assert [] == exported("--output", "turns.CSV.GZ", "--columns", "model")
    assert b"model\r\na\r\nb\r\n'=a\r\n" == gzip.decompress(Path("turns.CSV.GZ").read_bytes())
    assert [] == exported("--output", "turns.jsonl", "--columns", "model", "--format", "csv")
    assert b"model\r\na\r\nb\r\n'=a\r\n" == Path("turns.jsonl").read_bytes()


def test_names_are_hashed_with_the_key_of_the_ledger(ledger):
    keys = load_or_create(Path("ledger.key"))
    named = ("--key-file", "ledger.key", "--columns", "session,model")
    assert ["session-a"] * 3 == [line["session"] for line in exported(*named)]
    hashed = exported(*named, "--pseudonymize")
    assert [keys.pseudonym("session-a")] * 3 == [line["session"] for line in hashed]
    assert ["a", "b", "'=a"] == [line["model"] for line in hashed]


def test_names_are_hashed_with_no_other_key(ledger):
    arguments = ("export", "--database", "ledger.sqlite3", "--pseudonymize", "--key-file")
    assert "does not exist" in run(*arguments, "none.key").output
    load_or_create(Path("first.key"))
    assert 0 == run(*arguments, "first.key").exit_code
    load_or_create(Path("second.key"))
    result = run(*arguments, "second.key", "-o", "turns.csv")
    assert (1, "is not the one this ledger was written with" in result.output) == (
        result.exit_code,
        True,
    )
    assert not Path("turns.csv").exists()


def test_an_export_that_is_interrupted_leaves_no_file(ledger, monkeypatch):
    left = []

    def interrupted(*_arguments, **_options):
        try:
            yield b"turn_id\r\n"
            raise KeyboardInterrupt
        finally:
            left.append(sorted(path.name for path in Path().glob("turns*")))

    monkeypatch.setattr(command, "export", interrupted)
    result = run("export", "--database", "ledger.sqlite3", "--output", "turns.csv")
    assert (1, True) == (result.exit_code, "Aborted!" in result.output)
    assert [["turns.csv.part"]] == left
    assert [] == list(Path().glob("turns*"))
