"""What a view lost, by cause and by remedy, added up turn by turn; and how it is told as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from app.analysis import compaction, remedies
from app.analysis.causes import Cause, cause_of
from app.analysis.compaction import Pair, Reset, Resets
from app.analysis.remedies import Remedies, needed
from app.analysis.verdicts import LOSSES, Verdict
from app.analysis.warm import warm_of
from app.analysis.waste import NOBODY, Loss, Sellers, Waste, loss_of, usd
from app.ledger.conditions import SUCCEEDED
from app.ledger.filters import note, only
from app.ledger.rows import TurnRow, iso, money
from engine.model import Kind

Json = dict[str, Any]
Filters = dict[str, list[str]]
"""Values by dimension, of what there is in the view."""
_DONE: Filters = {"kind": [Kind.GENERATION.value], "status": list(SUCCEEDED)}
LOST: Filters = _DONE | {"verdict": [verdict.value for verdict in Verdict if verdict in LOSSES]}
"""What selects all turns that lost anything."""


@dataclass(slots=True)
class Losses:
    """Each turn is in the waste of one cause, and in that of no other."""

    total: Waste = field(default_factory=Waste)
    by_cause: dict[Cause, Waste] = field(default_factory=dict)
    remedies: Remedies = field(default_factory=Remedies)
    turns: dict[Cause, list[str]] = field(default_factory=dict, compare=False)
    """Of each cause, as long as they may be named one by one."""

    def add(self, row: TurnRow, gap: int | None, loss: Loss) -> Cause | None:
        """The cause that it is put down to; None of a break that lost nothing."""
        needs = needed(row, gap)
        if needs is not None:
            self.remedies.add(needs, loss, row.turn_id)
        if row.cache_verdict not in LOSSES:
            return None
        cause = cause_of(row)
        self.by_cause.setdefault(cause, Waste()).add(loss)
        note(self.turns.setdefault(cause, []), row.turn_id)
        self.total.add(loss)
        return cause

    def filters(self, cause: Cause) -> Filters | None:
        """What selects just the turns of a cause within the view, where anything does.

        No column tells what changed in a request.
        """
        alike = [one for one in self.by_cause if one[:2] == cause[:2]]
        if len(alike) > 1:
            return only(self.turns[cause])
        return _DONE | {"verdict": [cause.verdict], "grade": [cause.grade]}

    def causes(self) -> list[tuple[Cause, Waste]]:
        """Most missed tokens first."""
        return sorted(
            self.by_cause.items(),
            key=lambda one: (-one[1].tokens, -one[1].turns, one[0].words.title, str(one[0])),
        )


def told(
    warm: Iterable[tuple[str, Sequence[float]]],
    lost: Iterable[tuple[TurnRow, int | None]],
    sellers: Sellers = NOBODY,
) -> Iterator[tuple[TurnRow, int | None, Loss]]:
    """Each turn with what it lost. ``warm``: by session the times to first token of its warm turns,
    ascending; ``lost``: turns with the milliseconds since the turn before them."""
    usual = {key: warm_of(times) for key, times in warm}
    for row, gap in lost:
        yield row, gap, loss_of(row, usual.get(row.session_key), sellers)


def waste_as_dict(waste: Waste) -> Json:
    delay = waste.delay
    return {
        "turns": waste.turns,
        "missed_tokens": waste.missed,
        "cost_usd": dollars(waste.cost_usd),
        "turns_without_price": waste.unpriced,
        "delay_ms": None if delay is None else delay.expected,
        "delay_low_ms": None if delay is None else delay.low,
        "delay_high_ms": None if delay is None else delay.high,
        "turns_without_delay": waste.turns - waste.timed,
    }


def cause_as_dict(cause: Cause, waste: Waste) -> Json:
    said = cause.words
    return {
        "verdict": cause.verdict,
        "grade": cause.grade,
        "change": cause.change,
        "title": said.title,
        "sentence": said.sentence,
        "remedy": said.remedy,
    } | waste_as_dict(waste)


def remedies_as_dict(found: Remedies) -> Json:
    return {
        "breaks": found.breaks,
        "breaks_beyond": found.beyond,
        "remedies": [
            {
                "policy": remedy.policy.value,
                "key": remedy.key,
                "sentence": remedies.sentence(remedy, saved),
                "breaks": saved.breaks,
                "left": saved.left,
                "filters": only(saved.turns),
                "kept": waste_as_dict(saved.kept),
                "possible": waste_as_dict(saved.possible),
            }
            for remedy, saved in found.best()
        ],
    }


def resets_as_dict(found: Resets) -> Json:
    known = bool(found.priced)
    return {
        "resets": found.number,
        "resets_without_price": found.number - found.priced,
        "reached": found.reached,
        "not_reached": found.not_reached,
        "never": found.never,
        "paid_usd": dollars(usd(found.paid)) if known else None,
        "saved_usd": dollars(usd(found.saved)) if known else None,
        "pairs": found.pairs,
        "batching_saves_usd": dollars(usd(found.batched)) if known else None,
        "advice": compaction.advice(found),
        "listed": [_reset(one) for one in found.listed],
        "to_batch": _pairs(found.to_batch),
    }


def _reset(one: Reset) -> Json:
    return {
        "turn_id": one.turn_id,
        "session_key": one.session_key,
        "session": one.session,
        "started_at": iso(one.started_at),
        "epoch_reset_reason": one.word,
        "tokens_before": one.before,
        "tokens_after": one.after,
        "tokens_not_read": one.not_read,
        "requests": one.requests,
        "turns": one.turns,
        "followed": one.followed,
        "paid_usd": dollars(usd(one.paid)),
        "saves_usd_per_turn": dollars(usd(one.saves)),
        "net_usd": dollars(usd(one.net)),
        "breaks_even": one.breaks_even,
        "never": one.never if one.saves is not None else None,
        "reached": one.reached,
    }


def _pairs(found: Iterable[Pair]) -> list[Json]:
    return [
        {
            "first_turn_id": one.first.turn_id,
            "second_turn_id": one.second.turn_id,
            "session_key": one.first.session_key,
            "turns": one.first.turns,
            "breaks_even": one.first.breaks_even,
            "saves_usd": dollars(usd(one.saved)),
        }
        for one in found
    ]


def dollars(value: Decimal | None) -> str | None:
    """As money is told in JSON: a plain decimal number."""
    return None if value is None else money(value)
