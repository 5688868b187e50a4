"""Keeps the turns of the ledger judged: what became of the prompt cache in each (docs/verdicts.md),
and what it cost at list prices (``app.pricing``).

Beside the service for what gateways write, and once after an import. Of several processes on one
ledger one judges; the others look now and then whether it still does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping

from sqlalchemy import Engine

from app.analysis.chains import Session, judge_session
from app.analysis.verdicts import Judged
from app.analysis.waste import NOBODY, Sellers
from app.clock import Clock
from app.ledger.judging import Judging, NotOurs
from app.ledger.rows import TurnRow, to_ms
from app.ledger.store import Verdict
from app.pricing import price_all
from app.tasks import Repeating

logger = logging.getLogger(__name__)

EVERY = 2.0
"""Seconds."""


class _Fold:
    def __init__(self, cut: bool) -> None:
        self._session = Session(cut=cut)

    def push(self, row: TurnRow) -> dict[str, Verdict]:
        return _columns(self._session.push(row))


def verdicts_on(rows: Iterable[TurnRow]) -> dict[str, Verdict]:
    """The verdicts on all rows of one session, by ``turn_id``."""
    return _columns(judge_session(rows))


def _columns(found: Mapping[str, Judged]) -> dict[str, Verdict]:
    return {
        turn_id: Verdict(judged.verdict.value, judged.grade.value, judged.missed)
        for turn_id, judged in found.items()
    }


def judging(engine: Engine, clock: Clock, owner: str | None = None) -> Judging:
    """What judges the turns of a ledger."""
    return Judging(engine, _Fold, lambda: to_ms(clock.now()), owner or secrets.token_hex(8))


def judge_all(
    engine: Engine,
    clock: Clock,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
    upstreams: Sellers = NOBODY,
) -> int:
    """Judge all turns that have no verdict yet, whoever else is at it; returns the rows read.

    Those that have no price yet get one; ``upstreams``: of ``pricing.sellers``.

    ``progress`` is told how many these are so far, and how many at least they will be.
    """
    mine = judging(engine, clock)
    mine.remembered.turns = 0  # none comes twice, and half a gigabyte of logs has many of them
    waiting = mine.waiting()
    try:
        done = mine.run(progress=lambda done: progress(done, max(done, waiting)), take_over=True)
    finally:
        mine.release()
    price_all(engine, upstreams)
    progress(done, done)
    return done


class Judge(Repeating):
    """Runs beside the service; ``aclose`` waits for the transaction at hand."""

    def __init__(self, engine: Engine, clock: Clock, upstreams: Sellers = NOBODY) -> None:
        super().__init__("judging", every=EVERY)
        self._engine, self._upstreams = engine, upstreams
        self._judging = judging(engine, clock)
        self._away = False

    async def aclose(self) -> None:
        await super().aclose()
        with contextlib.suppress(Exception):  # the database may be away; the lease ends by itself
            await asyncio.to_thread(self._judging.release)

    def _once(self) -> None:
        began = time.monotonic()

        def rest() -> None:
            # As long as it took: a backlog must slow down neither turns nor pages.
            nonlocal began
            self._stop.wait(time.monotonic() - began)
            began = time.monotonic()

        with contextlib.suppress(NotOurs):
            stopped = self._stop.is_set
            self._judging.run(stop=stopped, between=rest)
            price_all(self._engine, self._upstreams, stop=stopped, between=rest)
            self._away = False

    def _failed(self, error: Exception) -> None:
        # The database may be away for a while; what waits then waits longer.
        if not self._away:
            logger.warning("turns could not be judged: %s", type(error).__name__)
        self._away = True
