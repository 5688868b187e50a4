"""The dashboard over a ledger in a temporary file, without gateway and engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.testclient import TestClient

from app.gateway.access import HostPolicy
from app.ledger.database import prepare
from app.ledger.rows import TurnRow
from app.ledger.writer import LedgerWriter
from app.paths import STATIC
from app.telemetry import Telemetry
from app.web.access import Tickets
from app.web.assets import Assets
from app.web.live import Hub
from app.web.site import build
from app.web.web import Web
from tests.support.clock import ManualClock

BASE = "http://127.0.0.1:8787"


@dataclass
class Site:
    app: FastAPI
    web: Web
    client: TestClient
    clock: ManualClock
    writer: LedgerWriter

    @property
    def engine(self) -> Engine:
        return self.web.ledger

    def write(self, rows: Iterable[TurnRow]) -> None:
        for row in rows:
            self.writer.record(row)
        assert self.writer.flush()

    def get(self, path: str, **parameters: object) -> dict:
        answer = self.client.get(path, params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def close(self) -> None:
        self.writer.close()
        self.client.close()
        self.engine.dispose()


def open_site(folder: Path, *, token: str | None = None, static: Path = STATIC) -> Site:
    """An empty ledger in ``folder``; the caller closes it. Live rows need the lifespan: a server,
    or ``with site.client``."""
    clock = ManualClock()
    hub = Hub(clock)
    engine = prepare(str(folder / "ledger.db"))
    telemetry = Telemetry("0.0")
    writer = LedgerWriter(engine, clock, linger=0.0)
    web = Web(
        clock=clock,
        hub=hub,
        assets=Assets(static),
        tickets=Tickets(token, clock),
        telemetry=telemetry,
        engine=engine,
        writer_state=writer.state,
    )

    def written(rows: list[TurnRow]) -> None:
        hub.publish(rows)
        telemetry.observe(rows)

    writer.on_written = written

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        hub.start()
        yield
        hub.close()

    app = build(web, HostPolicy.for_bind("127.0.0.1"), lifespan=lifespan)
    return Site(app, web, TestClient(app, base_url=BASE), clock, writer)
