"""How a command that goes on for ever is told to end."""

from __future__ import annotations

import os
import select
import signal
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Ending:
    """SIGINT and SIGTERM ask for it; a second one ends the process as ever."""

    def __init__(self) -> None:
        self._asked = False

    def __enter__(self) -> Self:
        # Waiting for a pipe ends at once when a signal has written to it, whenever it came.
        self._awake, self._alarm = os.pipe()
        self._before: dict[int, Any] = {one: signal.signal(one, self._ask) for one in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)
        os.close(self._awake)
        os.close(self._alarm)

    def asked(self) -> bool:
        return self._asked

    def rest(self, seconds: float) -> bool:
        """Wait, but no longer than until it is asked for; whether it is."""
        select.select([self._awake], [], [], seconds)
        return self._asked

    def _ask(self, number: int, _frame: object) -> None:
        self._asked = True
        os.write(self._alarm, b"!")
        signal.signal(number, self._before[number])
