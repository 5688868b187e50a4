from collections.abc import Callable

import pytest
from sqlalchemy import Engine

from app.ledger.rows import TurnRow
from app.reporting.figures import Figures, Read
from app.reporting.gather import gather
from tests.support.ledger import everything


@pytest.fixture
def figures_of(holding: Callable[..., Engine]) -> Callable[..., Figures]:
    """The figures of a ledger with just these rows."""

    def made(*rows: TurnRow, read: Read | None = None) -> Figures:
        return gather(holding(rows), everything(), read or Read())

    return made
