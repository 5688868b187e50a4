"""The real dashboard on a real port, in a thread of its own, so that a test can write rows."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from app.ledger.rows import TurnRow, to_ms
from tests.support.serving import Server
from tests.support.site import Site, open_site

START_SECONDS = 15.0


@dataclass
class LiveServer:
    url: str
    site: Site

    @property
    def now(self) -> int:
        """The server's present in epoch milliseconds; it moves only by ``advance``."""
        return to_ms(self.site.clock.now())

    def write(self, rows: Iterable[TurnRow]) -> None:
        self.site.write(rows)

    def advance(self, seconds: float) -> None:
        self.site.clock.advance(seconds)

    def get(self, path: str, **parameters: object) -> dict[str, Any]:
        """What the API says, without a browser."""
        return self.site.get(path, **parameters)


@contextmanager
def serve(
    folder: Path,
    rows: Iterable[TurnRow] = (),
    *,
    token: str | None = None,
    toml: str = "",
    database: str | None = None,
) -> Iterator[LiveServer]:
    """A server over a ledger in ``folder``, or at ``database``, that holds ``rows``; stopped when
    the block ends."""
    site = open_site(folder, token=token, toml=toml, database=database)
    site.write(rows)
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        config = uvicorn.Config(site.app, log_level="warning", timeout_graceful_shutdown=1)
        server = Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        assert server.up.wait(START_SECONDS), "the server did not start"
        try:
            yield LiveServer(f"http://127.0.0.1:{port}", site)
        finally:
            server.should_exit = True
            thread.join(START_SECONDS)
            site.close()
