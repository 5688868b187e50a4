"""The figures of a report: plain values that terminal, JSON and page show alike. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from app.analysis import prices
from app.analysis.causes import Cause
from app.analysis.compaction import Resets
from app.analysis.economics import (
    cause_as_dict,
    remedies_as_dict,
    resets_as_dict,
    waste_as_dict,
)
from app.analysis.latency import Latency
from app.analysis.latency import summarize as latency_of
from app.analysis.remedies import Remedies, sentence
from app.analysis.verdict_words import HELD
from app.analysis.verdicts import LOSSES
from app.analysis.waste import Waste
from app.analysis.witnesses import Layer
from app.ledger.rollups.distribution import Distribution
from app.ledger.rows import iso, money
from app.ledger.summary import Summary
from app.ledger.verdict_sums import VerdictSum

Json = dict[str, Any]
_LITTLE = 0.01
"""A missed rate that nobody need care about."""


@dataclass(frozen=True, slots=True)
class Read:
    """What came of reading files; a ledger that was there is one without any."""

    files: int = 0
    formats: tuple[str, ...] = ()
    ignored: int = 0
    """Files of folders that are of no known format."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Records by the reason why they were skipped."""
    failures: tuple[tuple[str, str], ...] = ()
    """Files that were not read, or not to their end, and why."""


@dataclass(frozen=True, slots=True)
class Session:
    session_key: str
    session: str | None
    turns: int
    """Its generation turns."""
    losses: int
    """Those of them that missed something."""
    missed: int
    title: str
    """Of the cause that most of it is due to."""


@dataclass(frozen=True, slots=True)
class Figures:
    read: Read
    rows: int
    first_at: int | None
    last_at: int | None
    summary: Summary
    verdicts: tuple[VerdictSum, ...]
    causes: tuple[tuple[Cause, Waste], ...]
    """Turns that missed something, by what it is put down to; most missed tokens first."""
    sessions: tuple[Session, ...]
    """The worst, most missed tokens first."""
    losses: Waste = field(default_factory=Waste)
    """Of all causes."""
    remedies: Remedies = field(default_factory=Remedies)
    resets: Resets = field(default_factory=Resets)
    layers: Mapping[Layer, int] = field(default_factory=dict)
    """Missed tokens by whose doing the miss was."""

    @property
    def only_sums(self) -> int:
        """Requests whose rows were deleted as too old: they are in the sums, and in no verdict."""
        return max(0, self.summary.total - self.rows)

    @property
    def missed(self) -> int:
        """Tokens that could have been read again and were not."""
        return sum(one.missed for one in self.verdicts if one.verdict in LOSSES)

    @property
    def due(self) -> int:
        """Tokens that could have been read again: those that were, by turns that had something to
        read, and those that were missed."""
        held = [one for one in self.verdicts if one.verdict in HELD]
        return sum(one.cached for one in held) + self.missed

    @property
    def missed_rate(self) -> float | None:
        return self.missed / self.due if self.due else None

    def share(self, waste: Waste) -> float | None:
        """Of a cause in all that was missed."""
        return waste.tokens / self.missed if self.missed else None

    def saving(self) -> list[str]:
        """What each remedy would have kept warm, in sentences; the most missed tokens first."""
        return [sentence(*one) for one in self.remedies.best() if one[1].possible.turns]

    @property
    def unjudged(self) -> int:
        """Generation turns without a verdict."""
        return sum(one.turns for one in self.verdicts if one.verdict is None)

    @property
    def ttft(self) -> Latency | None:
        """Over all modes."""
        return latency_of(Distribution.whole(self.summary.ttft.values()))

    @property
    def modes_known(self) -> bool:
        return self.summary.continuity.known > 0

    def benign(self) -> list[tuple[str, int]]:
        """Verdicts that nothing is wrong with, and how many turns have each; most first."""
        counts: Counter[str] = Counter()
        for one in self.verdicts:
            if one.verdict is not None and one.verdict not in LOSSES:
                counts[one.verdict] += one.turns
        return counts.most_common()

    def advice(self) -> str:
        """What to do first, in one or two sentences."""
        if not self.summary.total:
            return "There is no request in this view: look at --from, --to and --where."
        if not self.due:
            if self.unjudged or not self.verdicts:
                return "Nothing can be said of the cache: no turn here is judged."
            return "Nothing can be said of the cache: no turn had something to read again."
        if not self.causes:
            return "Nothing: all that could be read again was read."
        top = self.causes[0][0]
        little = "Little is lost. " if (self.missed_rate or 0) < _LITTLE else ""
        told = top.words
        said = told.remedy or told.sentence
        if told.remedy and top.change is not None:
            said = f"{told.sentence} {told.remedy}"  # a remedy of the catalogue leans on its cause
        return little + said


