from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.ledger.database import prepare


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An empty ledger, made by the migrations."""
    opened = prepare(str(tmp_path / "ledger.sqlite3"))
    yield opened
    opened.dispose()
