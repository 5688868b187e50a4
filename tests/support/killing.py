"""The service in a process of its own that is killed while clients are being served.

The process is forked from one that has imported everything, so that it starts in an instant.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess

import aiohttp
import uvicorn

from app.main import create_app
from app.server import configure
from app.settings import Settings
from tests.support.provider import AUTH, MODEL

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.support.killing"])


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _serve(settings: Settings) -> None:
    uvicorn.Server(configure(create_app(settings), settings)).run()


@dataclass
class Killable:
    """A service that listens where its settings say, and can be killed and started again."""

    settings: Settings
    process: BaseProcess | None = None
    up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while it serves."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings.port}"

    async def start(self) -> None:
        self.process = _processes.Process(target=_serve, args=(self.settings,), daemon=True)
        self.process.start()
        async with aiohttp.ClientSession() as http, asyncio.timeout(30):
            while not await self._is_ready(http):
                assert self.process.is_alive(), "the service did not start"
                await asyncio.sleep(0.01)  # another process: nobody tells when it listens
        self.up.set()

    async def _is_ready(self, http: aiohttp.ClientSession) -> bool:
        try:
            async with http.get(self.url + "/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    async def kill(self) -> None:
        await self.end(signal.SIGKILL)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        process = self.process
        assert process is not None
        assert process.pid is not None
        self.up.clear()
        os.kill(process.pid, number)
        await asyncio.to_thread(process.join, 30)
        assert not process.is_alive()


@dataclass
class Clients:
    """Clients that send turn after turn, whatever becomes of them."""

    service: Killable
    begun: set[str] = field(default_factory=set)
    """Turns whose answer had begun."""
    answered: set[str] = field(default_factory=set)
    """Turns whose last event was received."""
    _progress: asyncio.Event = field(default_factory=asyncio.Event)

    async def have_answers(self, count: int) -> None:
        """Wait until the ends of so many turns were received."""
        while len(self.answered) < count:
            self._progress.clear()
            await self._progress.wait()

    async def run(self, count: int) -> None:
        async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(self._one(http, number))

    async def _one(self, http: aiohttp.ClientSession, number: int) -> None:
        history = [{"role": "user", "content": "hello"}]
        while True:
            body = {"model": MODEL, "input": history, "stream": True, "store": False}
            named = {"session-id": f"agent-{number}", **AUTH}
            try:
                async with http.post(
                    self.service.url + "/v1/responses", json=body, headers=named
                ) as answer:
                    turn_id = answer.headers["x-warmline-turn"]
                    self.begun.add(turn_id)
                    async for line in answer.content:
                        if line.startswith(b"event: response.completed"):
                            self.answered.add(turn_id)
                            self._progress.set()
            except (aiohttp.ClientError, KeyError):
                await self.service.up.wait()  # it was killed
            history.append({"role": "user", "content": "go on" if len(history) % 5 else "again"})
            del history[6:]
