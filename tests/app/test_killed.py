"""Whatever kills the process, every turn whose end a client saw is in the ledger, once."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from app.demo.provider.faults import silence
from app.ledger.journal.records import Begun, Reader
from tests.support.children import free_ports
from tests.support.databases import fresh
from tests.support.killing import Clients, Killable, verdict
from tests.support.provider import AUTH, MODEL, provider
from tests.support.service import running, settings

KILLS = 10


@pytest.mark.parametrize("backend", ["sqlite", "postgresql"])
async def test_a_service_that_is_killed_under_load_loses_no_turn_and_writes_none_twice(
    tmp_path, backend
):
    chance = random.Random(1)
    with fresh(backend, tmp_path) as database:
        key = tmp_path / "key"
        key.write_text("ab" * 32)
        key.chmod(0o600)
        more = {"database": database, "key_file": str(key), "journal_dir": str(tmp_path / "turns")}
        async with provider() as up:
            service = Killable(settings(tmp_path, up.url, port=str(*free_ports(1)), **more))
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


def begun(journal: Path) -> Iterator[str]:
    for path in journal.rglob("*.journal"):
        for line in Reader().lines(path.read_bytes()):
            if isinstance(line.record, Begun):
                yield line.record.turn_id


async def test_turns_that_wait_in_a_socket_behind_another_leave_their_rows(tmp_path):
    async with provider() as up:
        up.core.faults.on_request(silence())
        config = settings(tmp_path, up.url, port=str(*free_ports(1)))
        service = Killable(config)
        await service.start()
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(f"{service.url}/v1/responses", headers=AUTH) as socket,
        ):
            for text in ("first", "second", "third"):
                body = {"type": "response.create", "model": MODEL, "input": text}
                await socket.send_json(body)
            async with asyncio.timeout(30):
                while len(set(begun(config.journal_dir))) < 3:
                    await asyncio.sleep(0.01)  # another process: nobody tells when it has read
            await service.kill()
        left = set(begun(config.journal_dir))
        async with running(config) as live:
            rows = await live.rows(3)
    assert left == {row["turn_id"] for row in rows}
    assert [("error", "process_ended")] * 3 == [(r["status"], r["error_code"]) for r in rows]
