"""Where a window ends: one that goes on to now takes in the stretch that now lies in."""

from __future__ import annotations

from sqlalchemy import Connection

from app.ledger.filters import Filter
from app.ledger.rollups.contribution import start_of


def reach(connection: Connection, view: Filter, level: int) -> int:
    """The end of a window by start; where no row begins in the rest of the stretch that it cuts,
    the end of that stretch, all of whose rows are the window's."""
    beyond = start_of(level, view.end - 1) + level
    if beyond == view.end:
        return beyond
    found = connection.exec_driver_sql(
        f"SELECT 1 FROM turns WHERE started_at >= {view.end} AND started_at < {beyond} LIMIT 1"  # noqa: S608  (numbers)
    )
    return beyond if found.first() is None else view.end
