"""Whether the ledger can be read: asked every few seconds, on a connection of its own.

Pages find out late. A database that hangs answers them with silence, and when nobody looks and no
turn ends nothing asks it at all.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from sqlalchemy import Engine

from app.clock import Clock
from app.ledger import queries
from app.ledger.database import open_engine
from app.ledger.rows import to_ms

logger = logging.getLogger(__name__)

EVERY = 2.0
PATIENCE = 5.0
"""Seconds after which a question that is not answered counts as refused."""
NO_ANSWER = "no_answer"


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known now."""

    readable: bool
    since: int | None
    """Since when it cannot be read, in epoch ms."""
    error: str | None
    """Why not: the kind of the driver's error, or ``no_answer``."""


class Probe:
    """``state`` may be called from any thread and never waits."""

    def __init__(self, engine: Engine, clock: Clock, *, every: float = EVERY) -> None:
        self._engine = open_engine(engine.url)
        self._clock = clock
        self._every = every
        self._lock = threading.Lock()
        self._asked: tuple[float, int] | None = None
        self._since: int | None = None
        self._error: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger-probe", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Ask no more. A question that hangs is left to end with the process."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(0.5)
        if not self._thread.is_alive():
            self._engine.dispose()

    def state(self) -> Reading:
        with self._lock:
            if self._asked is not None:
                began, at = self._asked
                if self._clock.monotonic() - began >= PATIENCE:
                    return Reading(False, at if self._since is None else self._since, NO_ANSWER)
            return Reading(self._error is None, self._since, self._error)

    def ask(self) -> None:
        """Read something, and keep what became of it."""
        with self._lock:
            self._asked = self._clock.monotonic(), to_ms(self._clock.now())
        error = None
        try:
            queries.is_empty(self._engine)
        except Exception as failure:  # whatever it is: a page would meet it too
            error = type(failure).__name__
        finally:
            if self._engine.dialect.name == "sqlite":
                # An open file is still there when it was deleted; only opening it anew tells.
                self._engine.dispose()
        with self._lock:
            _, at = self._asked
            self._asked = None
            before, self._error = self._error, error
            if error is None:
                self._since = None
            elif self._since is None:
                self._since = at
        if error is not None and before is None:
            logger.error("the ledger cannot be read (%s)", error)
        elif error is None and before is not None:
            logger.info("the ledger can be read again")

    def _run(self) -> None:
        while not self._stop.is_set():
            self.ask()
            self._stop.wait(self._every)
