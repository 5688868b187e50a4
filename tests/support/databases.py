"""A fresh database of either kind."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.ledger.database import prepare
from tests.support import postgres


@contextmanager
def fresh(backend: str, folder: Path) -> Iterator[str]:
    """What the setting ``database`` names: a path in ``folder``, or a URL with an empty ledger."""
    if backend == "sqlite":
        yield migrated(folder / "ledger.sqlite3")
    else:
        with postgres.server().ledger() as url:
            yield url


def migrated(database: str | Path) -> str:
    """The same place, with an empty ledger where no file was.

    Where hundreds of tests begin with one, it is a copy of what the migrations made once, which
    takes a tenth of their time.
    """
    path = Path(database)
    if "://" not in str(database) and path.parent.exists() and not path.exists():
        path.write_bytes(_empty())
    return str(database)


@functools.cache
def _empty() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite3"
        prepare(str(path)).dispose()
        return path.read_bytes()
