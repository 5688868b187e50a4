"""Where the files of other sessions lie, for the histories that forks have copied from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from app.importers import opening
from app.importers.codex import session_of, vectors
from app.importers.codex_lines import Told, told
from app.importers.importer import NotReadable, Vector
from app.importers.json_lines import text
from app.importers.lines import split

_FOLDERS = ("sessions", "archived_sessions")
"""Of Codex's own folder."""
_ENDS = (".jsonl", ".jsonl.zst")
_KEPT = 8
"""Histories that are kept for the next fork of the same session."""


class Rollouts:
    """The rollouts that are imported, and those that lie beside them in Codex's folder."""

    def __init__(self, paths: Iterable[Path], watch: opening.Watch | None = None) -> None:
        self._paths = list(paths)
        self._watch = watch
        self._places: dict[str, list[Path]] | None = None
        self.history = lru_cache(_KEPT)(self._history)

    def __call__(self, session: str) -> Sequence[Vector] | None:
        return self.history(session)

    def _history(self, session: str) -> Sequence[Vector] | None:
        """The longest that any file of the session tells."""
        if self._places is None:
            self._places = {}
            for path in self._all():
                name = session_of(path.name) or _named_inside(path, self._watch)
                if name is not None:
                    self._places.setdefault(name.lower(), []).append(path)
        found = [_vectors(path, self._watch) for path in self._places.get(session.lower(), [])]
        return max((some for some in found if some is not None), key=len, default=None)

    def _all(self) -> Iterator[Path]:
        yield from self._paths
        seen = {path.resolve() for path in self._paths}
        for folder in {folder for path in self._paths for folder in _folders(path)}:
            for where, _, names in os.walk(folder):
                for name in names:
                    if name.startswith("rollout-") and name.endswith(_ENDS):
                        path = Path(where, name)
                        if path.resolve() not in seen:
                            yield path


def _folders(path: Path) -> Iterator[Path]:
    """Where Codex would have put the file of another session, as far as this one's place tells."""
    home = next((p.parent for p in path.resolve().parents if p.name in _FOLDERS), None)
    if home is not None:
        yield from (home / name for name in _FOLDERS)


def _named_inside(path: Path, watch: opening.Watch | None) -> str | None:
    """The session of a file whose name does not tell it."""
    try:
        with opening.opened(path, watch) as opened:
            for line in told(split(opened.file)):
                if isinstance(line, Told) and line.type == "session_meta":
                    return text(line.payload.get("id"))
    except (NotReadable, OSError):
        pass
    return None


def _vectors(path: Path, watch: opening.Watch | None) -> list[Vector] | None:
    """None for a file that cannot be read to its end: what it does not tell may be copied, too."""
    try:
        with opening.opened(path, watch) as opened:
            return vectors(split(opened.file))
    except (NotReadable, OSError):
        return None
