from pathlib import Path

import pytest

from app.errors import AppError
from app.importers.identity import Identity
from app.keys import Keys
from app.ledger import queries
from app.reporting import logs
from tests.support.importing import ALL, as_csv, as_jsonl
from tests.support.rows import make_row

PAST = 1_600_000_000_000
IDENTITY = Identity(Keys(bytes(32)))


def imported(*paths: Path):
    return logs.imported(paths, IDENTITY, lambda _done, _of: None)


def test_files_and_folders_are_a_ledger_as_long_as_it_is_needed(tmp_path: Path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    folder = tmp_path / "logs"
    folder.mkdir()
    rows = [make_row(started_at=PAST), make_row(started_at=PAST)]
    (folder / "a.csv").write_bytes(as_csv(rows[:1]))
    (folder / "notes.txt").write_text("hello")
    (tmp_path / "b.jsonl").write_bytes(as_jsonl(rows[1:]) + b"{}\n")
    with imported(folder, tmp_path / "b.jsonl") as (engine, read):
        assert 2 == queries.count(engine, ALL)
        assert 1 == len(list((tmp_path / "temporary").iterdir()))
    assert (2, ("csv", "jsonl"), 1, 1, ()) == (
        read.files, read.formats, read.ignored, sum(read.skipped.values()), read.failures,
    )  # fmt: skip
    assert [] == list((tmp_path / "temporary").iterdir())


def test_a_file_that_is_of_no_use_beside_others_is_told(tmp_path: Path):
    (tmp_path / "a.csv").write_bytes(as_csv([make_row(started_at=PAST)]))
    (tmp_path / "b").write_text("")
    with imported(tmp_path / "a.csv", tmp_path / "b") as (_, read):
        assert (1, (("b", "It is empty."),)) == (read.files, read.failures)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("empty", "There is no log in what was given. It is empty."),
        ("others", "There is no log in what was given. 1 file was passed over."),
        ("others/notes", "Nothing can be read. notes: It is an archive"),
        ("nowhere", "There is no file nowhere."),
    ],
)
def test_where_there_is_no_log_that_is_said(tmp_path: Path, monkeypatch, name: str, said: str):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("others").mkdir()
    Path("others/notes").write_bytes(b"PK")
    with pytest.raises(AppError) as caught, imported(Path(name)):
        pass
    assert str(caught.value).startswith(said)


def test_a_ledger_is_thrown_away_whatever_happens(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "a.csv").write_bytes(as_csv([make_row(started_at=PAST)]))
    with pytest.raises(KeyboardInterrupt), imported(tmp_path / "a.csv"):
        raise KeyboardInterrupt
    assert ["a.csv"] == [path.name for path in tmp_path.iterdir()]
