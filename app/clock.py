"""The clock. Nothing else in the service reads the time, so that tests can hold it still."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the Unix epoch; may jump when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back. For durations and deadlines."""
        ...


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()
