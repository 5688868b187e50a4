"""What became of the prompt cache in one turn, in a sentence: its verdict in words, with figures.

What a verdict says is in ``app.analysis.verdict_words``. How sure it is stands beside it, so that
what is only possible is never said as a fact.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.analysis.verdict_words import GRADES, WORDS, words
from app.analysis.verdicts import LOSSES, Grade
from app.ledger.rows import TurnRow


@dataclass(frozen=True, slots=True)
class Cold:
    sentence: str
    remedy: str | None
    """What usually helps; None where there is nothing to add."""


def told(row: TurnRow) -> Cold | None:
    """The sentence of a row; None where nobody has judged it."""
    verdict, grade = row.cache_verdict, row.cache_grade
    if verdict is None:
        return None
    if verdict not in WORDS:  # of another version
        return Cold(f"Recorded as “{verdict}”{_missed(row.missed_tokens)}.", None)
    found = words(verdict, grade)
    sentence = found.sentence.removesuffix(".")
    if verdict in LOSSES and grade in GRADES and grade != Grade.UNKNOWN:
        sentence += f" ({GRADES[grade]})"
    return Cold(f"{sentence}{_missed(row.missed_tokens)}.", found.remedy)


def _missed(tokens: int | None) -> str:
    if not tokens:
        return ""
    if tokens == 1:
        return "; 1 token that could have been read was not"
    return f"; {tokens:,} tokens that could have been read were not"
