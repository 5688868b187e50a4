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
FIVE_MINUTES = Retention(5 * MINUTE, 5 * MINUTE)
ONE_HOUR = Retention(HOUR, HOUR)


def retention_of(row: TurnRow) -> Retention:
    """What is known of a cache's life: by the kind of writes that are reported, else the model."""
    if row.cache_write_long_tokens:
        return ONE_HOUR
    return _of_model(row.model or "")


@lru_cache(maxsize=256)
def _of_model(model: str) -> Retention:
    if model.startswith("claude"):
        return FIVE_MINUTES
    found = re.search(r"gpt-(\d+)(?:\.(\d+))?", model)
    since = found is not None and (int(found[1]), int(found[2] or 0)) >= (5, 6)
    return SINCE_5_6 if since else IN_MEMORY
