from pathlib import Path

import pytest

from app.errors import AppError
from app.importers.files import Named, expand


def test_a_folder_means_all_that_lies_in_it_by_name(tmp_path: Path):
    for name in ("b/x.csv", "a.csv", "b/.hidden", ".git/y", "c.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    (tmp_path / "round").symlink_to(tmp_path)
    found = [tmp_path / name for name in ("a.csv", "b/x.csv", "c.csv")]
    assert [Named(path, found=True) for path in found] == expand([tmp_path])


def test_a_file_counts_once_and_as_named_where_it_is(tmp_path: Path):
    (tmp_path / "a.csv").touch()
    assert [Named(tmp_path / "a.csv", found=False)] == expand([tmp_path, tmp_path / "a.csv"])


def test_a_path_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(AppError, match="There is no file"):
        expand([tmp_path / "x.csv"])


def test_a_folder_that_cannot_be_looked_into_stands_for_itself(tmp_path: Path, monkeypatch):
    """Whoever opens it says why; what lies beside it is read."""
    (tmp_path / "a.csv").touch()
    (tmp_path / "closed").mkdir()
    looked_into = Path.iterdir

    def closed(folder: Path):
        if folder.name == "closed":
            raise PermissionError
        return looked_into(folder)

    monkeypatch.setattr(Path, "iterdir", closed)
    found = [tmp_path / name for name in ("a.csv", "closed")]
    assert [Named(path, found=True) for path in found] == expand([tmp_path])
    assert [Named(tmp_path / "closed", found=True)] == expand([tmp_path / "closed"])
