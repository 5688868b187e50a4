"""Breaks by their cause, with a state like that of an issue in an error tracker. Pure. Which cause
a break has, ``app.ledger.break_groups`` says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.analysis.explain import explain_all
from app.analysis.verdict_words import WORDS
from app.ledger.breaks import Decision
from app.ledger.rows import TurnRow

DAY = 86_400_000
DAYS = 7
"""What the last day is held against."""
LEAST = 5
"""So many in a day are worth being called an escalation."""
TIMES = 2
"""So many times what is usual, at least."""
CHANCE = 1e-4
"""How probable it may be that the usual rate alone gives so many."""


class State(StrEnum):
    NEW = "new"
    """First seen within a day."""
    ONGOING = "ongoing"
    ESCALATING = "escalating"
    """Much more in the last day than is usual for it."""
    REGRESSED = "regressed"
    """Seen again after it was resolved."""
    RESOLVED = "resolved"
    MUTED = "muted"


class Decided(StrEnum):
    """What an operator says of a group."""

    RESOLVED = "resolved"
    MUTED = "muted"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Seen:
    """A group over the whole ledger."""

    first_at: int
    last_at: int
    days: Sequence[int]
    """In how many hours of sessions each of the last ``1 + DAYS`` days of 24 hours has seen it, the
    newest first. Breaks of one session come together: they count once an hour."""


@dataclass(frozen=True, slots=True)
class Told:
    by: str
    """``fingerprint``, ``reason`` or ``verdict``: what the breaks have in common."""
    sentence: str
    """Where breaks without a fingerprint differ in details, with those of the example."""
    cause: str | None
    remedy: str | None


def told(group: str, example: TurnRow) -> Told:
    """What there is to say of a group, by one of its breaks."""
    by, _, word = group.partition(":")
    if by == "verdict" and word in WORDS:
        said = WORDS[word]
        return Told(by, said.sentence, None, said.remedy)
    why = explain_all(example)
    return Told(by if by == "reason" else "fingerprint", why.sentence, why.cause, why.remedy)


def state_of(seen: Seen, decision: Decision | None, now: int) -> State:
    """``now`` is in epoch milliseconds, as all times are."""
    if decision is not None:
        if decision.state == Decided.MUTED and (decision.until is None or now < decision.until):
            return State.MUTED
        if decision.state == Decided.RESOLVED:
            return State.RESOLVED if seen.last_at <= decision.at else State.REGRESSED
    if seen.first_at > now - DAY:
        return State.NEW
    return State.ESCALATING if escalates(seen, now) else State.ONGOING


def escalates(seen: Seen, now: int) -> bool:
    """Whether the last day has far more of it than the week before, or as much as there is.

    More than any of its days, ``TIMES`` its mean, and more than chance explains: a count of a
    Poisson process that goes on at its rate is as high with a probability of ``CHANCE`` at most
    (Chernoff's bound on the share of the last day in all of them).
    """
    recent, *before = seen.days
    usual = min(DAYS, (now - DAY - seen.first_at) / DAY)
    if recent < LEAST or usual < 1 or recent <= max(before):
        return False
    whole = recent + sum(before)
    if recent * usual < TIMES * (whole - recent):
        return False
    return whole * divergence(recent / whole, 1 / (1 + usual)) > -math.log(CHANCE)


def divergence(share: float, expected: float) -> float:
    """Kullback and Leibler's, of a share from the one that is expected (neither 0 nor 1)."""
    rest = (1 - share) * math.log((1 - share) / (1 - expected)) if share < 1 else 0.0
    return (share * math.log(share / expected) if share else 0.0) + rest
