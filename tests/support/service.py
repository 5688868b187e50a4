"""The whole service on a port, in the test's own event loop, before an upstream of the test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn

from app.clock import Clock
from app.main import Service, create_app
from app.server import configure
from app.settings import Settings, load
from tests.support.databases import migrated


def settings(folder: Path, upstream: str, toml: str = "", **flags: str) -> Settings:
    """Settings with a ledger in ``folder`` and nothing from the machine's environment.

    ``toml`` is the settings file; flags beat it.
    """
    given = {"database": str(folder / "ledger.sqlite3"), "upstream": upstream}
    config = folder / "warmline.toml"
    config.write_text(toml)
    return load(config=config, environ={}, flags=given | flags)


@dataclass
class Running:
    url: str
    service: Service
    http: aiohttp.ClientSession

    async def get(self, path: str, **parameters: str) -> Any:
        async with self.http.get(self.url + path, params=parameters) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def text(self, path: str) -> str:
        async with self.http.get(self.url + path) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.text()

    async def ask(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        """A call that changes something, as a page makes it."""
        headers = {"origin": self.url}
        async with self.http.request(
            method, self.url + path, json={} if body is None else body, headers=headers
        ) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    async def rows(self, count: int = 0) -> list[dict[str, Any]]:
        """All rows, newest first, when everything recorded so far is written; at least ``count``
        are waited for."""
        assert self.service.writer is not None
        async with asyncio.timeout(10):
            while True:
                assert await asyncio.to_thread(self.service.writer.flush)
                found = await self.get("/api/requests", limit="500")
                if len(found["rows"]) >= count:
                    return found["rows"]  # type: ignore[no-any-return]
                await asyncio.sleep(0.01)


@asynccontextmanager
async def running(config: Settings, *, clock: Clock | None = None) -> AsyncIterator[Running]:
    migrated(config.database)
    app = create_app(config, clock=clock)
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        serving = configure(app, config)
        serving.timeout_graceful_shutdown = 2
        server = uvicorn.Server(serving)
        # Signals are the test runner's; the task ends when the server has shut down.
        task = asyncio.ensure_future(server._serve([listener]))
        while not server.started:
            if task.done():
                task.result()
                raise AssertionError("the service did not start")
            await asyncio.sleep(0.01)
        try:
            async with aiohttp.ClientSession() as http:
                yield Running(f"http://127.0.0.1:{port}", app.state.service, http)
        finally:
            server.should_exit = True
            await task
