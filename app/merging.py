"""Keeps one row for each call of which both a gateway and a log tell (``app.ledger.merging``).

Beside the service: sessions whose turns this process has written, and those that an import has
left. The writer only says which these are; nothing of a turn waits for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from sqlalchemy import Engine

from app.ledger import merging
from app.ledger.rows import TurnRow
from app.tasks import Repeating

logger = logging.getLogger(__name__)

EVERY = 2.0
"""Seconds."""
_SHARE = 9
"""How many times as long as it took it then waits, so that turns and pages go first."""
_LONGEST_WAIT = 60.0


class Merger(Repeating):
    """Runs beside the service; ``aclose`` waits for the session at hand."""

    def __init__(self, engine: Engine, changed: Callable[[], None] = lambda: None) -> None:
        """``changed`` is called in a thread when rows came or went."""
        super().__init__("merging", every=EVERY)
        self._engine = engine
        self._changed = changed
        self._lock = threading.Lock()
        self._written: set[str] = set()
        self._begun = False
        self._away = False

    def written(self, rows: Iterable[TurnRow]) -> None:
        """These rows of gateways are new in the ledger. From any thread; does nothing else."""
        self._note(row.session for row in rows if row.session is not None)

    def _once(self) -> None:
        began = time.monotonic()
        if not self._begun:
            # Of a process that was killed, the last ones may not have been looked at.
            self._note(merging.newest_sessions(self._engine))
            self._begun = True
        with self._lock:
            names, self._written = self._written, set()
        try:
            changed = merging.merge(self._engine, names, stop=self._stop.is_set)
        except BaseException:
            self._note(names)
            raise
        changed += merging.merge_waiting(self._engine, stop=self._stop.is_set)
        if changed:
            self._changed()
        self._away = False
        self._stop.wait(min(_SHARE * (time.monotonic() - began), _LONGEST_WAIT))

    def _note(self, names: Iterable[str]) -> None:
        with self._lock:
            self._written.update(names)

    def _failed(self, error: Exception) -> None:
        # The database may be away for a while; what is to be merged then waits.
        if not self._away:
            logger.warning("calls could not be merged: %s", type(error).__name__)
        self._away = True
