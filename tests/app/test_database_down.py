"""A database that goes away under load: no turn fails or waits for it, and no row is lost."""

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from tests.support import postgres
from tests.support.databases import fresh
from tests.support.killing import Clients, verdict
from tests.support.provider import provider
from tests.support.service import running, settings

HOLDER = """
import sqlite3, sys
holder = sqlite3.connect(sys.argv[1], isolation_level=None)
holder.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def stopped(_database):
    await asyncio.to_thread(postgres.server().stop)
    yield
    await asyncio.to_thread(postgres.server().start)


@asynccontextmanager
async def locked(database):
    """By another process, which has it for itself."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, database], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert await asyncio.to_thread(holder.stdout.readline) == b"held\n"
        yield
        holder.stdin.close()


async def told(live, status):
    """Wait until /readyz answers so: threads look at the database now and then."""
    async with asyncio.timeout(60):
        while True:
            async with live.http.get(f"{live.url}/readyz") as answer:
                if answer.status == status:
                    return
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(("backend", "away"), [("sqlite", locked), ("postgresql", stopped)])
async def test_turns_go_on_and_their_rows_are_written_when_it_is_back(tmp_path, backend, away):
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    key.chmod(0o600)
    with fresh(backend, tmp_path) as database:
        config = {"database": database, "key_file": str(key), "journal_dir": str(tmp_path / "j")}
        async with provider() as up, running(settings(tmp_path, up.url, **config)) as live:
            up_now = asyncio.Event()
            up_now.set()
            clients = Clients(SimpleNamespace(url=live.url, up=up_now))
            state = live.service.writer.state
            async with clients.running(3, sockets=1):
                await clients.have_answers(10)
                async with away(database):
                    before = state().written
                    # As long as it takes: a turn that waited for the database would never end.
                    await clients.have_answers(clients.count + 40)
                    assert state().written <= before + 12
                    assert state().queued >= 20
                    if backend == "postgresql":
                        await told(live, 503)
                await clients.have_answers(clients.count + 10)
            await told(live, 200)
        found = verdict(database, clients)
    assert 0 == clients.broken
    assert found.is_sound, found
    assert 0 == state().dropped
