"""Deleting what is older than it is to be kept: rows first, what they add up to much later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, select

from app.ledger import store
from app.ledger.database import WRITES
from app.ledger.models import turns
from app.ledger.rollups import lives, rebuild
from app.ledger.rollups import state as states
from app.ledger.rollups.contribution import DAY, start_of

_AT_ONCE = 2_000
"""Rows of one transaction: other writers wait no longer than that takes."""


@dataclass(frozen=True, slots=True)
class Pruned:
    rows: int
    rows_from: int | None
    """Rows that started before are deleted; None: all are kept."""
    rollups_from: int | None


def prune(
    engine: Engine,
    now: int,
    *,
    row_days: int,
    rollup_days: int,
    stop: Callable[[], bool] = lambda: False,
) -> Pruned:
    """Delete what is too old at ``now`` (epoch ms), in whole days of UTC; 0 days are for ever.

    Rollups stay at least as long as rows. ``stop`` is asked now and then; what is left is
    deleted the next time.
    """
    writing = engine.execution_options(**WRITES)
    with writing.begin() as connection:
        state = states.hold(connection, change=True)
        if state.missing:
            return Pruned(0, state.rows_from, state.rollups_from)
        rows_from = _later(state.rows_from, _first_kept(connection, cut(now, row_days)))
        rollups_from = _later(state.rollups_from, cut(now, rollup_days))
        if rollups_from is not None:
            rollups_from = None if rows_from is None else min(rollups_from, rows_from)
        # Said before it is done: nobody may take for complete what is being deleted.
        for name, value in ((states.ROWS_FROM, rows_from), (states.ROLLUPS_FROM, rollups_from)):
            if value is not None:
                states.raise_to(connection, name, value)
    deleted = 0
    while rows_from is not None and not stop():
        with writing.begin() as connection:
            gone = store.prune_rows(connection, rows_from, limit=_AT_ONCE)
        deleted += gone
        if gone < _AT_ONCE:
            break
    if rollups_from is not None and not stop():
        with writing.begin() as connection:
            state = states.hold(connection, change=True)
            touched = lives.active(connection, -rebuild.EVER, rollups_from)
            rebuild.clear(connection, -rebuild.EVER, rollups_from)
            lives.refresh(connection, touched, state)
    return Pruned(deleted, rows_from, rollups_from)


def kept_from(engine: Engine) -> Pruned:
    """What retention has deleted so far; ``rows`` that wait to be deleted are not counted."""
    with engine.connect() as connection:
        state = states.read(connection)
    return Pruned(0, state.rows_from, state.rollups_from)


def _first_kept(connection: Connection, before: int | None) -> int | None:
    """``before``, where there is anything before it: what is imported later is not too old until
    something of its time was deleted."""
    if before is None:
        return None
    old = select(turns.c.id).where(turns.c.started_at < before).limit(1)
    return None if connection.execute(old).first() is None else before


def cut(now: int, days: int) -> int | None:
    """Rows that started before are too old at ``now`` (epoch ms); None: none is, 0 days."""
    return start_of(DAY, now - days * DAY) if days else None


def _later(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)
