"""The newest rows of a view, where its window holds more than somebody waits for.

What is told row by row (causes, resets, witnesses, drift, what a filter form offers) is told of
these, and says so: of so many rows, since when.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from app.ledger.conditions import BREAK, only_breaks, time_column, where
from app.ledger.filters import Filter

MOST = 100_000
"""Rows that are read in less than 300 ms."""
FOLLOWED = 20_000
"""Turns of one session that are held each against the one before it, in as long."""
_INDEXED = ("session", "fingerprint", "turn_id", BREAK)
"""Dimensions whose rows are found without reading those beside them."""


class Newest(NamedTuple):
    view: Filter
    """The view from where its newest rows begin."""
    rows: int | None
    """How many rows there are from there on, whatever the view leaves out of them; None: the view
    is whole."""


def newest(connection: Connection, view: Filter, *, most: int | None = None) -> Newest:
    """A view, or its newest part where more than ``most`` rows (``MOST``) would be read for it.

    Those of one instant stay together.
    """
    most = MOST if most is None else most
    include = {name: view.include[name] for name in _INDEXED if name in view.include}
    if not only_breaks(view):
        include.pop(BREAK, None)
    read = replace(view, include=include, exclude={}, q=None)
    time = time_column(view.by)
    query = select(time).where(where(read)).order_by(time.desc()).limit(2).offset(most - 1)
    found = connection.execute(query).scalars().all()
    if len(found) < 2:
        return Newest(view, None)
    start = found[0]
    count = select(func.count()).where(where(replace(read, start=start)))
    return Newest(view.window(start, view.end), connection.execute(count).scalar_one())


def followed(connection: Connection, view: Filter) -> Newest:
    """``newest`` of what goes through sessions turn by turn: of one alone it is ``FOLLOWED``."""
    return newest(connection, view, most=FOLLOWED if "session" in view.include else None)
