import asyncio

import pytest
from sqlalchemy import Engine, select

from app import judging
from app.judging import Judge, judge_all
from app.ledger.judging import Judging
from app.ledger.models import turns
from app.ledger.writer import write_rows
from tests.support.clock import START, ManualClock
from tests.support.rows import START_MS, make_row


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(judging, "EVERY", 0.01)


def write(engine: Engine, *numbers: int) -> None:
    write_rows(
        engine,
        [
            make_row(
                turn_id=f"t{n}",
                started_at=START_MS + n * 3_000,
                ended_at=START_MS + n * 3_000 + 1_000,
                input_tokens=20_000,
                cached_tokens=19_968 if n else 0,
            )
            for n in numbers
        ],
    )


def verdicts(engine: Engine) -> list[str | None]:
    query = select(turns.c.cache_verdict).order_by(turns.c.turn_id)
    with engine.connect() as connection:
        return list(connection.execute(query).scalars())


async def until(condition) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def test_all_that_waits_is_judged_at_once(engine: Engine):
    write(engine, 0, 1)
    told = []
    assert 2 == judge_all(engine, ManualClock(START), lambda *done: told.append(done))
    assert ["cold_start", "hit"] == verdicts(engine)
    assert [(2, 2), (2, 2)] == told
    with engine.connect() as connection:
        assert None not in connection.execute(select(turns.c.price_note)).scalars().all()


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_of_sessions_that_are_judged_at_once_none_stays_in_memory(engine: Engine, monkeypatch):
    write_rows(engine, [make_row(session_key=name) for name in "abc"])
    left = []
    monkeypatch.setattr(Judging, "release", lambda mine: left.append(len(mine.remembered)))
    judge_all(engine, ManualClock(START))
    assert [0] == left
    assert None not in verdicts(engine)


async def test_turns_are_judged_beside_the_service_which_ends_with_it(engine: Engine):
    judge = Judge(engine, ManualClock(START))
    judge.start()
    write(engine, 0)
    await until(lambda: verdicts(engine) == ["cold_start"])
    write(engine, 1)
    await until(lambda: verdicts(engine) == ["cold_start", "hit"])
    async with asyncio.timeout(5):
        await judge.aclose()


async def test_an_import_does_not_wait_for_a_service_that_judges(engine: Engine):
    judge = Judge(engine, ManualClock(START))
    judge.start()
    write(engine, 0)
    await until(lambda: verdicts(engine) == ["cold_start"])
    write(engine, 1)
    await asyncio.to_thread(judge_all, engine, ManualClock(START))
    assert ["cold_start", "hit"] == verdicts(engine)
    write(engine, 2)
    await until(lambda: verdicts(engine) == ["cold_start", "hit", "hit"])
    await judge.aclose()


async def test_who_ends_leaves_it_to_another_at_once(engine: Engine):
    clock = ManualClock(START)
    for number in range(2):
        judge = Judge(engine, clock)
        judge.start()
        write(engine, number)
        await until(lambda: None not in verdicts(engine))
        await judge.aclose()


async def test_a_database_that_is_away_is_said_once_and_tried_again(
    engine: Engine, monkeypatch, caplog
):
    write(engine, 0)
    calls = []
    run = judging.Judging.run

    def fails_first(self, **given):
        calls.append(given)
        if len(calls) <= 3:
            raise OSError("away")
        return run(self, **given)

    monkeypatch.setattr(judging.Judging, "run", fails_first)
    judge = Judge(engine, ManualClock(START))
    judge.start()
    await until(lambda: verdicts(engine) == ["cold_start"])
    await judge.aclose()
    assert ["turns could not be judged: OSError"] == caplog.messages
