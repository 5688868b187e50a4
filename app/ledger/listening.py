"""The rows that other processes write to the same PostgreSQL, as they come.

One connection listens for announcements. After it was lost nobody knows what was missed: those who
want rows are told so, and look again. Where announcements do not come through (some poolers of
connections swallow them), new rows are looked for every few seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from app.ledger import queries
from app.ledger.announcing import CHANNEL, Announcement, Announcer
from app.ledger.rows import TurnRow

logger = logging.getLogger(__name__)

EVERY = 3.0
"""Seconds between two looks for new rows, where they are not announced."""
MOST = 1_000
"""Rows that are brought at once; of more at a time it is told that there are some."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class Listener:
    """``on_rows`` is called in a worker thread with rows of other processes, in their order;
    ``on_gap`` on the event loop where some may have been missed. Nothing is read while nobody is
    ``wanted``."""

    def __init__(
        self,
        engine: Engine,
        announcer: Announcer,
        *,
        on_rows: Callable[[list[TurnRow]], None],
        on_gap: Callable[[], None],
        wanted: Callable[[], bool],
        every: float = EVERY,
    ) -> None:
        self._engine = engine
        self._announcer = announcer
        self._on_rows = on_rows
        self._on_gap = on_gap
        self._wanted = wanted
        self._every = every
        self._floors: deque[int] = deque(maxlen=2)
        self._given: dict[str, None] = {}
        self.listening = False
        """Connected; not yet whether announcements come through."""

    async def run(self) -> None:
        """Listen until cancelled."""
        missed = False
        pause = _FIRST_PAUSE
        while True:
            try:
                connection = await self._connect()
                async with connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    newest = await asyncio.to_thread(queries.newest, self._engine)
                    self._floors.clear()
                    self._floors.append(newest)
                    if missed:
                        self._on_gap()
                        logger.info("rows of other processes are heard of again")
                    missed, pause = False, _FIRST_PAUSE
                    self.listening = True
                    await self._follow(connection)
            except (self._engine.dialect.loaded_dbapi.Error, SQLAlchemyError, OSError) as error:
                if not missed:
                    logger.warning("rows of other processes are missed: %s", type(error).__name__)
                missed = True
            finally:
                self.listening = False
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _connect(self) -> Any:
        from psycopg import AsyncConnection  # noqa: PLC0415  (only there with PostgreSQL)

        _, options = self._engine.dialect.create_connect_args(self._engine.url)
        options.pop("context", None)
        return await AsyncConnection.connect(**options, autocommit=True)

    async def _follow(self, connection: Any) -> None:
        heard = False
        await asyncio.to_thread(self._announcer.greet, self._engine)
        while True:
            turns: list[str] = []
            # One is waited for; what came while the last ones were brought is taken with it.
            async for said in connection.notifies(timeout=self._every, stop_after=1):
                heard = True
                turns += self._turns(said.payload)
            if turns and self._wanted():
                await self._bring(turns)
            if not heard:
                await asyncio.to_thread(self._look)

    def _turns(self, payload: str) -> list[str]:
        try:
            announcement = msgspec.json.decode(payload, type=Announcement)
        except msgspec.DecodeError:  # another version's
            self._on_gap()
            return []
        return [] if announcement.origin == self._announcer.origin else announcement.turns

    async def _bring(self, turns: Sequence[str]) -> None:
        if len(turns) > MOST:
            self._on_gap()
        else:
            await asyncio.to_thread(lambda: self._give(queries.some(self._engine, turns)))

    def _look(self) -> None:
        """New rows by their number. A row may get its number before another one and be committed
        after it, so that each is looked for twice."""
        found = queries.after(self._engine, self._floors[0], limit=MOST)
        self._floors.append(max((number for number, _ in found), default=self._floors[-1]))
        if self._wanted():
            self._give([row for _, row in found if not self._announcer.wrote(row.turn_id)])

    def _give(self, rows: Sequence[TurnRow]) -> None:
        new = [row for row in rows if row.turn_id not in self._given]
        self._given.update(dict.fromkeys(row.turn_id for row in new))
        while len(self._given) > 4 * MOST:
            del self._given[next(iter(self._given))]
        if new:
            self._on_rows(new)
