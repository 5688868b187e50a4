"""What the verdicts on the prompt cache add up to, and the turns behind some of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from app.ledger.cells import sum_of
from app.ledger.conditions import where
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.rows import COLUMNS, TurnRow
from engine.model import Kind

c = turns.c


@dataclass(frozen=True, slots=True)
class VerdictSum:
    """Generation turns of one verdict and one grade; None are those that nobody has judged."""

    verdict: str | None
    grade: str | None
    turns: int
    cached: int
    """Tokens that were read from the cache, where that is known."""
    missed: int


@dataclass(frozen=True, slots=True)
class Span:
    rows: int
    first_at: int | None
    """When the first and the last turn began, in epoch milliseconds; None of no rows."""
    last_at: int | None


def span(connection: Connection, view: Filter) -> Span:
    """How many rows a view holds, and from when to when."""
    query = select(func.count(), func.min(c.started_at), func.max(c.started_at)).where(where(view))
    return Span(*connection.execute(query).one())


def sums(connection: Connection, view: Filter) -> list[VerdictSum]:
    """All generation turns of a view, the most frequent verdicts first."""
    number = func.count()
    query = (
        select(
            c.cache_verdict, c.cache_grade, number, sum_of(c.cached_tokens), sum_of(c.missed_tokens)
        )
        .where(where(view), c.kind == Kind.GENERATION.value)
        .group_by(c.cache_verdict, c.cache_grade)
        .order_by(number.desc(), c.cache_verdict, c.cache_grade)
    )
    return [VerdictSum(*found) for found in connection.execute(query)]


def judged(
    connection: Connection, view: Filter, verdicts: Collection[str], *, chunk: int = 500
) -> Iterator[TurnRow]:
    """The generation turns of these verdicts, in the order of their writing."""
    query = (
        select(*(c[name] for name in COLUMNS))
        .where(where(view), c.kind == Kind.GENERATION.value, c.cache_verdict.in_(verdicts))
        .order_by(c.id)
    )
    options = {"stream_results": True, "max_row_buffer": chunk}
    with connection.execute(query, execution_options=options) as result:
        for found in result:
            yield TurnRow.of(found)


def turns_of(connection: Connection, view: Filter, session_keys: Sequence[str]) -> dict[str, int]:
    """How many generation turns of a view each of these sessions has."""
    query = (
        select(c.session_key, func.count())
        .where(where(view), c.kind == Kind.GENERATION.value, c.session_key.in_(session_keys))
        .group_by(c.session_key)
    )
    return {row[0]: row[1] for row in connection.execute(query)}
