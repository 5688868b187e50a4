"""Two processes on one PostgreSQL: here two announcers, one of which listens."""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import Engine, text

from app.ledger import listening
from app.ledger.announcing import CHANNEL, Announcer
from app.ledger.inserting import insert_new
from app.ledger.listening import Listener
from app.ledger.rows import TurnRow
from tests.support import postgres
from tests.support.rows import make_row


@pytest.fixture(scope="module")
def backend() -> str:
    return "postgresql"


class Heard:
    def __init__(self) -> None:
        self.rows: list[TurnRow] = []
        self.gaps = 0
        self.wanted = True
        self.asked = 0

    @property
    def turn_ids(self) -> list[str]:
        return [row.turn_id for row in self.rows]

    def wants(self) -> bool:
        self.asked += 1
        return self.wanted

    def gap(self) -> None:
        self.gaps += 1


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def write(engine: Engine, announcer: Announcer, *turn_ids: str) -> list[TurnRow]:
    rows = [make_row(turn_id=turn_id) for turn_id in turn_ids]
    with engine.begin() as connection:
        announcer.announce(connection, insert_new(connection, rows))
    return rows


@asynccontextmanager
async def listener(engine: Engine, announcer: Announcer, *, every: float = 0.05):
    heard = Heard()
    made = Listener(
        engine,
        announcer,
        on_rows=heard.rows.extend,
        on_gap=heard.gap,
        wanted=heard.wants,
        every=every,
    )
    task = asyncio.ensure_future(made.run())
    try:
        await until(lambda: made.listening)
        yield heard, made
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_rows_of_others_come_and_ones_own_do_not(engine: Engine):
    own, other = Announcer(), Announcer()
    write(engine, other, "before")
    async with listener(engine, own) as (heard, _):
        write(engine, own, "mine")
        rows = write(engine, other, "one", "two")
        await until(lambda: len(heard.rows) >= 2)
        write(engine, own, "mine too")
        write(engine, other, "three")
        await until(lambda: len(heard.rows) >= 3)
        await asyncio.sleep(0.2)  # a few looks, if there were any
        assert ["one", "two", "three"] == heard.turn_ids
        assert rows == heard.rows[:2]
        assert 0 == heard.gaps


async def test_while_nobody_wants_rows_none_are_read(engine: Engine):
    other = Announcer()
    async with listener(engine, Announcer(), every=60) as (heard, _):
        heard.wanted = False
        write(engine, other, "unseen")
        await until(lambda: heard.asked > 0)
        heard.wanted = True
        write(engine, other, "seen")
        await until(lambda: bool(heard.rows))
        assert ["seen"] == heard.turn_ids


async def test_after_a_restart_of_the_server_it_is_told_that_some_may_be_missing(engine: Engine):
    other = Announcer()
    async with listener(engine, Announcer()) as (heard, made):
        postgres.server().stop()
        await until(lambda: not made.listening)
        postgres.server().start()
        write(engine, other, "missed, perhaps")
        await until(lambda: made.listening)
        assert 1 == heard.gaps
        write(engine, other, "after")
        await until(lambda: "after" in heard.turn_ids)
        assert 1 == heard.gaps


async def test_a_server_that_is_not_there_at_first_is_waited_for(engine: Engine):
    postgres.server().stop()
    made = Listener(
        engine, Announcer(), on_rows=list, on_gap=lambda: None, wanted=lambda: True, every=0.05
    )
    task = asyncio.ensure_future(made.run())
    await asyncio.sleep(0.1)
    assert not made.listening
    postgres.server().start()
    await until(lambda: made.listening)
    task.cancel()
    await asyncio.wait([task])


async def test_of_more_rows_than_can_be_shown_it_is_told_that_there_are_some(
    engine: Engine, monkeypatch
):
    monkeypatch.setattr(listening, "MOST", 3)
    async with listener(engine, Announcer()) as (heard, _):
        write(engine, Announcer(), *"abcd")
        await until(lambda: heard.gaps == 1)
        assert [] == heard.rows


async def test_an_announcement_that_nobody_here_understands_may_have_been_of_rows(engine: Engine):
    async with listener(engine, Announcer()) as (heard, _):
        with engine.begin() as connection:
            connection.execute(text(f"SELECT pg_notify('{CHANNEL}', 'of another version')"))
        await until(lambda: heard.gaps == 1)


async def test_where_announcements_do_not_come_through_rows_are_looked_for(
    engine: Engine, monkeypatch
):
    """As behind a pooler that gives each transaction another connection."""
    monkeypatch.setattr(listening, "CHANNEL", "elsewhere")
    own, other = Announcer(), Announcer()
    write(engine, other, "before")
    async with listener(engine, own) as (heard, _):
        write(engine, other, "one")
        write(engine, own, "mine")
        await until(lambda: bool(heard.rows))
        write(engine, other, "two")
        await until(lambda: len(heard.rows) >= 2)
        await asyncio.sleep(0.2)
        assert ["one", "two"] == heard.turn_ids


async def test_a_row_that_is_committed_after_a_later_one_is_found_as_well(
    engine: Engine, monkeypatch
):
    monkeypatch.setattr(listening, "CHANNEL", "elsewhere")
    async with listener(engine, Announcer(), every=0.3) as (heard, _):
        with engine.begin() as late:
            insert_new(late, [make_row(turn_id="late")])
            write(engine, Announcer(), "early")
            await until(lambda: heard.turn_ids == ["early"])
        await until(lambda: heard.turn_ids == ["early", "late"])
