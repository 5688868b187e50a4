"""The live hub: rows as they are written, to every browser that listens.

The ledger's writer calls ``publish`` in its own thread, and so does whoever brings the rows that
other processes wrote to the same database; everything else happens on the event loop.
Each client has one bounded queue. A client that reads too slowly loses all that waits for it and
gets one ``reset``, which tells it to fetch the snapshot again; nobody else waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.clock import Clock
from app.ledger.rows import TurnRow, iso, to_ms
from app.web.answers import encode
from app.web.shown import shown

QUEUE_ROWS = 500
"""Rows that may wait for one client."""
MESSAGE_ROWS = 100
"""Rows in one message."""

Wanted = Callable[[TurnRow], bool]


@dataclass(eq=False)
class Client:
    """One browser. Rows wait as JSON that was encoded once for all clients."""

    wanted: Wanted
    rows: deque[msgspec.Raw] = field(default_factory=deque)
    lost: bool = False
    ended: bool = False
    seq: int = 0
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, rows: Iterable[msgspec.Raw]) -> None:
        if self.lost:
            return  # the reset that is due covers these as well
        self.rows.extend(rows)
        if len(self.rows) > QUEUE_ROWS:
            self.lose()
        self._wake.set()

    def lose(self) -> None:
        self.rows.clear()
        self.lost = True
        self._wake.set()

    def end(self) -> None:
        self.ended = True
        self._wake.set()

    async def take(self) -> tuple[str, list[msgspec.Raw]] | None:
        """The next message's type and rows; None when the hub has ended."""
        while not (self.rows or self.lost or self.ended):
            self._wake.clear()
            await self._wake.wait()
        if self.ended:
            return None
        if self.lost:
            self.lost = False
            return "reset", []
        count = min(len(self.rows), MESSAGE_ROWS)
        return "rows", [self.rows.popleft() for _ in range(count)]

    def message(self, kind: str, as_of: str, **more: Any) -> bytes:
        """One message; each has the next number of this connection."""
        body = encode({"seq": self.seq, "type": kind, "as_of": as_of} | more)
        self.seq += 1
        return body


class Hub:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clients: set[Client] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._clients)

    def start(self) -> None:
        """Call it on the event loop that serves the clients."""
        self._loop = asyncio.get_running_loop()

    def publish(self, rows: list[TurnRow]) -> None:
        """Called in another thread, after the commit. Encodes there, to spare the loop."""
        loop = self._loop
        if loop is None or not self._clients:
            return
        encoded = [(row, msgspec.Raw(encode(shown(row)))) for row in rows]
        with contextlib.suppress(RuntimeError):  # the loop closed meanwhile: nobody listens
            loop.call_soon_threadsafe(self._deliver, encoded)

    def _deliver(self, rows: list[tuple[TurnRow, msgspec.Raw]]) -> None:
        for client in self._clients:
            wanted = [body for row, body in rows if client.wanted(row)]
            if wanted:
                client.put(wanted)

    def reset(self) -> None:
        """Tell every client to fetch the snapshot again: nobody knows which rows were missed."""
        for client in self._clients:
            client.lose()

    def reset_soon(self) -> None:
        """The same from another thread."""
        if self._loop is not None and self._clients:
            with contextlib.suppress(RuntimeError):  # the loop closed meanwhile: nobody listens
                self._loop.call_soon_threadsafe(self.reset)

    def join(self, wanted: Wanted) -> Client:
        """A client that gets the rows from now on. Join before taking the snapshot."""
        client = Client(wanted)
        self._clients.add(client)
        return client

    def leave(self, client: Client) -> None:
        self._clients.discard(client)

    def close(self) -> None:
        """End every client; the loop that serves each of them closes its socket."""
        for client in self._clients:
            client.end()

    def as_of(self) -> str:
        return iso(to_ms(self._clock.now()))
