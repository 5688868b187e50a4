"""The least that the gateway's own packages can do: uvicorn with httptools, and websockets.

Each request goes on as one message of a WebSocket that its session keeps, each event comes back as
it is. Nothing is compared, proven, kept or written down, and no failure is dealt with. What this
costs is the packages'; what Warmline costs beyond it is its own.

    uvicorn bare:app, with UPSTREAM=http://127.0.0.1:PORT
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

_BASES = {"/u/": os.environ.get("PACED", ""), "/": os.environ["UPSTREAM"]}
_TYPE = re.compile(rb'\{"type":"([a-z_.]+)"')
_LAST = b"response.completed"
_HEAD = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
}
_kept: dict[tuple[str, str], ClientConnection] = {}

Message = MutableMapping[str, Any]


async def app(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    connection = await _connection(scope)
    await connection.send(b'{"type":"response.create",' + body[1:], text=True)
    await send(_HEAD)
    more = True
    while more:
        event = await connection.recv(decode=False)
        kind = _TYPE.match(event)
        name = kind[1] if kind else b""
        more = name != _LAST
        text = b"event: %b\ndata: %b\n\n" % (name, event)
        await send({"type": "http.response.body", "body": text, "more_body": more})


async def _connection(scope: Message) -> ClientConnection:
    """The one of the session, opened at its first turn."""
    base = next(base for start, base in _BASES.items() if scope["path"].startswith(start))
    session = next(value for name, value in scope["headers"] if name == b"thread-id").decode()
    kept = _kept.get((base, session))
    if kept is None:
        url = base.replace("http", "ws", 1) + "/v1/responses"
        kept = await connect(url, compression=None, max_size=None, proxy=None)
        _kept[base, session] = kept
    return kept
