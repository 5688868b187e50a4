"""Several gateways write to one PostgreSQL at once: its rollups are still those of its rows."""

import random
import threading

import pytest
from sqlalchemy import Engine

from app.ledger.database import open_engine
from app.ledger.filters import Filter
from app.ledger.writer import LedgerWriter
from engine.model import Mode
from tests.support.clock import ManualClock
from tests.support.rollups import expected_series, expected_whole, found_series, found_whole
from tests.support.rows import START_MS, make_row

HOUR = 3_600_000
GATEWAYS = 4


@pytest.fixture(scope="module")
def backend() -> str:
    return "postgresql"


def test_nothing_is_counted_twice_or_not_at_all(database: str, engine: Engine):
    """They share models, sessions and hours, so that each batch changes what the others change;
    some rows are those of another gateway, and the hours move on, so that they are summed up."""
    randomly = random.Random(5)
    rows = [
        make_row(
            turn_id=f"t{number}",
            started_at=START_MS + number * 8 * HOUR // 600 + randomly.randrange(1_000),
            session=f"s{randomly.randrange(5)}",
            model=randomly.choice(["a", "b", None]),
            mode=str(randomly.choice(list(Mode))),
            ttft_ms=randomly.choice([None, 10.0, 500.0]),
        )
        for number in range(600)
    ]
    engines = [open_engine(database) for _ in range(GATEWAYS)]
    writers = [
        LedgerWriter(one, ManualClock(now=(START_MS + 9 * HOUR) / 1_000), batch_size=15, linger=0)
        for one in engines
    ]

    def work(place: int) -> None:
        for number, row in enumerate(rows):
            if number % GATEWAYS == place or number % 50 == 0:
                writers[place].record(row)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(GATEWAYS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(writer.flush(timeout=60) for writer in writers)
    states = [writer.state() for writer in writers]
    for writer, one in zip(writers, engines, strict=True):
        writer.close()
        one.dispose()
    assert (600, 0) == (sum(s.written for s in states), sum(s.failures for s in states))
    for view in (
        Filter(start=START_MS, end=START_MS + 8 * HOUR),
        Filter(start=START_MS + HOUR // 2, end=START_MS + 7 * HOUR + 1, include={"model": ("a",)}),
    ):
        assert expected_whole(rows, view) == found_whole(engine, view)
        cuts = range(START_MS, START_MS + 8 * HOUR + 1, HOUR)
        assert expected_series(rows, view, cuts) == found_series(engine, view, cuts)
