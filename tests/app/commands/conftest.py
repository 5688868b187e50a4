from collections.abc import Iterator
from pathlib import Path

import pytest

from app.ledger.database import prepare
from app.ledger.writer import write_rows
from tests.support.databases import migrated
from tests.support.rows import START_MS, make_row

HOUR = 3_600_000


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch):
    """An empty directory and home, and no settings from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[list]:
    rows = [
        make_row(started_at=START_MS, model="a"),
        make_row(started_at=START_MS + HOUR, model="b"),
        make_row(started_at=START_MS + 2 * HOUR, model="=a"),
    ]
    engine = prepare(migrated("ledger.sqlite3"))
    write_rows(engine, rows)
    engine.dispose()
    return rows
