"""Deletes once an hour what the settings do not keep any longer."""

from __future__ import annotations

import logging
import threading

from sqlalchemy import Engine

from app.alerts import retention as alerts
from app.clock import Clock
from app.ledger import retention
from app.ledger.rollups.contribution import DAY
from app.ledger.rows import iso, to_ms
from app.settings import Settings
from app.tasks import Repeating

logger = logging.getLogger(__name__)

EVERY = 3_600.0
"""Seconds."""


def prune(
    engine: Engine, settings: Settings, now: int, stop: threading.Event | None = None
) -> retention.Pruned:
    """Delete what is too old at ``now`` (epoch ms)."""
    done = retention.prune(
        engine,
        now,
        row_days=settings.retain_rows_days,
        rollup_days=settings.retain_rollups_days,
        stop=(stop or threading.Event()).is_set,
    )
    if done.rows and done.rows_from is not None:
        logger.info("deleted %d rows from before %s", done.rows, iso(done.rows_from))
    if settings.retain_alerts_days:
        gone = alerts.prune(engine, now - settings.retain_alerts_days * DAY)
        if gone:
            logger.info("deleted %d events and messages of alerts", gone)
    return done


class Pruner(Repeating):
    """Runs beside the service; ``aclose`` waits for the transaction at hand."""

    def __init__(self, engine: Engine, settings: Settings, clock: Clock) -> None:
        super().__init__("pruning", every=EVERY)
        self._engine = engine
        self._settings = settings
        self._clock = clock

    def _once(self) -> None:
        prune(self._engine, self._settings, to_ms(self._clock.now()), self._stop)

    def _failed(self, error: Exception) -> None:
        # The database may be away for a while; what is too old then waits an hour longer.
        logger.warning("what is too old could not be deleted: %s", type(error).__name__)
