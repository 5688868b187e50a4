"""Deleting a session or a tenant from everything that this machine keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from app.alerts import purging as alerts
from app.clock import Clock
from app.ledger import purging as ledger
from app.ledger.journal.journal import Journal
from app.ledger.purging import Target
from app.ledger.writer import LedgerWriter

_PATIENCE = 60.0
"""Seconds to write what ended processes have left."""


@dataclass(frozen=True, slots=True)
class Purged:
    rows: int
    alerts: int
    """Events and messages of alerts."""
    scrubbed: bool
    """Nothing of it can be read in the database's file; False while others keep it in use."""


def settle(engine: Engine, journal: Path, clock: Clock) -> bool:
    """Write the rows that ended processes have left in the journal: they would come back later.

    Returns whether all of them are written.
    """
    if not journal.is_dir():
        return True
    writer = LedgerWriter(engine, clock, journal=Journal(journal))
    written = writer.flush(timeout=_PATIENCE)
    return writer.close() and written


def purge(
    engine: Engine, target: Target, progress: Callable[[int, int], None] = lambda _done, _of: None
) -> Purged:
    rows = ledger.purge(engine, target, progress)
    told = 0
    if target.tenant is not None:
        told = alerts.purge_tenant(engine, target.tenant, target.before)
    return Purged(rows, told, ledger.scrub(engine))
