"""Sessions that span a window and are idle in it: turns before it and after it, none within.

A window that goes on to now has none, since nothing comes after it.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection

from app.ledger.filters import Filter
from app.ledger.rollups import sessions, state
from app.ledger.rollups.contribution import HOUR, SESSION_LEVELS, start_of
from app.ledger.rollups.lives import EVERYTHING, block_of, in_blocks

_ALWAYS = 2**53
MANY = 5_000
"""So many sessions are looked at; more are hardly ever under way at once."""


class Idle(NamedTuple):
    session_key: str
    session: str | None
    """A name it went by."""
    before: int
    """Its last turn of the view's dimensions before the window, and its first one after it."""
    after: int


def spanning(connection: Connection, view: Filter, but: Container[str]) -> list[Idle]:
    """In no order; ``but`` are the sessions that have turns in the view.

    Turns belong to the window of their start here: of a view by ``recorded`` none is idle. None
    is either before sessions have been added up for the first time after an upgrade.
    """
    if view.by != "started":
        return []
    found = [key for key in _candidates(connection, view) if key not in but]
    if not found:
        return []
    earlier = replace(view, start=0, end=view.start)
    later = replace(view, start=view.end, end=_ALWAYS)
    ends = {one.session_key: one.first_at for one in sessions.of(connection, later, found)}
    return [
        Idle(one.session_key, one.session, one.last_at, ends[one.session_key])
        for one in sessions.of(connection, earlier, list(ends))
    ]


def _candidates(connection: Connection, view: Filter) -> list[str]:
    """Sessions that may have turns on both sides of a window."""
    known = state.read(connection)
    if known.missing:
        return []
    first, last = view.start // HOUR, view.end // HOUR
    least, _ = block_of(first, last)
    blocks = [(size, first >> size) for size in range(least, EVERYTHING[0])]
    open_from = start_of(SESSION_LEVELS[0], max(view.end, known.coarse_until))
    found = connection.exec_driver_sql(
        "SELECT session_key FROM rollup_lives "  # noqa: S608  (numbers)
        f"WHERE {in_blocks([EVERYTHING, *blocks])} AND first <= {first} AND last >= {last} "
        # Lives are of hours that are over: what goes on now is known by its quarters alone.
        "UNION SELECT session_key FROM rollup_sessions "
        f"WHERE level = {SESSION_LEVELS[0]} AND start >= {open_from} LIMIT {MANY}"
    )
    return list(found.scalars().all())
