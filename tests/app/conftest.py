from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings
from sqlalchemy import Engine, delete

from app.ledger.database import prepare
from app.ledger.models import Base
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows
from tests.support.databases import fresh


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest) -> str:
    """What keeps the ledger: every test of ``engine`` and ``holding`` runs once with each.

    A test that is about one of them says so with ``parametrize("backend", [...], indirect=True)``.
    """
    return str(request.param)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """A property meets a sixth of its examples on PostgreSQL: each takes several times as long, and
    most of what they search is the same Python."""
    function = getattr(item, "obj", None)
    if _backend_of(item) != "postgresql" or not is_hypothesis_test(function):
        return (yield)
    whole = function._hypothesis_internal_use_settings
    part = settings(whole, max_examples=max(5, whole.max_examples // 6))
    function._hypothesis_internal_use_settings = part
    try:
        return (yield)
    finally:
        function._hypothesis_internal_use_settings = whole


def _backend_of(item: pytest.Item) -> str | None:
    call = getattr(item, "callspec", None)
    return None if call is None else call.params.get("backend")


@pytest.fixture
def database(backend: str, tmp_path: Path) -> Iterator[str]:
    """Where ``engine`` keeps its data: for tests that open it a second time."""
    with fresh(backend, tmp_path) as url:
        yield url


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    """An empty ledger, made by the migrations."""
    opened = prepare(database)
    yield opened
    opened.dispose()


@pytest.fixture(scope="module")
def holding(
    backend: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Engine]]:
    """``holding(rows)`` is a ledger with just these rows: one database for many examples."""
    with fresh(backend, tmp_path_factory.mktemp("ledger")) as url:
        opened = prepare(url)

        def fill(rows: Sequence[TurnRow]) -> Engine:
            with opened.begin() as connection:
                for table in reversed(Base.metadata.sorted_tables):
                    connection.execute(delete(table))
            write_rows(opened, rows)
            return opened

        yield fill
        opened.dispose()
