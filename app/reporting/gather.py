"""The figures of a report, read from a ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine

from app.analysis.explain import explain
from app.analysis.verdict_words import Words, words
from app.analysis.verdicts import LOSSES, Grade, Verdict
from app.ledger import verdict_sums
from app.ledger.database import reading
from app.ledger.filters import Filter
from app.ledger.rows import TurnRow
from app.ledger.summary import summarize
from app.reporting.figures import Cause, Figures, Read, Session, most
from engine.model import Reason

WORST = 10
"""Sessions that are listed."""
_OWN_WORD = frozenset({Reason.PREFIX_MISMATCH, Reason.NON_INPUT_FIELDS_CHANGED})
_BY_THE_CLIENT = frozenset({Verdict.PREFIX_CHANGED, Verdict.IDENTITY_CHANGE})


def gather(
    engine: Engine,
    view: Filter,
    read: Read = Read(),  # noqa: B008  (frozen)
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Figures:
    """``progress`` is told how many of the turns that missed something are read."""
    summary = summarize(engine, view)
    with reading(engine) as connection:
        span = verdict_sums.span(connection, view)
        verdicts = tuple(verdict_sums.sums(connection, view))
        losses = sum(one.turns for one in verdicts if one.verdict in LOSSES)
        rows = verdict_sums.judged(connection, view, LOSSES)
        found = _Losses.of(_counted(rows, lambda done: progress(done, losses)))
        causes, sessions = found.told(connection, view)
    return Figures(
        read=read,
        rows=span.rows,
        first_at=span.first_at,
        last_at=span.last_at,
        summary=summary,
        verdicts=verdicts,
        causes=causes,
        sessions=sessions,
    )


def _counted(rows: Iterable[TurnRow], progress: Callable[[int], None]) -> Iterator[TurnRow]:
    for number, row in enumerate(rows, 1):
        yield row
        progress(number)


@dataclass(slots=True)
class _Sum:
    turns: int = 0
    missed: int = 0
    titles: Counter[str] = field(default_factory=Counter)
    """Missed tokens by the title of their cause."""
    session: str | None = None

    def add(self, row: TurnRow, title: str) -> None:
        missed = row.missed_tokens or 0
        self.turns += 1
        self.missed += missed
        self.titles[title] += missed
        self.session = row.session or self.session


@dataclass(slots=True)
class _Losses:
    causes: dict[tuple[str, str, Words], _Sum] = field(default_factory=dict)
    """By verdict, grade and what is said of them."""
    sessions: dict[str, _Sum] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[TurnRow]) -> _Losses:
        made = cls()
        for row in rows:
            verdict, grade = str(row.cache_verdict), row.cache_grade or Grade.UNKNOWN.value
            said = _words(row, words(verdict, grade))
            made.causes.setdefault((verdict, grade, said), _Sum()).add(row, said.title)
            made.sessions.setdefault(row.session_key, _Sum()).add(row, said.title)
        return made

    def told(
        self, connection: Connection, view: Filter
    ) -> tuple[tuple[Cause, ...], tuple[Session, ...]]:
        causes = most(
            Cause(verdict, grade, said.title, said.sentence, said.remedy, one.turns, one.missed)
            for (verdict, grade, said), one in self.causes.items()
        )
        worst = sorted(self.sessions.items(), key=lambda each: (-each[1].missed, each[0]))[:WORST]
        turns = verdict_sums.turns_of(connection, view, [key for key, _ in worst])
        sessions = tuple(
            Session(
                session_key=key,
                session=one.session,
                turns=turns[key],
                losses=one.turns,
                missed=one.missed,
                title=one.titles.most_common(1)[0][0],
            )
            for key, one in worst
        )
        return causes, sessions


def _words(row: TurnRow, said: Words) -> Words:
    """With the usual cause and remedy, where the client's own word is what the verdict is of."""
    if row.cache_verdict not in _BY_THE_CLIENT or row.reason not in _OWN_WORD:
        return said
    why = explain(row)
    return said if why.cause is None else Words(said.title, why.cause, why.remedy)
