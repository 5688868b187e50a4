"""The figures of a report, read from a ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, Engine

from app.analysis import compaction
from app.analysis.compaction import Resets
from app.analysis.economics import Losses, told
from app.analysis.lookup import COMPARED
from app.analysis.verdicts import LOSSES, NO_REWRITE, Verdict
from app.analysis.waste import NOBODY, Sellers
from app.analysis.witnesses import Layer, layer_of
from app.ledger import economics, verdict_sums
from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.rows import TurnRow
from app.ledger.summary import Summary, summarize
from app.reporting.figures import Figures, Read, Session

WORST = 10
"""Sessions that are listed."""


def gather(
    engine: Engine,
    view: Filter,
    read: Read = Read(),  # noqa: B008  (frozen)
    progress: Callable[[int, int], None] = lambda _done, _of: None,
    sellers: Sellers = NOBODY,
) -> Figures:
    """``progress`` is told how many of the turns that missed something are read."""
    summary = summarize(engine, view)
    losses, sessions = Losses(), _Sessions()
    layers: Counter[Layer] = Counter()
    with reading(engine) as connection:
        counted = _sums(connection, view, read, summary)
        whole = sum(one.turns for one in counted.verdicts if one.verdict in LOSSES)
        warm = economics.warm(connection, view, LOSSES)
        lost = economics.lost(connection, view, LOSSES, COMPARED)
        for row, gap, loss in told(warm, lost, sellers):
            cause = losses.add(row, gap, loss)
            if cause is not None:
                sessions.add(row, cause.words.title)
                layers[layer_of(row)] += row.missed_tokens or 0
                progress(losses.total.turns, whole)
        passing = economics.passing(connection, view, Verdict.HISTORY_REWRITE, NO_REWRITE)
        resets = Resets.of(compaction.resets(passing, sellers))
        worst = sessions.worst(connection, view)
    return replace(
        counted,
        causes=tuple(losses.causes()),
        sessions=worst,
        losses=losses.total,
        remedies=losses.remedies,
        resets=resets,
        layers=layers,
    )


def sums(engine: Engine, view: Filter, read: Read) -> Figures:
    """Only what is counted, for which no turn is read: nothing by cause, session or remedy."""
    summary = summarize(engine, view)
    with reading(engine) as connection:
        return _sums(connection, view, read, summary)


def _sums(connection: Connection, view: Filter, read: Read, summary: Summary) -> Figures:
    span = verdict_sums.span(connection, view)
    return Figures(
        read=read,
        rows=span.rows,
        first_at=span.first_at,
        last_at=span.last_at,
        summary=summary,
        verdicts=tuple(verdict_sums.sums(connection, view)),
        causes=(),
        sessions=(),
    )


@dataclass(slots=True)
class _Sum:
    turns: int = 0
    missed: int = 0
    titles: Counter[str] = field(default_factory=Counter)
    """Missed tokens by the title of their cause."""
    session: str | None = None


@dataclass(slots=True)
class _Sessions:
    by_key: dict[str, _Sum] = field(default_factory=dict)

    def add(self, row: TurnRow, title: str) -> None:
        one = self.by_key.setdefault(row.session_key, _Sum())
        missed = row.missed_tokens or 0
        one.turns += 1
        one.missed += missed
        one.titles[title] += missed
        one.session = row.session or one.session

    def worst(self, connection: Connection, view: Filter) -> tuple[Session, ...]:
        found = sorted(self.by_key.items(), key=lambda each: (-each[1].missed, each[0]))[:WORST]
        turns = verdict_sums.turns_of(connection, view, [key for key, _ in found])
        return tuple(
            Session(
                session_key=key,
                session=one.session,
                turns=turns[key],
                losses=one.turns,
                missed=one.missed,
                title=one.titles.most_common(1)[0][0],
            )
            for key, one in found
        )
