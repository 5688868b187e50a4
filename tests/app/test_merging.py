import asyncio
import logging

import pytest
from sqlalchemy import Engine, select

from app import merging as beside
from app.ledger import imports, taking
from app.ledger.imports import Counts
from app.ledger.models import turns
from app.ledger.writer import LedgerWriter
from app.merging import Merger
from tests.support.clock import ManualClock
from tests.support.rows import START_MS, make_row

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(beside, "EVERY", 0.01)


def bring(engine: Engine) -> None:
    imports.begin(engine, "i", START_MS, [])
    taking.take(engine, "i", [[make_row(turn_id="l", source="import:codex")]], Counts())


def ids(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return list(connection.execute(select(turns.c.turn_id).order_by(turns.c.turn_id)).scalars())


async def until(condition) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def test_rows_that_come_after_the_logs_are_merged_beside_the_service_which_is_told(
    engine: Engine,
):
    bring(engine)
    told: list[str] = []
    merger = Merger(engine, changed=lambda: told.append("changed"))
    merger.start()
    writer = LedgerWriter(engine, ManualClock(), on_written=merger.written)
    writer.record(make_row(turn_id="g"))
    await until(lambda: ids(engine) == ["g"])
    writer.close(5)
    async with asyncio.timeout(5):
        await merger.aclose()
    assert ["changed"] == told


async def test_what_a_process_that_was_killed_has_written_is_looked_at_again(engine: Engine):
    bring(engine)
    writer = LedgerWriter(engine, ManualClock())
    writer.record(make_row(turn_id="g"))
    writer.close(5)
    assert ["g", "l"] == ids(engine)
    merger = Merger(engine)
    merger.start()
    await until(lambda: ids(engine) == ["g"])
    await merger.aclose()


async def test_a_database_that_is_away_is_told_once_and_tried_again(
    engine: Engine, monkeypatch, caplog
):
    tries = []

    def merge(_engine, names, **_options) -> int:
        tries.append(set(names))
        if len(tries) < 4:
            raise OSError("secret")
        return 0

    monkeypatch.setattr(beside.merging, "merge", merge)
    merger = Merger(engine)
    merger.written([make_row(session="a"), make_row(session=None)])
    with caplog.at_level(logging.WARNING):
        merger.start()
        await until(lambda: len(tries) > 3)
        await merger.aclose()
    assert [{"a"}] * 4 == tries[:4], "nothing is forgotten"
    assert ["calls could not be merged: OSError"] == caplog.messages
