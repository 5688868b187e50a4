"""The time-out of what a turn waits for: one timer for the whole turn, not one per event.

A timer that is due sooner than it has to be is left alone, and set anew when it is due: most of the
time what is waited for has come by then, and nothing is to be done at all.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any


class Patience:
    """As ``asyncio.timeout``, for one wait after the other: ``async with patience.until(when)``.

    ``when`` is a moment of the event loop's clock. Raises ``TimeoutError`` at the end of a block
    that lasted longer. The blocks of one patience do not nest.
    """

    __slots__ = ("_cancelling", "_due_at", "_handle", "_is_over", "_loop", "_task", "_when")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.Handle | None = None
        self._due_at = 0.0
        """Not asked of the handle: that of a moment that has passed knows none on uvloop."""
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._when = 0.0
        self._is_over = False

    def until(self, when: float) -> Patience:
        self._when = when
        return self

    async def __aenter__(self) -> None:
        task = self._task = asyncio.current_task()
        assert task is not None
        self._cancelling = task.cancelling()
        self.reschedule(self._when)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        if not self._is_over:
            return
        self._is_over = False
        assert task is not None
        if task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def when(self) -> float | None:
        """Until when the wait under way lasts; None where nothing is waited for."""
        return None if self._task is None else self._when

    def reschedule(self, when: float) -> None:
        """Let the wait under way end at another moment."""
        self._when = when
        if self._handle is not None:
            if self._due_at <= when:
                return
            self._handle.cancel()
        self._set(when)

    def stop(self) -> None:
        """Nothing more is waited for."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _due(self) -> None:
        self._handle = None
        if self._task is None:
            return
        if self._due_at < self._when:
            self._set(self._when)
            return
        self._is_over = True
        self._task.cancel()

    def _set(self, when: float) -> None:
        self._due_at = when
        self._handle = self._loop.call_at(when, self._due)
