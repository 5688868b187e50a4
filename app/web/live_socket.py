"""``/api/live``: one browser's WebSocket to the hub."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from app.clock import Clock
from app.errors import AppError
from app.ledger.conditions import matcher
from app.ledger.filters import parse
from app.tasks import Tasks
from app.version import VERSION
from app.web.answers import error_answer
from app.web.live import Client, Hub

GOING_AWAY = 1001


async def serve(websocket: WebSocket, hub: Hub, clock: Clock) -> None:
    """Hello, then rows and resets, until the browser leaves or the service stops."""
    try:
        view = parse(websocket.query_params.multi_items(), now=clock.now())
    except AppError as error:
        await websocket.send_denial_response(error_answer(error))
        return
    client = hub.join(matcher(view))
    try:
        await websocket.accept()
        tasks = Tasks()
        both = {
            tasks.start(_quietly(_send(websocket, hub, client)), name="live-send"),
            tasks.start(_quietly(_until_it_leaves(websocket)), name="live-read"),
        }
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in both:
                task.cancel()
            await asyncio.wait(both)
        if client.ended and websocket.application_state is WebSocketState.CONNECTED:
            await websocket.close(GOING_AWAY)
    finally:
        hub.leave(client)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    """A browser that leaves while it is being served is no fault of anybody."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
        await work


async def _send(websocket: WebSocket, hub: Hub, client: Client) -> None:
    await _text(websocket, client.message("hello", hub.as_of(), version=VERSION))
    while (taken := await client.take()) is not None:
        kind, rows = taken
        more = {"rows": rows} if kind == "rows" else {}
        await _text(websocket, client.message(kind, hub.as_of(), **more))


async def _text(websocket: WebSocket, body: bytes) -> None:
    await websocket.send({"type": "websocket.send", "text": body.decode()})


async def _until_it_leaves(websocket: WebSocket) -> None:
    """Browsers have nothing to say here; what they send is read and forgotten."""
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass
