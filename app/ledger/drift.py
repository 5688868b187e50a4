"""Sessions of a view in which something changed that decides whose cache a turn meets, and their
rows. One pass over the rows of the view finds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from app.ledger.conditions import generation, where
from app.ledger.filters import Filter
from app.ledger.models import turns
from app.ledger.rows import TurnRow, light

c = turns.c
_NAME: ColumnElement[str] = func.coalesce(c.session, c.session_key)
"""A session that went to another account or upstream has another key, and the same name."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The names of the sessions that changed, those that missed most first."""

    names: tuple[str, ...]
    further: bool
    """There are more."""


def changed(connection: Connection, view: Filter, kinds: Sequence[str], *, limit: int) -> Changed:
    """Sessions with two values of any of these columns; what is not known is no value."""
    query = (
        select(_NAME.label("drift_name"))
        .where(where(view), generation)
        .group_by("drift_name")
        .having(or_(*(func.min(c[kind]) != func.max(c[kind]) for kind in kinds)))
        .order_by(func.coalesce(func.sum(c.missed_tokens), 0).desc(), "drift_name")
        .limit(limit + 1)
    )
    names = connection.execute(query).scalars().all()
    return Changed(tuple(names[:limit]), len(names) > limit)


def rows_of(
    connection: Connection, view: Filter, name: str, columns: Sequence[str]
) -> Iterator[TurnRow]:
    """The generation turns of a session in the view; they hold nothing but these columns."""
    query = select(*(c[name] for name in columns)).where(
        where(view),
        generation,
        or_(c.session == name, and_(c.session.is_(None), c.session_key == name)),
    )
    return map(light(tuple(columns)), connection.execute(query).all())
