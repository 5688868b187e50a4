"""The main figures of a view beside those of the time before."""

from __future__ import annotations

from typing import Any

from app.analysis import trend
from app.analysis.continuity import Share
from app.analysis.growth import growth
from app.analysis.trend import Trend
from app.ledger.before import Before
from app.ledger.cells import Continuity, Cost, TokenTotals
from app.ledger.rows import iso
from app.ledger.summary import Summary


def previous(figures: Summary, before: Before) -> dict[str, Any]:
    """``figures.previous`` of the API."""
    grown = None if before.gap else growth(figures.tokens, before.tokens)
    return {
        "range": {"from": iso(before.view.start), "to": iso(before.view.end)},
        "gap": before.gap,
        "trends": None
        if before.gap
        else {name: _shown(found) for name, found in _trends(figures, before).items()},
        "growth": None if grown is None else grown._asdict(),
    }


def _trends(figures: Summary, before: Before) -> dict[str, Trend]:
    now, then = figures.continuity, before.continuity
    tokens, tokens_then = figures.tokens, before.tokens
    # Modes are never mixed: one that takes over would look as if everything had become slower.
    mode = max(figures.ttft, key=lambda one: figures.ttft[one].samples, default=None)
    usage = (_with_usage(tokens), _with_usage(tokens_then))
    return {
        "incremental_rate": trend.of_rate(
            Share(now.incremental, now.known), Share(then.incremental, then.known), rises_well=True
        ),
        "mismatch_rate": trend.of_rate(
            Share(now.mismatches, now.eligible),
            Share(then.mismatches, then.eligible),
            rises_well=False,
        ),
        "break_rate": trend.of_rate(
            Share(now.breaks, now.eligible), Share(then.breaks, then.eligible), rises_well=False
        ),
        "cached_ratio": trend.of_ratio(
            tokens.cached_ratio,
            tokens_then.cached_ratio,
            (tokens.turns, tokens_then.turns),
            rises_well=True,
        ),
        "non_cached": trend.of_sum(tokens.non_cached, tokens_then.non_cached, usage),
        "cost_usd": trend.of_sum(
            _dollars(figures.cost),
            _dollars(before.cost),
            (_priced(figures.cost), _priced(before.cost)),
        ),
        "ttft_median_ms": trend.of_median(figures.ttft.get(mode), before.ttft.get(mode)),
        "generation": trend.of_sum(now.generation, then.generation, (_all(now), _all(then))),
    }


def _with_usage(tokens: TokenTotals) -> Share:
    return Share(tokens.turns, tokens.turns + tokens.unknown)


def _dollars(cost: Cost) -> float:
    return cost.nano_usd / 1e9


def _priced(cost: Cost) -> Share:
    return Share(cost.priced, cost.priced + cost.unpriced)


def _all(continuity: Continuity) -> Share:
    return Share(continuity.generation, continuity.generation)


def _shown(found: Trend) -> dict[str, Any]:
    return {
        "now": found.now,
        "before": found.before,
        "change": found.change,
        "direction": found.direction,
        "better": found.better,
        "lack": found.lack,
    }
