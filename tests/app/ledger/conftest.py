import logging
from collections.abc import Iterator

import pytest

from tests.support.heard import Heard


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler, logger = Heard(), logging.getLogger("app.ledger.writer")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
