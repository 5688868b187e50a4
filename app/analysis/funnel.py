"""How far turns come on the way to a continued turn that read its cache, and where each is lost.

The steps are in the order in which the engine asks for them, so that a turn's reason is the first
step that it did not reach. Pure. A turn is lost at one step exactly, or reaches the last one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from app.ledger.cells import INCREMENTAL
from app.ledger.filters import UNKNOWN
from engine.model import Kind, Reason


class Step(StrEnum):
    ROWS = "rows"
    """Every row of the view."""
    GENERATION = "generation"
    """Generations that came to their end."""
    DECIDED = "decided"
    """Warmline could continue them: it was to, and there was a wire for it."""
    BASELINE = "baseline"
    """There was an answer to go on from."""
    FIELDS = "fields"
    """All fields but the input were the same."""
    PREFIX = "prefix"
    """The input began with all of that history, and went on."""
    CONTINUED = "continued"
    """Only the new items were sent."""
    REUSED = "reused"
    """The provider read input from its prompt cache."""


STEPS = tuple(Step)
LOST_AT: Mapping[str | None, Step] = {
    None: Step.DECIDED,
    Reason.CONTINUATION_OFF: Step.DECIDED,
    Reason.CLIENT_ANCHORED: Step.DECIDED,
    Reason.PAYLOAD_TOO_LARGE: Step.DECIDED,
    Reason.WS_REJECTED: Step.DECIDED,
    Reason.WS_UNAVAILABLE: Step.DECIDED,
    Reason.STORE_UNSUPPORTED: Step.DECIDED,
    Reason.NO_BASELINE: Step.BASELINE,
    Reason.EPOCH_RESET: Step.BASELINE,
    Reason.NON_INPUT_FIELDS_CHANGED: Step.FIELDS,
    Reason.PREFIX_MISMATCH: Step.PREFIX,
    Reason.EMPTY_DELTA: Step.PREFIX,
    Reason.MISSING_RESPONSE_ID: Step.CONTINUED,
    Reason.MISSING_OUTPUT_ITEMS: Step.CONTINUED,
    Reason.OUTPUT_CONFLICT: Step.CONTINUED,
    Reason.CHAIN_BUSY: Step.CONTINUED,
    Reason.CONNECTION_LOST: Step.CONTINUED,
    Reason.PREVIOUS_RESPONSE_NOT_FOUND: Step.CONTINUED,
    Reason.INTERNAL_ERROR: Step.CONTINUED,
}
"""Which step a turn of this reason did not reach. Words of imports are as good as none."""
_REUSED = ("hit", "partial")

Filters = dict[str, list[str]]
"""Values by dimension, of what there is in the view."""


class Cell(Protocol):
    """Of ``app.ledger.cells.Cell``, what decides here."""

    @property
    def kind(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def mode(self) -> str | None: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def cache(self) -> str: ...
    @property
    def turns(self) -> int: ...
    @property
    def generation(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Drop:
    what: str
    """A kind, a status, a reason or a cache class; ``ok`` of a turn that nothing was in the way of
    and that went in full all the same."""
    turns: int
    filters: Filters


@dataclass(frozen=True, slots=True)
class Reached:
    step: Step
    turns: int
    filters: Filters
    lost: tuple[Drop, ...]
    """Turns that reached the step before and not this one, most first."""


def funnel(cells: Iterable[Cell]) -> list[Reached]:
    """The steps from all rows on. ``filters`` select exactly the rows they stand beside."""
    counted = [(cell, *_lost(cell)) for cell in cells if cell.turns]
    found: list[Reached] = []
    for step in STEPS:
        reached = [
            cell for cell, at, _ in counted if at is None or STEPS.index(at) > STEPS.index(step)
        ]
        drops: dict[str, list[Cell]] = {}
        for cell, at, what in counted:
            if at is step:
                drops.setdefault(what, []).append(cell)
        lost = [Drop(what, _turns(some), _filters(step, some)) for what, some in drops.items()]
        lost.sort(key=lambda drop: (-drop.turns, drop.what))
        found.append(Reached(step, _turns(reached), _filters(step, reached), tuple(lost)))
    return found


def _lost(cell: Cell) -> tuple[Step | None, str]:
    """The step that the turns of a cell did not reach, and what they are called there."""
    if not cell.generation:
        at_all = cell.kind == Kind.GENERATION
        return Step.GENERATION, cell.status if at_all else cell.kind
    reason = cell.reason
    if reason != Reason.OK:
        return LOST_AT.get(reason, Step.DECIDED), UNKNOWN if reason is None else reason
    if cell.mode not in INCREMENTAL:
        return Step.CONTINUED, reason
    return (None, "") if cell.cache in _REUSED else (Step.REUSED, cell.cache)


def _turns(cells: Iterable[Cell]) -> int:
    return sum(cell.turns for cell in cells)


def _filters(step: Step, cells: Iterable[Cell]) -> Filters:
    """What tells these rows from the others: what comes first on the way is named first."""
    if step is Step.ROWS:
        return {}
    names = {"kind", "status"} if step is Step.GENERATION else {"kind", "status", "reason"}
    if step in (Step.CONTINUED, Step.REUSED):
        names.add("mode")
    if step is Step.REUSED:
        names.add("cache")
    values: dict[str, Counter[str]] = {}
    for cell in cells:
        for name in names:
            value = getattr(cell, name)
            values.setdefault(name, Counter())[UNKNOWN if value is None else value] += cell.turns
    return {name: [value for value, _ in values[name].most_common()] for name in sorted(values)}
