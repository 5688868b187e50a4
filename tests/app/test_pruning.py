import asyncio
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app import pruning
from app.ledger.rollups.contribution import DAY
from app.ledger.writer import write_rows
from app.settings import Settings, load
from tests.support.clock import START, ManualClock
from tests.support.deliveries import put, stored
from tests.support.rollups import turns_in
from tests.support.rows import START_MS, make_row


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    days = {"retain_rows_days": "2", "retain_alerts_days": "3"}
    return load(environ={}, flags={"database": str(tmp_path / "l.sqlite3")} | days)


def write(engine: Engine) -> None:
    write_rows(engine, [make_row(started_at=START_MS - n * DAY) for n in range(5)])


async def until(condition) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def test_the_settings_say_what_is_kept(engine: Engine, settings: Settings, caplog):
    write(engine)
    waiting = put(engine)
    caplog.set_level("INFO", "app.pruning")
    pruning.prune(engine, settings, START_MS)
    assert 3 == turns_in(engine)
    assert stored(engine, waiting)
    assert ["deleted 2 rows from before 2027-01-13T00:00:00.000Z"] == caplog.messages


async def test_it_runs_beside_the_service_and_ends_with_it(engine: Engine, settings: Settings):
    write(engine)
    pruner = pruning.Pruner(engine, settings, ManualClock(START))
    pruner.start()
    await until(lambda: turns_in(engine) == 3)
    async with asyncio.timeout(5):
        await pruner.aclose()


async def test_a_database_that_is_away_is_tried_again(
    engine: Engine, settings: Settings, monkeypatch, caplog
):
    write(engine)
    calls = []

    def fails_once(*given):
        calls.append(given)
        if len(calls) == 1:
            raise OSError("away")
        return prune(*given)

    prune = pruning.prune
    monkeypatch.setattr(pruning, "prune", fails_once)
    monkeypatch.setattr(pruning, "EVERY", 0.01)
    pruner = pruning.Pruner(engine, settings, ManualClock(START))
    pruner.start()
    await until(lambda: turns_in(engine) == 3)
    await pruner.aclose()
    assert "could not be deleted: OSError" in caplog.text
