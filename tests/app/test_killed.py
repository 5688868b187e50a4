"""Whatever kills the process, every turn whose end a client saw is in the ledger, once."""

import asyncio
import random

import pytest
from sqlalchemy import select

from app.ledger.database import open_engine
from app.ledger.models import turns
from tests.support.killing import Clients, Killable, free_port
from tests.support.provider import provider
from tests.support.service import settings

KILLS = 10


@pytest.mark.parametrize("seed", [1])
async def test_a_service_that_is_killed_under_load_loses_no_turn_and_writes_none_twice(
    tmp_path, seed
):
    chance = random.Random(seed)
    async with provider() as up:
        config = settings(tmp_path, up.url, port=str(free_port()))
        service = Killable(config)
        clients = Clients(service)
        load = asyncio.create_task(clients.run(6))
        for _ in range(KILLS):
            await service.start()
            await clients.have_answers(len(clients.answered) + chance.randint(5, 60))
            await service.kill()
        load.cancel()
        await service.start()
        await service.end()
    engine = open_engine(config.database)
    with engine.connect() as connection:
        columns = (turns.c.turn_id, turns.c.status, turns.c.error_code)
        found = connection.execute(select(*columns)).all()
    engine.dispose()
    ids = [row.turn_id for row in found]
    assert len(ids) == len(set(ids))
    assert clients.answered <= {row.turn_id for row in found if row.status == "completed"}
    assert clients.begun <= set(ids)
    lost = [row for row in found if row.error_code == "process_ended"]
    assert lost
    assert all(row.status == "error" for row in lost)
    assert len(clients.answered) > 100
