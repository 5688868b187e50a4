"""Which files are meant by paths: files themselves, and all that lie in a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.errors import AppError


@dataclass(frozen=True, slots=True)
class Named:
    path: Path
    found: bool
    """It was found in a folder; nobody has said that it can be imported."""


def expand(paths: Iterable[Path]) -> list[Named]:
    """The files of these paths, each once, folders in the order of names.

    Hidden files, and links in folders, are passed over. A folder that cannot be looked into stands
    for itself. Raises ``AppError`` for a path that is not there.
    """
    files: dict[Path, Named] = {}
    for path in paths:
        if path.is_dir():
            for inner in _files(path):
                files.setdefault(inner.resolve(), Named(inner, found=True))
        elif path.exists():
            files[path.resolve()] = Named(path, found=False)
        else:
            raise AppError("no_file", f"There is no file {path}.", "Check how it is spelt.")
    return list(files.values())


def _files(folder: Path) -> Iterator[Path]:
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        yield folder  # whoever opens it says why it cannot be read, and reads the others
        return
    for path in inside:
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path
