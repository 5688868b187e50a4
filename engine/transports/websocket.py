"""The upstream WebSocket, by the ``websockets`` library."""

from __future__ import annotations

import asyncio

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.protocol import State

from engine.errors import ConnectFailed, ConnectionLost, UpgradeRejected
from engine.transports.base import Headers
from engine.transports.quick import QuickConnection

# The library's default of 1 MiB ends a connection on a large terminal event (LINGTAI H11).
_MAX_MESSAGE = 64 * 1024 * 1024
_CLOSE_SECONDS = 2.0
"""What a peer may take to answer the close."""


class WebSocketConnection:
    """One live connection. The library's reader answers pings while it is idle."""

    def __init__(self, connection: QuickConnection) -> None:
        self._connection = connection
        # One call less for every event of every stream.
        self.take = connection.take  # type: ignore[method-assign]

    @property
    def closed(self) -> bool:
        return self._connection.state is not State.OPEN

    async def send(self, frame: bytes) -> None:
        if self._connection.send_at_once(frame):
            return
        if self.closed:
            raise ConnectionLost(self._connection.close_code, sent=False)
        try:
            await self._connection.send(frame, text=True)
        except ConnectionClosed as error:
            # Part of a large frame may have left, but never its end: it cannot be processed.
            raise ConnectionLost(_code(error), sent=False) from error

    async def receive(self) -> bytes:
        try:
            return await self._connection.receive()
        except ConnectionClosed as error:
            raise ConnectionLost(_code(error), sent=True) from error

    def take(self) -> bytes | None:
        return self._connection.take()  # pragma: no cover - each connection has its own

    async def ping(self, within: float) -> bool:
        try:
            async with asyncio.timeout(within):
                await (await self._connection.ping())
        except (ConnectionClosed, TimeoutError):
            return False
        return True

    async def close(self) -> None:
        # A peer that does not answer the close must not hold anyone up.
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._connection.close()
        except TimeoutError:
            self._connection.transport.abort()


def _code(error: ConnectionClosed) -> int | None:
    return error.rcvd.code if error.rcvd is not None else None


class _Connect(connect):
    """Without redirects: they would carry the client's credential to another address."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class WebSockets:
    """Opens connections. ``proxy`` None: environment proxies are not used for upstreams."""

    async def connect(self, url: str, headers: Headers, within: float) -> WebSocketConnection:
        given = [(name, value) for name, value in headers if name != "user-agent"]
        agent = next((value for name, value in headers if name == "user-agent"), None)
        try:
            connection = await _Connect(
                url,
                create_connection=QuickConnection,
                additional_headers=given,
                user_agent_header=agent,
                compression=None,  # it costs CPU and a window per connection, and hides nothing
                max_size=_MAX_MESSAGE,
                open_timeout=within,
                proxy=None,
                process_exception=lambda error: error,
            )
        except InvalidStatus as error:
            response = error.response
            raise UpgradeRejected(
                response.status_code,
                [(name.lower(), value) for name, value in response.headers.raw_items()],
                bytes(response.body),
            ) from error
        except (InvalidHandshake, InvalidURI, OSError, TimeoutError, EOFError) as error:
            raise ConnectFailed(_cause(error)) from error
        assert isinstance(connection, QuickConnection)
        return WebSocketConnection(connection)


def _cause(error: Exception) -> str:
    """One word for the ledger; the text of an exception may name hosts and addresses."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    return "handshake" if isinstance(error, InvalidHandshake | EOFError) else "network"
