"""A clock that moves only when a test says so."""

from __future__ import annotations

from engine import testing

START = 1_800_000_000.0
"""2027-01-15T08:00:00Z: far from midnight, month ends and changes of summer time."""


class ManualClock(testing.ManualClock):
    """Both readings move together; ``set_now`` alone moves only the wall clock, as NTP would."""

    def set_now(self, now: float) -> None:
        self._now = now
