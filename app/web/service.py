"""Whether the service lives, what it counts, and which endpoints it has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from html import escape
from typing import Any

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from app.ledger.rows import iso, to_ms
from app.telemetry import CONTENT_TYPE
from app.web.answers import JsonAnswer
from app.web.health import STARTING, health
from app.web.web import Web


def router(web: Web, openapi: Callable[[], dict[str, Any]]) -> APIRouter:
    """``openapi`` gives the application's schema."""
    routes = APIRouter()
    scraping = asyncio.Lock()  # it may ask the ledger: one thread, and not one of the pages'

    # On the event loop: these answer although every thread waits for the database.

    # HEAD too: load balancers ask so.

    @routes.head("/healthz", include_in_schema=False)
    @routes.get("/healthz", tags=["service"])
    async def healthz() -> JsonAnswer:
        """The process answers."""
        return JsonAnswer({"status": "ok"})

    @routes.head("/readyz", include_in_schema=False)
    @routes.get("/readyz", tags=["service"])
    async def readyz() -> JsonAnswer:
        """The ledger can be read and written. Turns are served in any case."""
        told = _health(web)
        return JsonAnswer(told, status_code=200 if told["status"] == "ok" else 503)

    @routes.get("/api/status", tags=["service"])
    async def status() -> JsonAnswer:
        """What `/readyz` says, for pages: always 200."""
        return JsonAnswer({"as_of": iso(to_ms(web.clock.now()))} | _health(web))

    @routes.get("/metrics", tags=["service"])
    async def metrics() -> Response:
        """Prometheus text."""
        async with scraping:
            body = await asyncio.to_thread(web.telemetry.render)
        return Response(body, headers={"content-type": CONTENT_TYPE})

    @routes.get("/openapi.json", include_in_schema=False)
    def schema() -> JsonAnswer:
        return JsonAnswer(openapi())

    @routes.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(list_of_endpoints(openapi()))

    return routes


def _health(web: Web) -> dict[str, Any]:
    if web.engine is None or web.writer_state is None:
        return STARTING
    reading = None if web.reading is None else web.reading()
    return health(web.writer_state(), reading, to_ms(web.clock.now()))


def list_of_endpoints(schema: dict[str, Any]) -> str:
    """A plain page. The usual viewers of OpenAPI are scripts from elsewhere, which the pages'
    content security policy refuses."""
    rows = "\n".join(
        _row(
            f"{method.upper()} {path}",
            operation.get("description") or operation.get("summary", ""),
            ", ".join(given["name"] for given in operation.get("parameters", ())) or "–",
        )
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
    )
    title = escape(f"{schema['info']['title']} {schema['info']['version']}: endpoints")
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }}
body {{ margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }}
td, th {{ text-align: left; vertical-align: top; padding: .4rem 1rem .4rem 0; }}
td {{ border-top: 1px solid color-mix(in srgb, currentColor 25%, transparent); }}
</style></head>
<body><main><h1>{title}</h1>
<p>The same as OpenAPI: <a href="/openapi.json">openapi.json</a>.
<a href="/">To the overview</a>.</p>
<div style="overflow-x: auto"><table><thead><tr><th scope="col">Endpoint</th>
<th scope="col">What</th><th scope="col">Parameters</th></tr></thead>
<tbody>
{rows}
</tbody></table></div>
<p>WebSocket <code>/api/live</code>: rows as they are written; its query string is the filter.</p>
</main></body></html>
"""


def _row(endpoint: str, what: str, parameters: str) -> str:
    cells = (f"<code>{escape(endpoint)}</code>", escape(what), escape(parameters))
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
