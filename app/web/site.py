"""The dashboard as a FastAPI application: routes, errors, access, headers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.websockets import WebSocket

from app.gateway.access import HostPolicy
from app.version import VERSION
from app.web import (
    api,
    breaks,
    connect,
    drift,
    economics,
    epoch_reset,
    export,
    faults,
    imports,
    live_socket,
    pages,
    service,
    sessions,
    settings,
    witnesses,
)
from app.web.access import Guard
from app.web.alerts import routes as alerts
from app.web.headers import SecurityHeaders
from app.web.web import Web

DESCRIPTION = (
    "Where an agent's prompt cache stays warm and why it goes cold. "
    "All times are UTC; null is unknown, 0 is a known zero."
)


def build(
    web: Web,
    hosts: HostPolicy,
    *,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    app = FastAPI(
        title="Warmline",
        version=VERSION,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        # Starlette's own telemetry would name paths and queries to whoever collects it.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(Guard, hosts=hosts, tickets=web.tickets),
            Middleware(faults.Faults),
        ],
    )
    faults.install(app)
    app.include_router(pages.router(web))
    app.include_router(api.router(web))
    app.include_router(witnesses.router(web))
    app.include_router(breaks.router(web))
    app.include_router(sessions.router(web))
    app.include_router(epoch_reset.router(web))
    app.include_router(drift.router(web))
    app.include_router(economics.router(web))
    app.include_router(export.router(web))
    app.include_router(settings.router(web))
    app.include_router(alerts.router(web))
    app.include_router(imports.router(web))
    app.include_router(connect.router(web))
    app.include_router(api.by_id(web))
    app.include_router(service.router(web, app.openapi))
    app.router.routes.extend(web.assets.routes())

    @app.websocket("/api/live")
    async def live(websocket: WebSocket) -> None:
        await live_socket.serve(websocket, web.hub, web.clock)

    return app
