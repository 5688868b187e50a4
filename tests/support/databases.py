"""A fresh database of either kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import postgres


@contextmanager
def fresh(backend: str, folder: Path) -> Iterator[str]:
    """What the setting ``database`` names: a path in ``folder``, or a URL with an empty ledger."""
    if backend == "sqlite":
        yield str(folder / "ledger.sqlite3")
    else:
        with postgres.server().ledger() as url:
            yield url
