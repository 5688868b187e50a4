"""A client's WebSocket that speaks more than plain turns, joined to an upstream connection.

Lanes (``stream_id``), steering, interrupts and whatever comes later refer to the state of the very
connection that they are sent on. The engine cannot follow them, so frames pass unchanged in both
directions until one side ends. The turns inside are still rows (``tunnel_rows``).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from app.gateway.inbox import Frame
from app.gateway.tunnel_rows import TunnelRows
from app.gateway.wire import Refusal, error_frame
from app.tasks import describe
from engine import failures
from engine.errors import ConnectFailed, ConnectionLost, UpgradeRejected
from engine.handshake import handshake
from engine.transports.base import Connection

if TYPE_CHECKING:
    from app.gateway.ws_turns import ClientSocket

logger = logging.getLogger(__name__)

UNREACHABLE = Refusal(502, "upstream_unreachable", "The upstream could not be reached.")


async def run(socket: ClientSocket, latest: Frame, first: Frame | None) -> None:
    """Serve the socket as a tunnel to its end, on the connection that serves it or on a fresh one.

    ``latest`` is the frame of the latest turn, ``first`` the one that makes the tunnel; None when
    it went beside the turn. When no upstream connection can be had, the client gets an error frame
    with the upstream's status, and its socket goes on as before.
    """
    rows = TunnelRows(socket.context, socket.target.upstream.name, latest.identity)
    connection = socket.seat.take()
    if connection is None and first is not None:
        connection = await _connect(socket, first, rows)
    if connection is None:
        return
    outward = socket.context.tasks.start(
        _client_to_upstream(socket, first, connection, rows), name="tunnel to the upstream"
    )
    inward = socket.context.tasks.start(
        _upstream_to_client(socket, connection, rows), name="tunnel to the client"
    )
    try:
        await asyncio.wait((outward, inward), return_when=asyncio.FIRST_COMPLETED)
    finally:
        outward.cancel()
        inward.cancel()
        await connection.close()
        rows.end(client_left=socket.departure.gone)
    code = inward.result() if inward.done() and not inward.cancelled() else None
    await socket.close(code or 1011)


async def _connect(socket: ClientSocket, first: Frame, rows: TunnelRows) -> Connection | None:
    upstream = socket.target.upstream
    try:
        return await socket.context.websocket.connect(
            socket.target.queried.ws_url,
            handshake(socket.forwarded),
            upstream.policy.connect_timeout,
        )
    except UpgradeRejected as error:
        rows.refused(first, error.status, failures.read(error.body).code)
        await socket.send(error_frame(error.status, error.body))
    except ConnectFailed as error:
        logger.warning("tunnel to %s: %s", upstream.name, describe(error))
        rows.refused(first, UNREACHABLE.status, UNREACHABLE.code)
        await socket.send(UNREACHABLE.frame)
    return None


async def _client_to_upstream(
    socket: ClientSocket, first: Frame | None, connection: Connection, rows: TunnelRows
) -> None:
    frame = first or await socket.inbox.next()
    while frame is not None:
        if frame.refusal is not None:
            await socket.refuse(frame)
        else:
            rows.sent(frame)
            try:
                await connection.send(frame.body)
            except ConnectionLost:
                return
        frame = await socket.inbox.next()


async def _upstream_to_client(
    socket: ClientSocket, connection: Connection, rows: TunnelRows
) -> int | None:
    """Returns the code with which the upstream closed."""
    while True:
        try:
            data = await connection.receive()
        except ConnectionLost as lost:
            return lost.code
        rows.received(data)
        await socket.send(data)
