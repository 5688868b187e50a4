"""How the service listens: one place for everything that serves an application of ours."""

from __future__ import annotations

import contextlib
import errno
import gc
import logging
import socket
import sys
from collections.abc import Awaitable
from typing import Any

import uvicorn

from app.errors import AppError
from app.http_connection import HttpConnection
from app.memory import reuse_freed
from app.settings import Settings

DRAIN_SECONDS = 10
"""How long running answers may go on after the server was told to stop."""

SWITCH_SECONDS = 0.0005
IDLE_SECONDS = 120
"""How long a client's connection is kept between two requests. Agents work for a while between two
turns; a connection that closes just as the next one is sent is a turn that is lost."""


def configure(app: Any, settings: Settings) -> uvicorn.Config:
    """uvicorn's configuration.

    No access log: its lines hold whole addresses, and what matters of a turn is in the ledger.
    No compression on WebSockets: it costs more time than it saves on the way to a local client.
    """
    return uvicorn.Config(
        app,
        interface="asgi3",
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http=HttpConnection,
        ws="websockets-sansio",
        ws_max_size=settings.max_body_bytes,
        ws_per_message_deflate=False,
        access_log=False,
        log_config=None,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )


class PlainFailure:
    """An application whose failure to start is one line, where it is an error of ours.

    Such an error says what is wrong and what to do; a traceback would only hide it.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    def __call__(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        start = self._start if scope["type"] == "lifespan" else self._app
        started: Awaitable[None] = start(scope, receive, send)
        return started

    async def _start(self, scope: Any, receive: Any, send: Any) -> None:
        failed: list[dict[str, Any]] = []

        async def hold(message: dict[str, Any]) -> None:
            if message["type"] == "lifespan.startup.failed":
                failed.append(message)
            else:
                await send(message)

        try:
            await self._app(scope, receive, hold)
        except AppError as error:
            if not failed:
                raise
            await send(failed[0] | {"message": str(error)})
        except BaseException:
            if failed:
                await send(failed[0])
            raise


def run(app: Any, settings: Settings) -> None:
    """Serve until a signal ends it. A failure to start ends the process with status 3; ``AppError``
    is raised where the port is taken."""
    _refuse_taken(settings.host, settings.port)
    reuse_freed()
    share_interpreter()
    with contextlib.suppress(KeyboardInterrupt):  # raised again once everything is closed
        uvicorn.Server(configure(PlainFailure(app), settings)).run()


def port_unusable(port: int, error: OSError) -> AppError:
    return AppError(
        "port_unusable",
        f"Port {port} cannot be used ({error.strerror}).",
        "Choose another one with --port; 0 takes a free one.",
    )


def _refuse_taken(host: str, port: int) -> None:
    """uvicorn would tell it after the ledger was opened, and without what to do."""
    with contextlib.suppress(socket.gaierror):  # uvicorn's to tell
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            try:
                with socket.socket(family, kind, protocol) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    if family == socket.AF_INET6:  # as asyncio does
                        probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    probe.bind(address)
            except OSError as error:
                if error.errno in (errno.EADDRINUSE, errno.EACCES):
                    raise port_unusable(port, error) from None


def share_interpreter() -> None:
    """Let nothing keep the interpreter for long while events wait.

    Each call to the network gives it away; a thread that computes, be it the ledger's or one with a
    large body, would keep it for five milliseconds each time. The cyclic collector looks at new
    objects only, and less often: what was imported stays to the end, and what turns leave behind is
    freed by counting references; the default would walk over all of it time and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    sys.setswitchinterval(SWITCH_SECONDS)


def configure_logging(level: str) -> None:
    """Plain lines on standard error.

    Of libraries only warnings, and of the server when it starts and stops: what they say beyond
    that quotes frames, headers, statements.
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=level.upper(),
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
        force=True,
    )
    own = logging.getLogger().level
    logging.getLogger("uvicorn").setLevel(max(logging.INFO, own))
    for name in ("websockets", "aiohttp", "asyncio", "sqlalchemy", "alembic", "openai", "httpx"):
        logging.getLogger(name).setLevel(max(logging.WARNING, own))
