"""Whatever kills the process, every turn whose end a client saw is in the ledger, once."""

import random

import pytest

from tests.support.databases import fresh
from tests.support.killing import Clients, Killable, free_port, verdict
from tests.support.provider import provider
from tests.support.service import settings

KILLS = 10


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
async def test_a_service_that_is_killed_under_load_loses_no_turn_and_writes_none_twice(
    tmp_path, backend
):
    chance = random.Random(1)
    with fresh(backend, tmp_path) as database:
        key = tmp_path / "key"
        key.write_text("ab" * 32)
        more = {"database": database, "key_file": str(key), "journal_dir": str(tmp_path / "turns")}
        async with provider() as up:
            service = Killable(settings(tmp_path, up.url, port=str(free_port()), **more))
            clients = Clients(service)
            async with clients.running(4, sockets=2):
                for _ in range(KILLS):
                    await service.start()
                    await clients.have_answers(clients.count + chance.randint(5, 20))
                    await service.kill()
            await service.start()
            await service.end()
        found = verdict(database, clients)
    assert found.is_sound, found
    assert found.in_flight
    assert len(clients.answered) > 30 < len(clients.responses)
