"""Why an alert fires, in words: the most frequent causes among the offending rows of a window.

What is said comes from the columns of the ledger, which hold no content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, and_, func, select

from app.alerts.links import offending
from app.alerts.rules import Rule
from app.alerts.signals import Signal
from app.analysis.explain import explain, explain_all
from app.analysis.verdict_words import WORDS
from app.ledger.conditions import cache_class, where
from app.ledger.models import turns
from app.ledger.rows import COLUMNS, TurnRow

c = turns.c
CAUSES = 3
SAMPLES = 5
COMPARED = 100
"""The newest so many turns of a cause are asked whether they all say the same."""


@dataclass(frozen=True, slots=True)
class TopCause:
    """Offending turns that have the cause in common."""

    sentence: str
    reason: str | None
    """The ledger's word for it: the reason; of an error the status, of missed tokens the verdict
    on the cache. None where it is unknown."""
    fingerprint: str | None
    turns: int


@dataclass(frozen=True, slots=True)
class Details:
    """Most frequent first, the newest first of those that are equally frequent."""

    top_causes: tuple[TopCause, ...] = ()
    top_fingerprints: tuple[str, ...] = ()
    sample_turn_ids: tuple[str, ...] = ()
    """The newest."""
    rows: int = 0
    """All offending rows."""


def details(engine: Engine, rule: Rule, labels: Mapping[str, str], start: int, end: int) -> Details:
    """What there is to say of a group in a window (epoch milliseconds).

    Offending rows are those of ``links.offending``; of the signals whose filter shows all turns
    that could count, these:

    - cached ratio: turns that missed the cache, wholly or in part;
    - time to first token: turns slower than the threshold;
    - missed tokens: turns that missed some.

    For the group ``other`` they are those of the whole rule.
    """
    faults = and_(where(offending(rule, labels, start, end)), *_worse(rule))
    size, newest = func.count(), func.max(c.id)
    keys = _KEYS.get(rule.signal, (c.reason, c.fingerprint))
    grouped = (
        select(*keys, size, func.max(c.ttft_ms), func.sum(c.missed_tokens))
        .where(faults)
        .group_by(*keys)
        .order_by(size.desc(), newest.desc())
        .limit(CAUSES)
    )
    fingerprints = (
        select(c.fingerprint)
        .where(faults, c.fingerprint.is_not(None))
        .group_by(c.fingerprint)
        .order_by(size.desc(), newest.desc())
        .limit(CAUSES)
    )
    with engine.connect() as connection:
        rows = connection.execute(select(size).where(faults)).scalar_one()
        if not rows:
            return Details()
        found = connection.execute(grouped).all()
        return Details(
            top_causes=tuple(_cause(connection, rule, faults, keys, group) for group in found),
            top_fingerprints=tuple(connection.execute(fingerprints).scalars()),
            sample_turn_ids=tuple(row.turn_id for row in _newest(connection, faults, SAMPLES)),
            rows=rows,
        )


_KEYS: Mapping[Signal, tuple[ColumnElement[Any], ...]] = {
    Signal.ERROR_RATE: (c.status, c.http_status, c.error_code),
    Signal.TTFT_P95: (c.reason, c.mode),
    Signal.MISSED_TOKENS: (c.cache_verdict,),
}
"""What the turns of one cause have in common; of every other signal, reason and fingerprint. The
first is ``TopCause.reason``."""


def _worse(rule: Rule) -> tuple[ColumnElement[bool], ...]:
    match rule.signal:
        case Signal.CACHED_RATIO:
            return (cache_class.in_(("miss", "partial")),)
        case Signal.TTFT_P95:
            return (c.ttft_ms > rule.threshold,)
        case Signal.MISSED_TOKENS:
            return (c.missed_tokens > 0,)
        case _:
            return ()


def _cause(
    connection: Connection,
    rule: Rule,
    faults: ColumnElement[bool],
    keys: Sequence[ColumnElement[Any]],
    group: Sequence[Any],
) -> TopCause:
    values, (size, slowest, missed) = group[: len(keys)], group[len(keys) :]
    match rule.signal:
        case Signal.TTFT_P95:
            reason, mode = values
            how = f"Sent as {mode}" if mode is not None else "Sent in an unknown mode"
            why = f" ({reason})" if reason is not None else ""
            sentence = f"{how}{why}: first token after up to {slowest:,.0f} ms."
            return TopCause(sentence, reason, None, size)
        case Signal.MISSED_TOKENS:
            verdict = values[0]
            tokens = "1 token" if missed == 1 else f"{missed:,} tokens"
            return TopCause(f"{_verdict(verdict)}: {tokens} missed.", verdict, None, size)
    same = and_(*(key.is_not_distinct_from(value) for key, value in zip(keys, values, strict=True)))
    sentence = _said(_newest(connection, and_(faults, same), COMPARED))
    fingerprint = None if rule.signal is Signal.ERROR_RATE else values[1]
    return TopCause(sentence, values[0], fingerprint, size)


def _verdict(verdict: str | None) -> str:
    if verdict is None:
        return "No verdict on the cache"
    words = WORDS.get(verdict)
    return f"Cache verdict “{verdict}”" if words is None else f"Cache: {words.title.lower()}"


def _said(rows: Sequence[TurnRow]) -> str:
    """The one sentence of all the rows, in general where they differ in places and numbers; where
    also in what is left then, that of the newest as an example."""
    for say in (explain, explain_all):
        first, *others = (say(row).sentence for row in rows)
        if all(sentence == first for sentence in others):
            return first
    return f"For example: {explain(rows[0]).sentence}"


def _newest(connection: Connection, rows: ColumnElement[bool], limit: int) -> list[TurnRow]:
    query = (
        select(*(c[name] for name in COLUMNS))
        .where(rows)
        .order_by(c.recorded_at.desc(), c.id.desc())
        .limit(limit)
    )
    return [TurnRow.of(values) for values in connection.execute(query)]
