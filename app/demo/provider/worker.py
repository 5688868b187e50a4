"""One lane of a WebSocket: its frames are answered one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from .connection import Frame


class Worker:
    """Sends each frame's steps with ``send``; ``stop`` tells those that wait that the peer left."""

    def __init__(self, send: Callable[[Frame], Awaitable[None]]) -> None:
        self._send = send
        self._frames: asyncio.Queue[Frame] = asyncio.Queue()
        self._task = asyncio.create_task(self._run())

    def put(self, frame: Frame) -> None:
        self._frames.put_nowait(frame)

    async def _run(self) -> None:
        while True:
            await self._send(await self._frames.get())

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        while not self._frames.empty():
            self._frames.get_nowait().close()
