from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete

from app.ledger.database import prepare
from app.ledger.models import turns
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An empty ledger, made by the migrations."""
    opened = prepare(str(tmp_path / "ledger.sqlite3"))
    yield opened
    opened.dispose()


@pytest.fixture(scope="module")
def holding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Engine]]:
    """``holding(rows)`` is a ledger with just these rows: one database for many examples."""
    opened = prepare(str(tmp_path_factory.mktemp("ledger") / "ledger.sqlite3"))

    def fill(rows: Sequence[TurnRow]) -> Engine:
        with opened.begin() as connection:
            connection.execute(delete(turns))
        write_rows(opened, rows)
        return opened

    yield fill
    opened.dispose()
