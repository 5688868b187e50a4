"""How the service listens: one place for everything that serves an application of ours."""

from __future__ import annotations

import logging
import sys
from typing import Any

import uvicorn

from app.settings import Settings

DRAIN_SECONDS = 10
"""How long running answers may go on after the server was told to stop."""


def configure(app: Any, settings: Settings) -> uvicorn.Config:
    """uvicorn's configuration.

    No access log: its lines hold whole addresses, and what matters of a turn is in the ledger.
    No compression on WebSockets: it costs more time than it saves on the way to a local client.
    """
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http="httptools",
        ws="websockets-sansio",
        ws_max_size=settings.max_body_bytes,
        ws_per_message_deflate=False,
        access_log=False,
        log_config=None,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )


def configure_logging(level: str) -> None:
    """Plain lines on standard error. What libraries say at debug level stays out: it is content."""
    logging.basicConfig(
        stream=sys.stderr,
        level=level.upper(),
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
        force=True,
    )
    for name in ("uvicorn", "websockets", "aiohttp", "asyncio", "sqlalchemy", "alembic"):
        logging.getLogger(name).setLevel(max(logging.INFO, logging.getLogger().level))
