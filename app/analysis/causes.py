"""What a turn's miss is put down to: its verdict, how sure that is, and where the gateway saw what
changed, the kind of change."""

from __future__ import annotations

from typing import NamedTuple

from app.analysis import lookup
from app.analysis.catalogue import CHANGES
from app.analysis.verdict_words import Words, words
from app.analysis.verdicts import Grade, Verdict
from app.ledger.rows import TurnRow

_BY_THE_CLIENT = frozenset({Verdict.PREFIX_CHANGED, Verdict.IDENTITY_CHANGE})
"""Verdicts that the client's own word is of."""


class Cause(NamedTuple):
    verdict: str
    grade: str
    change: str | None
    """A name of ``CHANGES``, where the requests were compared and are what the verdict is of."""

    @property
    def words(self) -> Words:
        said = words(self.verdict, self.grade)
        if self.change is None:
            return said
        usual = CHANGES[self.change]
        return Words(said.title, usual.cause, usual.remedy)


def cause_of(row: TurnRow) -> Cause:
    """Of a turn whose verdict is one of a loss."""
    verdict = str(row.cache_verdict)
    change = lookup.of_change(row) if verdict in _BY_THE_CLIENT else None
    return Cause(verdict, row.cache_grade or Grade.UNKNOWN.value, change)
