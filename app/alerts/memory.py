"""What is kept of a group of a rule between two evaluations, and the words for it.

The states themselves are in ``states``, which is where the rest of the package takes these names
from; docs/alerts.md, "States".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

Labels = Mapping[str, str]
OTHER = "other"
"""The value, in every dimension, of the group of all groups that found no place."""
MAX_GROUPS = 50


class State(StrEnum):
    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"
    RECOVERING = "recovering"
    NO_DATA = "no_data"
    ERROR = "error"
    PAUSED = "paused"


class Cause(StrEnum):
    """Why a state changed."""

    CROSSED = "crossed"
    """The threshold was crossed."""
    HELD = "held"
    """It stayed crossed for as long as the rule asks."""
    FELL_BACK = "fell_back"
    """It was no longer crossed, before the alert fired."""
    CLEARED = "cleared"
    """The value came back to the good side of the recovery threshold."""
    STAYED_CLEAR = "stayed_clear"
    """It stayed there for as long as the rule asks."""
    RELAPSED = "relapsed"
    """It left that side again."""
    LACKING = "lacking"
    """The window cannot be judged."""
    ABSENT = "absent"
    """No row at all, which the rule takes for a fault."""
    GONE = "gone"
    """No row for several evaluations in a row."""
    JUDGED = "judged"
    """The window can be judged again."""
    FAILED = "failed"
    """The evaluation failed."""
    WORKS_AGAIN = "works_again"
    EDITED = "edited"
    PAUSED = "paused"
    RESUMED = "resumed"
    DELETED = "deleted"


class Told(StrEnum):
    """What receivers are told of an alert: the last part of a message's type."""

    FIRING = "firing"
    NO_DATA = "no_data"
    """It fires because there are no rows."""
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Transition:
    at: int
    """Epoch milliseconds, as all times here."""
    before: State
    after: State
    cause: Cause


@dataclass(frozen=True, slots=True)
class Memory:
    """What is kept of one group of a rule between two evaluations."""

    state: State = State.INACTIVE
    since: int | None = None
    """When it came into this state; None: it never was in another."""
    pending_since: int | None = None
    clear_since: int | None = None
    started_at: int | None = None
    """When the present or last alert began to fire."""
    ended_at: int | None = None
    """When the last alert ended; None while one fires."""
    absence: bool = False
    """The present or last alert fires only because there were no rows: no window crossed."""
    peak: float | None = None
    """The worst value of the present or last alert."""
    absent: int = 0
    """Evaluations in a row without a row, the last one included."""
    resume: State | None = None
    """In ``error``: the state before."""
    told: Told | None = None
    """What receivers believe: ``firing``, ``no_data``, or None for nothing."""
    told_at: int | None = None
    told_times: int = 0
    hushed: bool = False
    """A silence covers what was told: once it ends, people hear once more of what still fires."""

    @property
    def fires(self) -> bool:
        return self.state in (State.FIRING, State.RECOVERING)
