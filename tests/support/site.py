"""The dashboard over a ledger in a temporary file, without gateway and engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.testclient import TestClient

from app.alerts.guard import Guard
from app.alerts.service import Alerts
from app.gateway.access import HostPolicy
from app.importers.identity import Identity
from app.importers.service import Importing
from app.importers.uploads import Uploads
from app.keys import Keys
from app.ledger.database import prepare
from app.ledger.rows import TurnRow
from app.ledger.writer import LedgerWriter
from app.paths import STATIC
from app.settings import load
from app.telemetry import Telemetry
from app.web.access import Tickets
from app.web.assets import Assets
from app.web.live import Hub
from app.web.site import build
from app.web.web import Web
from tests.support.clock import ManualClock
from tests.support.databases import migrated

PUBLIC = "93.184.216.34"
"""The address of every host name."""
BASE = "http://127.0.0.1:8787"
JSON = {"content-type": "application/json"}


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

    def ask(self, method: str, path: str, body: object = None, *, status: int = 200) -> Any:
        """A call that changes something, as the page makes it."""
        answer = self.client.request(method, path, json=body, headers={"origin": BASE} | JSON)
        assert answer.status_code == status, answer.text
        return answer.json()

    def close(self) -> None:
        self.web.imports.close()
        self.writer.close()
        self.client.close()
        self.engine.dispose()


def open_site(
    folder: Path,
    *,
    token: str | None = None,
    static: Path = STATIC,
    toml: str = "",
    environ: Mapping[str, str] | None = None,
    database: str | None = None,
) -> Site:
    """An empty ledger in ``folder``, or at ``database``; the caller closes it. Live rows need the
    lifespan: a server, or ``with site.client``. Alerts are there, but nothing evaluates or delivers by itself.

    ``toml``: more of the settings file; ``environ``: what ``env:NAME`` may name.
    """
    clock = ManualClock()
    hub = Hub(clock)
    named = database or str(folder / "ledger.db")
    engine = prepare(migrated(named))
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
        keys=Keys(b"k" * 32),
    )

    config = folder / "warmline.toml"
    key = f'key_file = "{folder / "key"}"\n' if database else ""
    config.write_text(f'database = "{named}"\n{key}{toml}')
    settings = load(config=config, environ={})
    web.settings = settings
    web.alerts = Alerts(
        engine,
        settings,
        Keys(b"k" * 32),
        clock,
        environ=environ or {},
        guard=Guard(settings.webhook_private_hosts, lookup=lambda host, port: [PUBLIC]),
        on_attempt=telemetry.delivered,
    )
    web.alerts.prepare()
    web.importing = Importing(
        engine,
        clock,
        Identity(Keys(b"k" * 32)),
        Uploads(folder / "uploads", settings.import_bytes),
        changed=hub.reset_soon,
    )
    telemetry.watch_alerts(web.firing)

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
