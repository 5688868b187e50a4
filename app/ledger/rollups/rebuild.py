"""Counting the rows anew, day by day, as far back as all rows are kept."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, cast

from sqlalchemy import Connection, Engine, func, select

from app.ledger.database import WRITES
from app.ledger.models import turns
from app.ledger.rollups import apply, break_sums, lives, tables
from app.ledger.rollups import state as states
from app.ledger.rollups.contribution import (
    DAY,
    HOUR,
    LEVELS,
    SESSION_LEVELS,
    Contributions,
    start_of,
)
from app.ledger.rollups.state import RollupState
from app.ledger.rows import TurnRow

logger = logging.getLogger(__name__)
c = turns.c
COUNTED = (
    "started_at",
    "source",
    "kind",
    "status",
    "session",
    "session_key",
    "tenant",
    "client",
    "upstream",
    "model",
    "mode",
    "reason",
    "eligible",
    "input_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "usage_state",
    "ttft_ms",
    "duration_ms",
    "cost_usd",
)
"""The columns that contributions are made from."""
_TABLES = (
    (tables.cells, LEVELS),
    (tables.times, LEVELS),
    (tables.sessions, SESSION_LEVELS),
)
Progress = Callable[[int, int], None]
EVER = 1 << 62
"""Beyond any instant; before all of them with a minus."""


def rebuild(engine: Engine, progress: Progress = lambda _done, _of: None) -> int:
    """Count all rows anew whose neighbours of the day are all kept; returns how many.

    Each day is a transaction of its own: it may run beside gateways that write, and may be broken
    off. All breaks are counted in the first one. ``progress`` is told how many rows are counted,
    and of how many.
    """
    writing = engine.execution_options(**WRITES)
    with writing.begin() as connection:
        state = states.hold(connection, change=True)
        if state.missing:
            state = _begin(connection, state)
        break_sums.rebuild(connection)
        since = _since(state)
        total = connection.execute(select(func.count()).where(c.started_at >= since)).scalar_one()
    counted = 0
    progress(0, total)
    while True:
        with writing.begin() as connection:
            state = states.hold(connection, change=True)
            # Rows may have been deleted as too old meanwhile: their sums stay as they are.
            since = max(since, _since(state))
            first = connection.execute(
                select(func.min(c.started_at)).where(c.started_at >= since)
            ).scalar_one()
            if first is None:
                forgotten = lives.active(connection, since, None)
                clear(connection, since, None)
                lives.refresh(connection, forgotten, state)
                states.remove(connection, states.MISSING)
                _analyze(connection)
                progress(total, total)
                return counted
            end = start_of(DAY, first) + DAY
            touched = set(lives.active(connection, since, end))
            clear(connection, since, end)
            made = Contributions()
            for rows in _rows(connection, first, end):
                made.add(rows)
                counted += len(rows)
                progress(min(counted, total), total)
            apply.add(connection, made, state)
            lives.refresh(connection, touched.union(key for _, key, _ in made.sessions), state)
        since = end


def build_missing(engine: Engine, progress: Progress = lambda _done, _of: None) -> None:
    """Count the rows that were there before there were rollups, if that was not done yet."""
    with engine.connect() as connection:
        state = states.read(connection)
    if state.missing:
        logger.info("counting the rows of the ledger for its rollups, once")
        rebuild(engine, progress)
        logger.info("the rollups are complete")
    elif state.breaks_missing:
        logger.info("counting the breaks of the ledger, once")
        with engine.execution_options(**WRITES).begin() as connection:
            if states.hold(connection, change=True).breaks_missing:
                break_sums.rebuild(connection)


def _begin(connection: Connection, state: RollupState) -> RollupState:
    """Set how far coarse stretches go, before there are any."""
    newest = connection.execute(select(func.min(_NEWEST.c.newest))).scalar_one_or_none()
    until = max(state.coarse_until, start_of(HOUR, (newest or 0) - apply.GRACE), 0)
    clear(connection, _since(state), None)
    lives.clear(connection)
    states.put(connection, states.COARSE_UNTIL, until)
    state = RollupState(until, state.missing, state.rows_from, state.rollups_from)
    # Of time whose rows are deleted, which is not counted anew.
    lives.refresh(connection, lives.active(connection, -EVER, None), state)
    return state


def _since(state: RollupState) -> int:
    return -EVER if state.rows_from is None else state.rows_from


_NEWEST = (
    select(func.max(c.started_at).label("newest"))
    .union_all(select(func.max(c.recorded_at)))
    .subquery()
)


def _analyze(connection: Connection) -> None:
    """PostgreSQL would learn only after a while what there is now, and read it slowly until then.

    SQLite does not need to: each of these tables has one index.
    """
    if connection.dialect.name == "postgresql":
        for table in (tables.keys, *(table for table, _ in _TABLES)):
            connection.exec_driver_sql(f"ANALYZE {table.name}")


def clear(connection: Connection, start: int, end: int | None) -> None:
    """Forget all stretches that begin in ``[start, end)``."""
    for table, levels in _TABLES:
        for level in levels:
            statement = table.delete().where(table.c.level == level, table.c.start >= start)
            if "detail" in table.c:
                statement = statement.where(table.c.detail.in_(apply.DETAILS))
            if end is not None:
                statement = statement.where(table.c.start < end)
            connection.execute(statement)


def _rows(connection: Connection, start: int, end: int) -> Iterator[list[TurnRow]]:
    query = select(*(c[name] for name in COUNTED)).where(c.started_at >= start, c.started_at < end)
    found: Any = connection.execute(query, execution_options={"yield_per": 5_000})
    for part in found.partitions():
        # As far as contributions are concerned, they are rows.
        yield cast("list[TurnRow]", part)
