"""How long a session stays continued: runs of incremental turns, and what ends and begins them.

A run is what the strip of a session shows: incremental turns in a row, in the order in which they
began, ended by any generation turn in a full mode. Turns of unknown mode, warm-ups, compactions
and turns that did not succeed are in no figure, and end no run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from app.analysis.continuity import Share
from app.ledger.cells import INCREMENTAL
from app.ledger.conditions import SUCCEEDED
from engine.model import Kind


class Turn(Protocol):
    """What is read of a turn."""

    @property
    def kind(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def mode(self) -> str | None: ...
    @property
    def eligible(self) -> bool: ...
    @property
    def started_at(self) -> int: ...
    @property
    def input_tokens(self) -> int | None: ...
    @property
    def duration_ms(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Residency:
    """What of a session was incremental. Times are milliseconds; None is unknown."""

    turns: Share
    input: Share
    """Input tokens, of the turns whose input is known."""
    time: Share
    """From receipt to end, of the turns whose duration is known."""
    runs: int
    longest_run: int | None
    first_break: int | None
    """From the start of the first turn to that of the first break; None where nothing broke."""
    breaks: int
    returned: int
    """Breaks after which a turn was continued again."""
    mean_return: float | None
    """From a break to the next incremental turn, over those that returned."""

    @property
    def mean_run(self) -> float | None:
        """Turns."""
        return self.turns.part / self.runs if self.runs else None


def counts(row: Turn) -> bool:
    """Whether a turn is in the figures: a generation that came to its end, of known mode."""
    return row.kind == Kind.GENERATION and row.status in SUCCEEDED and row.mode is not None


def residency(rows: Iterable[Turn]) -> Residency:
    """Of the turns of one session, in the order in which they began."""
    turns, given, time = _Sum(), _Sum(), _Sum()
    began: int | None = None
    first_break: int | None = None
    waiting: list[int] = []
    """When the breaks began after which nothing was continued yet."""
    returns: list[int] = []
    runs = run = longest = breaks = 0
    for row in rows:
        if not counts(row):
            continue
        began = row.started_at if began is None else began
        incremental = row.mode in INCREMENTAL
        turns.add(1, incremental)
        given.add(row.input_tokens, incremental)
        time.add(None if row.duration_ms is None else round(row.duration_ms), incremental)
        if incremental:
            runs += not run
            run += 1
            longest = max(longest, run)
            returns += [row.started_at - at for at in waiting]
            waiting.clear()
            continue
        run = 0
        if row.eligible:
            breaks += 1
            waiting.append(row.started_at)
            first_break = row.started_at - began if first_break is None else first_break
    return Residency(
        turns=turns.share,
        input=given.share,
        time=time.share,
        runs=runs,
        longest_run=longest or None,
        first_break=first_break,
        breaks=breaks,
        returned=len(returns),
        mean_return=sum(returns) / len(returns) if returns else None,
    )


class _Sum:
    def __init__(self) -> None:
        self._part = self._whole = 0

    def add(self, number: int | None, incremental: bool) -> None:
        self._whole += number or 0
        self._part += (number or 0) if incremental else 0

    @property
    def share(self) -> Share:
        return Share(self._part, self._whole)