def as_dict(figures: Figures) -> Json:
    """What ``--json`` says."""
    summary, continuity, tokens = (
        figures.summary,
        figures.summary.continuity,
        figures.summary.tokens,
    )
    ttft, cost = figures.ttft, summary.cost
    return {
        "read": {
            "files": figures.read.files,
            "formats": list(figures.read.formats),
            "ignored": figures.read.ignored,
            "skipped": dict(figures.read.skipped),
            "failures": [{"file": name, "why": why} for name, why in figures.read.failures],
        },
        "range": {"from": _iso(figures.first_at), "to": _iso(figures.last_at)},
        "turns": {
            "total": summary.total,
            "only_sums": figures.only_sums,
            "generation": continuity.generation,
            "sessions": summary.sessions,
            "by_kind": dict(summary.by_kind),
            "by_status": dict(summary.by_status),
        },
        "tokens": {
            "turns_with_usage": tokens.turns,
            "turns_without_usage": tokens.unknown,
            "input": tokens.input if tokens.turns else None,
            "cached": tokens.cached if tokens.turns else None,
            "non_cached": tokens.non_cached if tokens.turns else None,
            "cached_ratio": tokens.cached_ratio,
        },
        "cost": {
            "cost_usd": None if cost.usd is None else money(cost.usd),
            "turns": cost.priced,
            "turns_without_price": cost.unpriced,
        },
        "cache": {
            "due_tokens": figures.due,
            "missed_tokens": figures.missed,
            "missed_rate": figures.missed_rate,
            "turns_not_judged": figures.unjudged,
            "verdicts": [
                {
                    "verdict": one.verdict,
                    "grade": one.grade,
                    "turns": one.turns,
                    "cached_tokens": one.cached,
                    "missed_tokens": one.missed,
                }
                for one in figures.verdicts
            ],
            "causes": [
                cause_as_dict(cause, waste) | {"share": figures.share(waste)}
                for cause, waste in figures.causes
            ],
            "total": waste_as_dict(figures.losses),
            "missed_by_layer": {layer.value: figures.layers.get(layer, 0) for layer in Layer},
            "price_list": prices.list_name(),
        }
        | remedies_as_dict(figures.remedies),
        "resets": resets_as_dict(figures.resets),
        "continuation": {
            "known": continuity.known,
            "unknown": continuity.unknown,
            "incremental": continuity.incremental if continuity.known else None,
            "incremental_rate": continuity.incremental_rate,
            "eligible": continuity.eligible if continuity.known else None,
            "mismatches": continuity.mismatches if continuity.known else None,
            "mismatch_rate": continuity.mismatch_rate,
            "modes": [{"mode": mode, "turns": turns} for mode, turns in summary.modes],
            "reasons": [{"reason": one.reason, "turns": one.turns} for one in summary.reasons],
        },
        "ttft": None
        if ttft is None
        else {"samples": ttft.samples, "p50_ms": ttft.median_ms, "p95_ms": ttft.p95_ms},
        "worst_sessions": [
            {
                "session_key": one.session_key,
                "session": one.session,
                "turns": one.turns,
                "losses": one.losses,
                "missed_tokens": one.missed,
                "mostly": one.title,
            }
            for one in figures.sessions
        ],
        "first": figures.advice(),
    }


def _iso(instant: int | None) -> str | None:
    return None if instant is None else iso(instant)


def dollars(value: Decimal) -> str:
    """``$12.34``; of less than a cent two digits that tell something."""
    size, sign = abs(value), "-" if value < 0 else ""
    if size == 0 or size >= Decimal("0.01"):
        return f"{sign}${size:,.2f}"
    return f"{sign}${size:.{1 - size.adjusted()}f}"
