"""What is told of the prompt cache, counted by what tells it: the columns that
``app.analysis.witnesses`` asks for. One pass over the rows of a view."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, Connection, case, cast, func, select

from app.ledger.conditions import where
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.rows import TurnRow
from engine.model import Kind

c = turns.c
MISSED = "missed_tokens"


def counted(
    connection: Connection, view: Filter, columns: Sequence[str]
) -> list[tuple[TurnRow, int, int]]:
    """The generation turns of a view that are judged, by the values of these columns.

    Of each combination a row that holds nothing but these values, the number of turns, and the
    tokens that they missed together. Of missed tokens the row holds only whether there are any:
    1, 0 or None.
    """
    # Comparing with a CASE keeps what is unknown apart from what is none.
    some = case((c[MISSED] > 0, 1), (c[MISSED] == 0, 0))
    by = [some if name == MISSED else c[name] for name in columns]
    labels = [value.label(f"value_{number}") for number, value in enumerate(by)]
    query = (
        select(*labels, func.count(), cast(func.coalesce(func.sum(c[MISSED]), 0), BigInteger))
        .where(where(view), c.kind == Kind.GENERATION.value, c.cache_verdict.is_not(None))
        .group_by(*(label.name for label in labels))
    )
    return [
        (TurnRow.of_some(columns, values), turns_, missed)
        for *values, turns_, missed in connection.execute(query)
    ]
