import pytest

from tests.support.databases import fresh
from tests.support.site import open_site


@pytest.fixture
def site(tmp_path):
    opened = open_site(tmp_path)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shared_site(backend, tmp_path_factory):
    """One ledger for all examples of a property; each example marks its rows by their source."""
    folder = tmp_path_factory.mktemp("ledger")
    with fresh(backend, folder) as database:
        opened = open_site(folder, database=database)
        yield opened
        opened.close()
