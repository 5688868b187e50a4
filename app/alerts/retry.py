"""When a delivery is tried again, and when it is given up. Pure.

The schedule is that of Standard Webhooks: ten attempts over about three days. Only what may pass
by itself is repeated: no answer, 408, 425, 429 and 5xx. Other answers are a receiver's word that
the same message will never be taken; 3xx among them, for redirects are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Protocol

SCHEDULE = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Seconds after the first, second, … attempt. After one more attempt a delivery is dead."""
JITTER = 0.1
"""Pauses are up to this part shorter or longer, so that what failed together is not repeated
together."""
LONGEST_WISH = 86_400
"""A ``Retry-After`` counts up to so many seconds."""
GONE = 410
_MAY_PASS = (408, 425, 429)
_SECONDS = re.compile("[0-9]+")


class DeliveryState(StrEnum):
    QUEUED = "queued"
    """It waits for its time, or for an earlier message of the same alert."""
    SENDING = "sending"
    DELIVERED = "delivered"
    DEAD = "dead"
    """Given up. It can be replayed."""


class Answer(Protocol):
    """What became of an attempt, as far as it matters here."""

    @property
    def status(self) -> int | None:
        """HTTP status; None where there was no answer."""
        ...

    @property
    def retry_after(self) -> str | None:
        """The header's text."""
        ...


@dataclass(frozen=True, slots=True)
class Next:
    state: DeliveryState
    at: int | None = None
    """Epoch milliseconds of the next attempt; None when there is none."""
    gone: bool = False
    """The receiver wants nothing ever again (410)."""


def after(attempts: int, answer: Answer, now: int, random: Callable[[], float]) -> Next:
    """What follows the attempt number ``attempts`` (the first is 1) that ended at ``now`` (ms).

    ``random`` gives numbers from 0 to 1; 0.5 is the schedule itself.
    """
    status = answer.status
    if status is not None and 200 <= status <= 299:
        return Next(DeliveryState.DELIVERED)
    if status is not None and status not in _MAY_PASS and status < 500:
        return Next(DeliveryState.DEAD, gone=status == GONE)
    if attempts > len(SCHEDULE):
        return Next(DeliveryState.DEAD)
    pause = SCHEDULE[attempts - 1] * (1 - JITTER + 2 * JITTER * random())
    wish = 0.0 if status is None else wished_pause(answer.retry_after, now)
    return Next(DeliveryState.QUEUED, now + round(1_000 * max(pause, wish)))


def wished_pause(header: str | None, now: int) -> float:
    """The seconds that a ``Retry-After`` asks for: at most a day; 0 of one that says nothing."""
    if header is None:
        return 0.0
    text = header.strip()
    if _SECONDS.fullmatch(text):
        digits = text.lstrip("0")[:6]  # six of them are above the limit: more need no reading
        return float(min(int(digits or "0"), LONGEST_WISH))
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return 0.0
    if moment.tzinfo is None:  # RFC 9110: HTTP dates are in GMT
        moment = moment.replace(tzinfo=UTC)
    seconds = (moment - datetime.fromtimestamp(0, UTC)).total_seconds() - now / 1_000
    return min(max(seconds, 0.0), float(LONGEST_WISH))
