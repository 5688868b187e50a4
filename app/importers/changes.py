"""What of some files and folders has changed since it was read, told without opening anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from app.errors import AppError
from app.importers.codex import CODEX
from app.importers.codex_parents import Rollouts
from app.importers.files import Named, expand
from app.importers.formats import IMPORTERS
from app.importers.run import FUTURE, Report

_BESIDE = {importer.name: importer.beside for importer in IMPORTERS}


class Changes:
    """``trouble`` gets a sentence on a path that cannot be looked at, once."""

    def __init__(self, paths: Sequence[Path], trouble: Callable[[str], None]) -> None:
        self._paths = paths
        self._trouble = trouble
        self._said: dict[Path, str] = {}
        self._known: dict[Path, tuple[int, ...]] = {}
        """How files lay there in which nothing is new as long as they lie there so."""
        self._found: dict[Path, tuple[int, ...]] = {}
        """The same, of those that were found the last time."""
        self._formats: dict[Path, str] = {}
        self._lacks: dict[Path, set[str]] = {}
        """Sessions whose files a file waits for."""

    def find(self) -> list[Named]:
        """The files in which there may be something new."""
        self._found = {}
        files = []
        parents = Rollouts(self.rollouts()) if self._lacks else None
        for file in self._files():
            try:
                lies = self._lies(file.path)
            except OSError:
                continue  # it has gone meanwhile
            lacks = self._lacks.get(file.path, ())
            come = parents is not None and any(parents(session) is not None for session in lacks)
            if come or self._known.get(file.path) != lies:
                self._found[file.path] = lies
                files.append(file)
        return files

    def keep(self, report: Report) -> None:
        """What was found has been read: nothing is new in it until it changes."""
        told = {file.path: file for file in report.files}
        for path, lies in self._found.items():
            self._known[path] = lies
            self._lacks.pop(path, None)
            file = told.get(path)
            if file is None:
                continue  # as it was when it was read, or of no known format
            if FUTURE in file.counts.skipped:
                del self._known[path]  # its time will come
            if file.lacks:
                self._lacks[path] = file.lacks
        self._formats |= report.formats

    def forget(self) -> None:
        """All is to be read again."""
        self._known = {}

    def rollouts(self) -> set[Path]:
        """All of Codex that are known."""
        return {path for path, name in self._formats.items() if name == CODEX.name}

    def _files(self) -> Iterator[Named]:
        for path in self._paths:
            try:
                yield from expand([path])
            except AppError as error:
                if self._said.get(path) != error.message:
                    self._trouble(error.message)
                self._said[path] = error.message
            else:
                self._said.pop(path, None)

    def _lies(self, path: Path) -> tuple[int, ...]:
        """Raises ``OSError``."""
        status = path.stat()
        lies = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        for name in _BESIDE.get(self._formats.get(path, ""), ()):
            try:
                beside = path.with_name(name).stat()
            except OSError:
                lies.append(-1)
            else:
                lies += [beside.st_size, beside.st_mtime_ns]
        return tuple(lies)
