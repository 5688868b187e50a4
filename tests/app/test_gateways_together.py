"""Two gateways on one PostgreSQL: each shows the rows of both, once."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from tests.support import postgres
from tests.support.rows import make_row
from tests.support.service import Running, running, settings


@pytest.fixture
def ledger():
    with postgres.server().ledger() as url:
        yield url


async def gateway(stack: AsyncExitStack, folder: Path, database: str, key: Path) -> Running:
    folder.mkdir()
    config = settings(folder, "http://127.0.0.1:9", database=database, key_file=str(key))
    return await stack.enter_async_context(running(config))


async def shown(live: aiohttp.ClientWebSocketResponse, count: int) -> list[str]:
    """The ids of the next rows on a page."""
    found: list[str] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            message = json.loads((await live.receive()).data)
            found += [row["turn_id"] for row in message.get("rows", ())]
    return found


async def test_each_page_shows_the_rows_of_both_gateways_once(ledger: str, tmp_path: Path):
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    async with AsyncExitStack() as stack:
        both = [await gateway(stack, tmp_path / name, ledger, key) for name in ("a", "b")]
        pages = [
            await stack.enter_async_context(one.http.ws_connect(f"{one.url}/api/live"))
            for one in both
        ]
        for number in range(3):
            for place, one in enumerate(both):
                assert one.service.writer is not None
                one.service.writer.record(make_row(turn_id=f"{place}-{number}"))
        expected = {f"{place}-{number}" for place in (0, 1) for number in range(3)}
        for page in pages:
            found = await shown(page, 6)
            assert expected == set(found)
            assert 6 == len(found)
