"""A clock that moves only when a test says so."""

from __future__ import annotations

START = 1_800_000_000.0
"""2027-01-15T08:00:00Z: far from midnight, month ends and changes of summer time."""


class ManualClock:
    """Both readings move together; ``set_now`` alone moves only the wall clock, as NTP would."""

    def __init__(self, now: float = START, *, monotonic: float = 1_000.0) -> None:
        self._now = now
        self._monotonic = monotonic

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"advance takes seconds of 0 or more, not {seconds}")
        self._now += seconds
        self._monotonic += seconds

    def set_now(self, now: float) -> None:
        self._now = now
