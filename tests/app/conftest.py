from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete

from app.ledger.database import prepare
from app.ledger.models import Base
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where ``engine`` keeps its data: for tests that open it a second time."""
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
def engine(database: Path) -> Iterator[Engine]:
    """An empty ledger, made by the migrations."""
    opened = prepare(str(database))
    yield opened
    opened.dispose()


@pytest.fixture(scope="module")
def holding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Engine]]:
    """``holding(rows)`` is a ledger with just these rows: one database for many examples."""
    opened = prepare(str(tmp_path_factory.mktemp("ledger") / "ledger.sqlite3"))

    def fill(rows: Sequence[TurnRow]) -> Engine:
        with opened.begin() as connection:
            for table in reversed(Base.metadata.sorted_tables):
                connection.execute(delete(table))
        write_rows(opened, rows)
        return opened

    yield fill
    opened.dispose()
