import os
from pathlib import Path

from app.importers.changes import Changes
from app.importers.run import FileReport, Report

RECORD = b'{"timestamp":"2026-11-01T10:00:00Z","type":"turn_context","payload":{}}\n'


def found(changes: Changes, **formats: str) -> list[str]:
    """Names of what has changed, which is read then."""
    files = [file.path for file in changes.find()]
    made = {path: formats[path.stem] for path in files if path.stem in formats}
    changes.keep(Report(None, [FileReport(p.name, path=p) for p in files], formats=made))
    return [path.name for path in files]


def test_a_file_is_found_once_until_it_changes(tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(b"1")
    changes = Changes([tmp_path], print)
    assert [["a"], []] == [found(changes), found(changes)]
    path.write_bytes(b"12")
    assert [["a"], []] == [found(changes), found(changes)]
    os.utime(path, (1, 1))
    assert [["a"], []] == [found(changes), found(changes)]
    path.rename(tmp_path / "b")
    assert [["b"], []] == [found(changes), found(changes)]
    changes.forget()
    assert ["b"] == found(changes)


def test_a_file_that_was_found_and_not_read_is_found_again(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"1")
    changes = Changes([tmp_path], print)
    assert [["a"], ["a"]] == [[file.path.name for file in changes.find()] for _ in "12"]


def test_a_file_is_found_when_one_beside_it_that_is_read_too_has_changed(tmp_path: Path):
    for name in ("token_ledger.jsonl", "events.jsonl"):
        (tmp_path / name).write_bytes(b"1")
    changes = Changes([tmp_path / "token_ledger.jsonl"], print)
    for _ in range(2):
        found(changes, token_ledger="lingtai")
    assert [] == found(changes)
    (tmp_path / "events.jsonl").write_bytes(b"12")
    assert ["token_ledger.jsonl"] == found(changes)
    (tmp_path / "events.jsonl").unlink()
    assert ["token_ledger.jsonl"] == found(changes)


def test_a_folder_that_is_gone_is_told_once_each_time(tmp_path: Path):
    folder, told = tmp_path / "f", []
    changes = Changes([folder, tmp_path], told.append)
    for _ in range(2):
        changes.find()
    folder.mkdir()
    changes.find()
    folder.rmdir()
    changes.find()
    assert [f"There is no file {folder}."] * 2 == told
