"""Which upstream connection serves a client's WebSocket, and its handover to a tunnel.

Frames that are no plain turns speak of the state of one connection: an interrupt stops the response
that is running on it. The engine neither sends them nor shows its connections; so the gateway gives
it a transport whose connections note whom they serve, and can be taken over. To the engine one that
was taken is closed.
"""

from __future__ import annotations

from contextvars import ContextVar

from engine.errors import ConnectionLost
from engine.transports.base import Connection, Headers, WebSocketTransport


class Seat:
    """Of one client WebSocket: the connection that its turn under way, or its last one, is on."""

    def __init__(self) -> None:
        self._connection: SharedConnection | None = None

    def occupy(self) -> None:
        """From now on, connections on which the current task sends are noted here."""
        _seat.set(self)

    def note(self, connection: SharedConnection | None) -> None:
        self._connection = connection

    async def send_beside(self, frame: bytes) -> bool:
        """Send a frame on the connection while the engine's turn is on it; False if it is gone."""
        if self._connection is None or self._connection.closed:
            return False
        try:
            await self._connection.send(frame)
        except ConnectionLost:
            return False
        return True

    def take(self) -> Connection | None:
        """The connection, for good: the engine will not use it again. None if there is none."""
        connection, self._connection = self._connection, None
        if connection is None or connection.closed:
            return None
        return connection.give_up()


_seat: ContextVar[Seat | None] = ContextVar("seat", default=None)


class SharedConnection:
    """A connection of the engine's that can be taken from it."""

    def __init__(self, inner: Connection) -> None:
        self._inner = inner
        self._is_taken = False
        # Bound here, not wrapped: every event of every stream comes through it.
        self.receive = inner.receive
        self.take = inner.take
        self.ping = inner.ping

    @property
    def closed(self) -> bool:
        return self._is_taken or self._inner.closed

    async def send(self, frame: bytes) -> None:
        if self._is_taken:
            raise ConnectionLost(None, sent=False)
        seat = _seat.get()
        if seat is not None:
            seat.note(self)
        await self._inner.send(frame)

    async def close(self) -> None:
        if not self._is_taken:
            await self._inner.close()

    def give_up(self) -> Connection:
        self._is_taken = True
        return self._inner


class SharedSockets:
    """A transport whose connections can be taken over."""

    def __init__(self, inner: WebSocketTransport) -> None:
        self._inner = inner

    async def connect(self, url: str, headers: Headers, within: float) -> SharedConnection:
        return SharedConnection(await self._inner.connect(url, headers, within))
