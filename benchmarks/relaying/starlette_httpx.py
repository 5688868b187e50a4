"""A gateway as one writes it first: Starlette's streaming answer over httpx's client.

Stands alone: it runs in an environment of its own, which knows nothing of this project.

    uvicorn starlette_httpx:app, with UPSTREAM=http://127.0.0.1:PORT
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

_UPSTREAMS = {"/u/": os.environ.get("PACED", ""), "/": os.environ["UPSTREAM"]}
_KEPT = ("authorization", "content-type", "accept", "thread-id", "user-agent")
_limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
_client = httpx.AsyncClient(timeout=None, limits=_limits)  # a model may take long


async def relay(request: Request) -> StreamingResponse:
    body = await request.body()
    base = next(base for start, base in _UPSTREAMS.items() if request.url.path.startswith(start))
    headers = {name: value for name, value in request.headers.items() if name in _KEPT}
    sent: Any = _client.build_request("POST", base + "/v1/responses", content=body, headers=headers)
    answer = await _client.send(sent, stream=True)

    async def pieces() -> AsyncIterator[bytes]:
        try:
            async for piece in answer.aiter_raw():
                yield piece
        finally:
            await answer.aclose()

    return StreamingResponse(pieces(), answer.status_code, media_type="text/event-stream")


app = Starlette(
    routes=[
        Route("/v1/responses", relay, methods=["POST"]),
        Route("/u/{name}/v1/responses", relay, methods=["POST"]),
    ]
)
