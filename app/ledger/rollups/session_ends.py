"""When sessions began and ended, worked out anew after some of their rows were taken away.

A sum can be taken away from; the first of several instants cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, Update, func, select, update

from app.ledger.models import turns
from app.ledger.rollups import tables
from app.ledger.rollups.contribution import (
    SESSION_LEVELS,
    Contributions,
    Key,
    SessionAt,
    facts_of,
    start_of,
)
from app.ledger.rollups.state import RollupState

c, s = turns.c, tables.sessions.c
FINEST = SESSION_LEVELS[0]


def correct(connection: Connection, made: Contributions, state: RollupState) -> None:
    """Correct the parts of sessions that contributions touched.

    Where rows were deleted as too old, the rollup knows of more rows than there are: it is left
    as it is.
    """
    for at in sorted(made.sessions, key=lambda at: (at[0], at[1], facts_of(at[2]).id)):
        _correct_finest(connection, at)
    for finer, level in pairwise(SESSION_LEVELS):
        coarse = {(start_of(level, start), session, key) for start, session, key in made.sessions}
        for at in sorted(coarse, key=lambda at: (at[0], at[1], facts_of(at[2]).id)):
            if at[0] < state.whole_until(level):
                _correct(connection, finer, level, at)


def _correct_finest(connection: Connection, at: SessionAt) -> None:
    start, session, key = at
    query = select(
        func.count(), func.max(c.session), func.min(c.started_at), func.max(c.started_at)
    ).where(
        c.session_key == session,
        c.started_at >= start,
        c.started_at < start + FINEST,
        *(c[name].is_not_distinct_from(getattr(key, name)) for name in Key._fields[:5]),
    )
    count, *ends = connection.execute(query).one()
    if count:
        connection.execute(_ends(FINEST, at, ends).where(s.turns == count))


def _correct(connection: Connection, finer: int, level: int, at: SessionAt) -> None:
    start, session, key = at
    query = select(
        func.count(), func.max(s.session), func.min(s.first_at), func.max(s.last_at)
    ).where(
        s.level == finer,
        s.start >= start,
        s.start < start + level,
        s.session_key == session,
        s.key == facts_of(key).id,
    )
    count, *ends = connection.execute(query).one()
    if count:
        connection.execute(_ends(level, at, ends))


def _ends(level: int, at: SessionAt, ends: Sequence[Any]) -> Update:
    """The change that gives one stretch of a session these ends."""
    start, session, key = at
    name, first, last = ends
    return (
        update(tables.sessions)
        .where(
            s.level == level,
            s.start == start,
            s.session_key == session,
            s.key == facts_of(key).id,
        )
        .values(session=name, first_at=first, last_at=last)
    )
