"""The turns of one session as the strip and the lanes draw them: a letter each, and how long the
cache had to live from the turn before.

The letter says the wire; a capital is a break. ``LETTERS`` are the words of the legend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.analysis.cache_life import retention_of
from app.analysis.chains import Before, order_of
from app.ledger.cells import INCREMENTAL
from app.ledger.conditions import SUCCEEDED
from app.ledger.rows import TurnRow
from engine.model import Kind, Mode

LETTERS: dict[str, str] = {
    "i": "ws_incremental",
    "j": "http_incremental",
    "f": "ws_full",
    "F": "ws_full, a break",
    "h": "http_full",
    "H": "http_full, a break",
    "u": "mode not known",
    "x": "did not succeed",
    "w": "warm-up",
    "c": "compaction",
}
_OF_MODE: dict[str | None, str] = {
    Mode.WS_INCREMENTAL: "i",
    Mode.HTTP_INCREMENTAL: "j",
    Mode.WS_FULL: "f",
    Mode.HTTP_FULL: "h",
}

ALIVE, MAY_BE_GONE, GONE = 0, 1, 2
"""What became of the cache in a gap, as far as its life is known."""


@dataclass(frozen=True, slots=True)
class Gap:
    """From the end of the turn that a turn goes on from to its start, in milliseconds."""

    length: int
    life: int
    """``ALIVE``, ``MAY_BE_GONE`` or ``GONE``."""


def letter(kind: str, status: str, mode: str | None, eligible: bool) -> str:
    """One of ``LETTERS``."""
    if kind == Kind.COMPACTION:
        return "c"
    if status not in SUCCEEDED:
        return "x"
    if kind == Kind.WARMUP:
        return "w"
    found = _OF_MODE.get(mode, "u")
    broken = eligible and mode is not None and mode not in INCREMENTAL
    return found.upper() if broken and found in "fh" else found


def gap(before: TurnRow | None, row: TurnRow) -> Gap | None:
    """None where there is nothing that the turn goes on from."""
    if before is None:
        return None
    length = max(0, row.started_at - before.ended_at)
    retention = retention_of(before)
    life = ALIVE if length <= retention.soft else MAY_BE_GONE
    return Gap(length, GONE if length > retention.hard else life)


def before_each(rows: Sequence[TurnRow]) -> dict[str, TurnRow | None]:
    """The turn that each of a session's turns goes on from, by ``turn_id`` (``chains``)."""
    before: Before[TurnRow] = Before()
    found: dict[str, TurnRow | None] = {}
    for row in sorted(rows, key=order_of):
        found[row.turn_id] = before.of(row)
        before.push(row, row)
    return found
