"""An event loop in which waiting takes no time: where nothing is to be done, the clock is put on."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Waiting(selectors.SelectSelector):
    """Watches nothing: a run has no sockets, and what it waits for comes from itself."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("nothing is left that could happen")
        self.now += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time-outs end in their order and at once; what waits for ever without one is an error."""

    def __init__(self) -> None:
        self._waiting = _Waiting()
        super().__init__(self._waiting)

    def time(self) -> float:
        return self._waiting.now


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """``asyncio.run`` in such a loop."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)
