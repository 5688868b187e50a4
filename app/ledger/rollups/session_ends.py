"""When sessions began and ended, worked out anew after some of their rows were taken away.

A sum can be taken away from; the first of several instants cannot.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

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
_TOLD_APART = Key._fields[:5]

# Made once: to build them for each stretch takes longer than to run them.
_OF_ROWS = select(
    func.count(), func.max(c.session), func.min(c.started_at), func.max(c.started_at)
).where(
    c.session_key == bindparam("whose"),
    c.started_at >= bindparam("begin"),
    c.started_at < bindparam("end"),
    *(c[name].is_not_distinct_from(bindparam(name)) for name in _TOLD_APART),
)
_OF_STRETCHES = select(
    func.count(), func.max(s.session), func.min(s.first_at), func.max(s.last_at)
).where(
    s.level == bindparam("finer"),
    s.start >= bindparam("begin"),
    s.start < bindparam("end"),
    s.session_key == bindparam("whose"),
    s.key == bindparam("of"),
)
_PUT = (
    update(tables.sessions)
    .where(
        s.level == bindparam("of_level"),
        s.start == bindparam("begin"),
        s.session_key == bindparam("whose"),
        s.key == bindparam("of"),
    )
    .values(session=bindparam("name"), first_at=bindparam("first"), last_at=bindparam("last"))
)
_PUT_FINEST = _PUT.where(s.turns == bindparam("count"))


def correct(connection: Connection, made: Contributions, state: RollupState) -> None:
    """Correct the parts of sessions that contributions touched.

    Where rows were deleted as too old, the rollup knows of more rows than there are: it is left
    as it is.
    """
    ends: list[dict[str, Any]] = []
    for start, session, key in sorted(made.sessions, key=_place):
        told_apart = {name: getattr(key, name) for name in _TOLD_APART}
        asked = {"whose": session, "begin": start, "end": start + FINEST, **told_apart}
        count, *found = connection.execute(_OF_ROWS, asked).one()
        if count:
            ends.append(_ends(FINEST, (start, session, key), *found) | {"count": count})
    if ends:
        connection.execute(_PUT_FINEST, ends)
    for finer, level in pairwise(SESSION_LEVELS):
        coarse = {(start_of(level, start), session, key) for start, session, key in made.sessions}
        _correct(
            connection,
            finer,
            level,
            [at for at in sorted(coarse, key=_place) if at[0] < state.whole_until(level)],
        )


def _correct(connection: Connection, finer: int, level: int, places: list[SessionAt]) -> None:
    ends: list[dict[str, Any]] = []
    for at in places:
        start, session, key = at
        asked = {"finer": finer, "begin": start, "end": start + level, "whose": session,
                 "of": facts_of(key).id}  # fmt: skip
        count, *found = connection.execute(_OF_STRETCHES, asked).one()
        if count:
            ends.append(_ends(level, at, *found))
    if ends:
        connection.execute(_PUT, ends)


def _place(at: SessionAt) -> tuple[int, str, int]:
    start, session, key = at
    return start, session, facts_of(key).id


def _ends(level: int, at: SessionAt, name: str | None, first: int, last: int) -> dict[str, Any]:
    """One stretch of a session, and the ends that it is to have."""
    begin, whose, of = _place(at)
    return {"of_level": level, "begin": begin, "whose": whose, "of": of, "name": name,
            "first": first, "last": last}  # fmt: skip
