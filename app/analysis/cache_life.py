"""How long a prompt cache outlives its last use, as far as that is known (docs/verdicts.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from app.ledger.rows import TurnRow


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a cache outlives its last use, in milliseconds."""

    soft: int
    """It may be gone after this; before it, it is not."""
    hard: int
    """It is gone after this."""


MINUTE, HOUR = 60_000, 3_600_000
IN_MEMORY = Retention(5 * MINUTE, HOUR)
SINCE_5_6 = Retention(30 * MINUTE, 24 * HOUR)
SINCE_5_6_LONG = Retention(12 * HOUR, 24 * HOUR)
FIVE_MINUTES = Retention(5 * MINUTE, 5 * MINUTE)
ONE_HOUR = Retention(HOUR, HOUR)


def retention_of(row: TurnRow) -> Retention:
    """What is known of the life of a cache that a turn leaves."""
    return retention(row.model, is_long=bool(row.cache_write_long_tokens))


@lru_cache(maxsize=256)
def retention(model: str | None, *, is_long: bool) -> Retention:
    """``is_long``: it was written with the longer lifetime."""
    name = model or ""
    if "claude" in name:
        return ONE_HOUR if is_long else FIVE_MINUTES
    found = re.search(r"gpt-(\d+)(?:\.(\d+))?", name)
    if found is not None and (int(found[1]), int(found[2] or 0)) >= (5, 6):
        return SINCE_5_6_LONG if is_long else SINCE_5_6
    return ONE_HOUR if is_long else IN_MEMORY
