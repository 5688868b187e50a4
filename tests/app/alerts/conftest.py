from collections.abc import AsyncIterator

import pytest
from sqlalchemy import Engine

from tests.support.clock import ManualClock
from tests.support.couriers import Make, couriers


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def make(engine: Engine, clock: ManualClock) -> AsyncIterator[Make]:
    """Makes couriers, which end with the test."""
    async with couriers(engine, clock) as made:
        yield made
