"""The whole service with alerts at work, on a port in a thread of its own, beside a receiver.

Time is the test's: an evaluation is due when ``advance`` says so.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from app.ledger.rows import TurnRow, to_ms
from app.ledger.writer import write_rows
from app.main import Service, create_app
from app.settings import load
from app.web.web import Received
from tests.support.clock import ManualClock
from tests.support.databases import migrated
from tests.support.receiver import Answer, Receiver, receiving

START_SECONDS = 15.0
UPSTREAM = "http://127.0.0.1:9"
"""Nothing listens there; no turn is made."""


@dataclass
class AlertServer:
    url: str
    service: Service
    receiver: Receiver
    clock: ManualClock

    @property
    def now(self) -> int:
        """Epoch milliseconds."""
        return to_ms(self.clock.now())

    def write(self, rows: Iterable[TurnRow]) -> None:
        """Past the writer, which would note its own time as that of the recording."""
        write_rows(self.service.web.ledger, list(rows))

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)


@contextmanager
def alerting(
    folder: Path, *script: Answer | int, toml: str = "", received: Received | None = None
) -> Iterator[AlertServer]:
    """``script``: how the receiver answers; ``toml``: more of the settings file; ``received``: what
    a receiver of the process itself got, as in the demo. Addresses on 127.0.0.1 are allowed."""
    config = folder / "warmline.toml"
    config.write_text(
        f'database = "{migrated(folder / "ledger.db")}"\nupstream = "{UPSTREAM}"\n'
        f'webhook_private_hosts = ["127.0.0.1"]\n{toml}'
    )
    clock = ManualClock()
    app = create_app(load(config=config, environ={}), clock=clock, received=received)
    ready, found = threading.Event(), []

    async def run(listener: socket.socket) -> None:
        async with receiving(*script, clock=clock) as receiver:
            server = uvicorn.Server(
                uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
            )
            task = asyncio.ensure_future(server._serve([listener]))
            while not server.started and not task.done():
                await asyncio.sleep(0.01)
            found.extend((receiver, server))
            ready.set()
            await task

    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        thread = threading.Thread(target=lambda: asyncio.run(run(listener)), daemon=True)
        thread.start()
        assert ready.wait(START_SECONDS), "the server did not start"
        receiver, server = found
        assert server.started, "the server did not start"
        try:
            yield AlertServer(f"http://127.0.0.1:{port}", app.state.service, receiver, clock)
        finally:
            server.should_exit = True
            thread.join(START_SECONDS)
