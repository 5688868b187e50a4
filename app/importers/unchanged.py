"""Which files were read before and are as they were then, so that nothing in them is new.

A file is known by where it lies, its size, the time of its last change, and its first and last
bytes; files that its format reads beside it count as well. With the ledger's key, the version of
what reads it and the setting that hides names this makes one digest: whatever changes of these,
the file is read again. What is remembered is in the ledger (``app.ledger.import_files``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from sqlalchemy import Engine

from app.importers.identity import Identity
from app.importers.importer import Importer
from app.ledger import import_files
from app.version import VERSION

_ENDS = 4_096
"""Bytes at either end that are looked at."""
_DIGEST = 16


class Looked(Protocol):
    """A file whose format is known."""

    @property
    def importer(self) -> Importer: ...
    @property
    def path(self) -> Path: ...


class Unchanged:
    """``passing``: none is passed over; those that are read are remembered all the same."""

    def __init__(self, engine: Engine, identity: Identity, *, passing: bool = False) -> None:
        self._engine = engine
        self._keys = identity.keys
        self._settings = f"{VERSION} {identity.pseudonymize}"
        self._passing = passing
        self._marks: dict[Path, tuple[bytes, bytes]] = {}

    def new(self, files: Sequence[Looked]) -> set[Path]:
        """Those that are to be read. They are looked at now: what changes later is new."""
        age = import_files.age(self._engine)
        self._marks = {}
        for file in files:
            try:
                self._marks[file.path] = self._place(file.path), self._mark(file, age)
            except OSError:
                continue  # whoever reads it will tell
        known: dict[bytes, bytes] = {}
        if not self._passing:
            known = import_files.seen(self._engine, [place for place, _ in self._marks.values()])
        marked = {path for path, (place, mark) in self._marks.items() if known.get(place) == mark}
        return {file.path for file in files} - marked

    def read(self, paths: Iterable[Path]) -> None:
        """These were read to their ends, and nothing in them waits for something else."""
        marks = [self._marks[path] for path in paths if path in self._marks]
        if marks:
            import_files.remember(self._engine, marks)

    def _place(self, path: Path) -> bytes:
        where = str(path.resolve()).encode("utf-8", "surrogateescape")
        return self._keys.derive("imported-place", where)[:_DIGEST]

    def _mark(self, file: Looked, age: str) -> bytes:
        parts: list[str | bytes] = [self._settings, age, file.importer.name]
        parts += [str(file.importer.version), *_found(file.path)]
        for name in file.importer.beside:
            try:
                parts += [name, *_found(file.path.with_name(name))]
            except OSError:
                parts.append("")
        return self._keys.derive("imported-file", *parts)[:_DIGEST]


def _found(path: Path) -> list[str | bytes]:
    """How a file is found. Its size is looked up first: what it grows by afterwards is new."""
    status = path.stat()
    with path.open("rb") as file:
        head = file.read(_ENDS)
        file.seek(max(0, status.st_size - _ENDS))
        tail = file.read(_ENDS)
    return [f"{status.st_size} {status.st_mtime_ns}", head, tail]
