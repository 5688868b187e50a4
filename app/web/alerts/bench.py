"""Long work for one caller, in a thread of its own, ended when the caller has gone.

A backtest is work for the processor, of which turns need some too. So there is one at a time, and
one whose page has been changed or closed since does not run on.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from app.errors import AppError

T = TypeVar("T")
Progress = Callable[[int, int], None]
LOOK_SECONDS = 0.25
"""Between two looks at whether the caller is still there."""
MOST_WAITING = 8


class Caller(Protocol):
    """A request."""

    async def is_disconnected(self) -> bool: ...


class _GoneError(Exception):
    pass


class Bench:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="backtest")
        self._waiting = 0

    async def run(self, caller: Caller, work: Callable[[Progress], T]) -> T:
        """``work`` calls what it is given as often as it can: there it gives way to others, and
        ends when the caller has gone. Raises ``AppError`` where too many wait already."""
        if self._waiting >= MOST_WAITING:
            raise AppError("busy", "Too many backtests are waiting.", "Try again shortly.", 503)
        gone = threading.Event()

        def progress(_done: int, _of: int) -> None:
            if gone.is_set():
                raise _GoneError
            time.sleep(0)  # lets the event loop go first

        self._waiting += 1
        future = asyncio.get_running_loop().run_in_executor(self._thread, work, progress)
        try:
            while not (await asyncio.wait({future}, timeout=LOOK_SECONDS))[0]:
                if await caller.is_disconnected():
                    raise AppError("gone", "Nobody waits for this backtest.", None, 400)
            return future.result()
        finally:
            self._waiting -= 1
            gone.set()
            future.cancel()
