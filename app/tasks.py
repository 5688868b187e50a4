"""The one place where asyncio tasks are made: named, referenced, and awaited at shutdown.

A bare ``asyncio.create_task`` may be collected before it ends, and its exception is seen by
nobody. Tasks made here are kept until they are done; a failure is logged once, without the
exception's text, which may quote what a client sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")
GRACE = 10.0
"""How many seconds what repeats has for the time at hand, when its owner ends."""


class Tasks:
    """The tasks of one owner. ``aclose`` ends them all and lets no new one start."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, coroutine: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        if self._closed:
            coroutine.close()
            raise RuntimeError(f"task {name} started after the end of its owner")
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            logger.error("task %s failed: %s", task.get_name(), describe(error))

    async def aclose(self, *, grace: float = 0.0) -> None:
        """Wait ``grace`` seconds for the tasks to end by themselves, then cancel and await them."""
        self._closed = True
        if grace > 0 and self._tasks:
            await asyncio.wait(set(self._tasks), timeout=grace)
        while self._tasks:
            pending = set(self._tasks)
            for task in pending:
                task.cancel()
            # Not gather: cancelled itself, it would raise the cancellation of one of its tasks,
            # and whoever cancelled us would not know it for its own.
            await asyncio.wait(pending)


class Repeating(ABC):
    """Runs beside the service, in a thread: once every so many seconds, whatever became of the
    time before. ``aclose`` waits for the time at hand; who takes long looks at ``_stop``."""

    def __init__(self, name: str, *, every: float) -> None:
        self._name = name
        self._every = every
        self._tasks = Tasks()
        self._stop = threading.Event()
        self._ended = asyncio.Event()

    @abstractmethod
    def _once(self) -> None:
        """What is to be done, in a thread of its own."""

    @abstractmethod
    def _failed(self, error: Exception) -> None:
        """What to say of a time that failed."""

    def start(self) -> None:
        self._tasks.start(self._run(), name=self._name)

    async def aclose(self) -> None:
        self._stop.set()
        self._ended.set()
        await self._tasks.aclose(grace=GRACE)

    async def _run(self) -> None:
        while not self._ended.is_set():
            try:
                await asyncio.to_thread(self._once)
            except Exception as error:
                self._failed(error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), self._every)


def describe(error: BaseException) -> str:
    """The kind of an error and where it was raised, without its text."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
