from pathlib import Path

import pytest
import zstandard

from app.importers import codex_parents
from app.importers.codex import vectors
from app.importers.codex_parents import Rollouts
from tests.support.importing import lines_of
from tests.support.rollouts import THREAD, Rollout, thread, usage

NAME = f"rollout-2026-11-01T10-00-00-{THREAD}.jsonl"


def rollout(*sizes, name=THREAD):
    file = Rollout(name)
    for size in sizes:
        file.sent().counted(usage(size))
    return file.data


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_session_is_found_among_the_files_by_their_names(tmp_path: Path):
    data = rollout(10, 20)
    paths = [put(tmp_path / NAME, data), put(tmp_path / "x", rollout(5, name=thread(2)))]
    found = Rollouts(paths)
    assert vectors(lines_of(data)) == found(THREAD) == found(THREAD.upper())
    assert 2 == len(found(THREAD))
    assert found(thread(9)) is None


def test_a_file_whose_name_does_not_tell_is_asked(tmp_path: Path):
    assert 1 == len(Rollouts([put(tmp_path / "x", rollout(5))])(THREAD))
    (tmp_path / "gone").mkdir()
    assert Rollouts([tmp_path / "gone", put(tmp_path / "y", b"{}")])(THREAD) is None


@pytest.mark.parametrize(
    "place", ["sessions/2026/10/31", "archived_sessions", "sessions/2026/11/01"]
)
def test_what_lies_beside_in_the_folder_of_codex_is_found(tmp_path: Path, place):
    put(tmp_path / place / f"{NAME}.zst", zstandard.compress(rollout(10, 20)))
    child = put(tmp_path / "sessions/2026/11/01" / "rollout-child.jsonl", rollout(1, name="c"))
    assert 2 == len(Rollouts([child])(THREAD))
    alone = put(tmp_path / "elsewhere" / "rollout-child.jsonl", rollout(1, name="c"))
    assert Rollouts([alone])(THREAD) is None


def test_of_several_files_of_a_session_the_longest_tells(tmp_path: Path):
    paths = [put(tmp_path / str(n) / NAME, rollout(*range(1, n + 1))) for n in (1, 3, 2)]
    assert 3 == len(Rollouts(paths)(THREAD))


def test_a_file_that_ends_early_tells_nothing_certain(tmp_path: Path):
    whole = zstandard.compress(rollout(10, 20))
    assert Rollouts([put(tmp_path / NAME, whole[:-9])])(THREAD) is None


def test_the_parent_of_several_forks_is_read_once(tmp_path: Path, monkeypatch):
    read = []
    monkeypatch.setattr(codex_parents, "vectors", lambda _lines: read.append(1) or [])
    found = Rollouts([put(tmp_path / NAME, rollout(10))])
    assert [found(THREAD), found(THREAD)] == [[], []]
    assert [1] == read
