import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.importers.identity import Identity
from app.importers.importer import Importer
from app.importers.lingtai import LINGTAI
from app.importers.unchanged import Unchanged
from app.keys import Keys
from app.ledger import import_files
from app.ledger.database import WRITES
from tests.support.importing import IDENTITY

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
TIME = 1_790_000_000


@dataclass
class File:
    path: Path
    importer: Importer = LINGTAI


def put(path: Path, data: bytes, at: int = TIME) -> None:
    path.write_bytes(data)
    os.utime(path, (at, at))


@pytest.fixture
def engine(holding) -> Engine:
    return holding([])


@pytest.fixture
def file(engine: Engine, tmp_path: Path) -> File:
    """One that was read to its end."""
    file = File(tmp_path / "x.jsonl")
    put(file.path, b"a" * 5_000 + b"b" * 5_000)
    unchanged = Unchanged(engine, IDENTITY)
    assert {file.path} == unchanged.new([file])
    unchanged.read([file.path])
    return file


def test_a_file_that_was_read_to_its_end_is_not_new_to_another_process(engine, file):
    assert set() == Unchanged(engine, IDENTITY).new([file])
    assert {file.path} == Unchanged(engine, IDENTITY, passing=True).new([file])


def test_a_file_that_was_looked_at_and_not_read_is_new(engine, tmp_path):
    file = File(tmp_path / "y")
    put(file.path, b"a")
    for _ in range(2):
        assert {file.path} == Unchanged(engine, IDENTITY).new([file])


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b"a" * 5_000 + b"b" * 5_001, TIME),
        (b"a" * 5_000 + b"b" * 4_999, TIME),
        (b"a" * 5_000 + b"b" * 5_000, TIME + 1),
        (b"x" + b"a" * 4_999 + b"b" * 5_000, TIME),
        (b"a" * 5_000 + b"b" * 4_999 + b"x", TIME),
    ],
    ids=["grown", "cut", "written again", "begins otherwise", "ends otherwise"],
)
def test_a_file_that_has_changed_is_new(engine, file, data, at):
    put(file.path, data, at)
    assert {file.path} == Unchanged(engine, IDENTITY).new([file])


def test_what_changes_after_the_look_is_new(engine, file):
    put(file.path, b"a")
    unchanged = Unchanged(engine, IDENTITY)
    unchanged.new([file])
    put(file.path, b"ab")
    unchanged.read([file.path])
    assert {file.path} == Unchanged(engine, IDENTITY).new([file])


def test_a_file_is_new_when_one_beside_it_that_is_read_too_has_changed(engine, file):
    beside = file.path.with_name(LINGTAI.beside[0])
    for data in (b"1", b"12"):
        put(beside, data)
        unchanged = Unchanged(engine, IDENTITY)
        assert {file.path} == unchanged.new([file])
        unchanged.read([file.path])
    assert set() == Unchanged(engine, IDENTITY).new([file])
    beside.unlink()
    assert {file.path} == Unchanged(engine, IDENTITY).new([file])


@pytest.mark.parametrize(
    "identity",
    [Identity(Keys(b"other" * 8)), replace(IDENTITY, pseudonymize=True)],
    ids=["another key", "hidden names"],
)
def test_what_makes_other_rows_of_a_file_makes_it_new(engine, file, identity):
    assert {file.path} == Unchanged(engine, identity).new([file])


def test_a_file_is_new_to_another_version_of_its_reader(engine, file, monkeypatch):
    other = replace(file, importer=replace(LINGTAI, version=LINGTAI.version + 1))
    assert {file.path} == Unchanged(engine, IDENTITY).new([other])
    monkeypatch.setattr("app.importers.unchanged.VERSION", "another")
    assert {file.path} == Unchanged(engine, IDENTITY).new([file])


def test_a_file_is_new_after_something_was_given_back_also_to_who_looked_before(engine, file):
    early = Unchanged(engine, IDENTITY, passing=True)
    early.new([file])
    with engine.execution_options(**WRITES).begin() as connection:
        import_files.forget(connection)
    early.read([file.path])
    assert {file.path} == Unchanged(engine, IDENTITY).new([file])


def test_a_file_that_is_moved_is_new_and_one_that_is_gone_is_left_to_its_reader(engine, file):
    moved = File(file.path.with_name("y"))
    file.path.rename(moved.path)
    assert {moved.path, file.path} == Unchanged(engine, IDENTITY).new([moved, file])
