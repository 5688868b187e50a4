"""The service: wiring only.

At the start: the key, the ledger, its writer, the live hub, alerts, the engine with the gateway.
At the end the other way round: the gateway stops serving before the writer takes its last row.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from fastapi import FastAPI
from sqlalchemy import Engine

from app import keys as key_files
from app.alerts.service import Alerts
from app.clock import Clock, SystemClock
from app.errors import AppError
from app.gateway.access import HostPolicy
from app.gateway.asgi import Gateway
from app.gateway.wiring import build_gateway
from app.importers.identity import Identity
from app.importers.service import Importing
from app.importers.uploads import Uploads
from app.judging import Judge
from app.keys import Keys
from app.ledger import database
from app.ledger.announcing import Announcer
from app.ledger.facts import to_begun, to_row
from app.ledger.journal.journal import Journal
from app.ledger.listening import Listener
from app.ledger.probe import Probe
from app.ledger.rows import TurnRow
from app.ledger.writer import LedgerWriter
from app.merging import Merger
from app.paths import STATIC
from app.pricing import price_of, sellers
from app.pruning import Pruner
from app.settings import Settings
from app.tasks import Tasks
from app.telemetry import Telemetry
from app.version import VERSION
from app.web.access import Tickets
from app.web.answers import Asgi, Receive, Scope, Send, refuse
from app.web.assets import Assets
from app.web.live import Hub
from app.web.site import build
from app.web.web import Received, Web
from engine.model import TurnFacts

CLOSE_SECONDS = 10.0
"""How long the last rows may take to be written."""
NOT_READY = AppError("not_ready", "Warmline is starting or stopping.", "Try again.", status=503)


@dataclass
class Service:
    """What runs between start and end; ``app.state.service``."""

    settings: Settings
    clock: Clock
    web: Web
    keys: Keys | None = None
    writer: LedgerWriter | None = None
    gateway: Gateway | None = None
    sample_upstreams: frozenset[str] = frozenset()


def create_app(
    settings: Settings,
    *,
    clock: Clock | None = None,
    sample_upstreams: frozenset[str] = frozenset(),
    received: Received | None = None,
) -> FastAPI:
    """The whole service as one ASGI application. It starts and ends with its lifespan.

    ``sample_upstreams``: names of upstreams whose answers are made up; their turns are marked
    ``source = sample``. ``received``: what a receiver of webhooks in this process got, for the
    page. Starting raises ``AppError`` where the ledger or its key cannot be used.
    """
    service = _service(settings, clock or SystemClock())
    service.web.received = received
    service.sample_upstreams = sample_upstreams

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await _start(service, stack)
            yield

    app = build(
        service.web,
        HostPolicy.for_bind(settings.host, settings.allowed_hosts),
        lifespan=lifespan,
    )
    app.state.service = service
    # Ahead of all that stands around the pages: each layer is entered with every part of an answer.
    app.middleware_stack = GatewayFirst(app.build_middleware_stack(), service=service)
    return app


def _service(settings: Settings, clock: Clock) -> Service:
    web = Web(
        clock=clock,
        hub=Hub(clock),
        assets=Assets(STATIC),
        tickets=Tickets(settings.token, clock),
        telemetry=Telemetry(VERSION),
        settings=settings,
    )
    web.telemetry.watch_writer(lambda: web.writer_state and web.writer_state())
    web.telemetry.watch_alerts(web.firing)
    web.telemetry.watch_reading(lambda: web.reading and web.reading())
    service = Service(settings, clock, web)
    web.telemetry.watch_continuation(
        lambda: () if service.gateway is None else service.gateway.figures()
    )
    return service


async def _start(service: Service, stack: AsyncExitStack) -> None:
    """Open everything; what ``stack`` is given ends in reverse order."""
    settings, web = service.settings, service.web
    keys, engine = await asyncio.to_thread(_open_ledger, settings)
    service.keys = web.keys = keys
    stack.callback(engine.dispose)

    def written(rows: list[TurnRow]) -> None:
        web.hub.publish(rows)
        web.telemetry.observe(rows)
        merger.written(rows)

    merger = Merger(engine, changed=web.hub.reset_soon)
    web.hub.start()
    announcer = Announcer()
    journal = Journal(settings.journal_dir, limit=settings.journal_bytes)
    writer = service.writer = await asyncio.to_thread(
        LedgerWriter,
        engine,
        service.clock,
        on_written=written,
        within=announcer.announce,
        price=partial(price_of, upstreams=sellers(settings)),
        journal=journal,
    )
    stack.push_async_callback(asyncio.to_thread, writer.close, CLOSE_SECONDS)
    if engine.dialect.name == "postgresql":
        _listen(web.hub, engine, announcer, stack)
    probe = Probe(engine, service.clock)
    stack.push_async_callback(asyncio.to_thread, probe.close)
    probe.start()
    web.engine, web.writer_state, web.reading = engine, writer.state, probe.state
    alerts = Alerts(engine, settings, keys, service.clock, on_attempt=web.telemetry.delivered)
    stack.push_async_callback(alerts.aclose)
    await alerts.start()
    web.alerts = alerts
    stack.callback(_shut, web)
    pruner = Pruner(engine, settings, service.clock)
    stack.push_async_callback(pruner.aclose)
    pruner.start()
    judge = Judge(engine, service.clock, sellers(settings))
    stack.push_async_callback(judge.aclose)
    judge.start()
    stack.push_async_callback(merger.aclose)
    merger.start()
    importing = web.importing = await asyncio.to_thread(_importing, service, keys, engine)
    stack.push_async_callback(asyncio.to_thread, importing.close)

    recorder = _recorder(settings, keys, writer, service.sample_upstreams)
    wired = build_gateway(
        settings,
        keys,
        service.clock,
        on_turn=recorder.record,
        on_pass=web.telemetry.passed,
        on_begin=recorder.begin,
    )
    service.gateway = wired.gateway
    web.reset_epoch = wired.gateway.reset_epoch
    stack.push_async_callback(wired.aclose)
    stack.callback(_refuse_new, service)


def _listen(hub: Hub, engine: Engine, announcer: Announcer, stack: AsyncExitStack) -> None:
    """Show the rows that other processes write to this database as well."""
    listener = Listener(
        engine,
        announcer,
        on_rows=hub.publish,
        on_gap=hub.reset,
        wanted=lambda: len(hub) > 0,
    )
    tasks = Tasks()
    tasks.start(listener.run(), name="ledger-listener")
    stack.push_async_callback(tasks.aclose)


def _importing(service: Service, keys: Keys, engine: Engine) -> Importing:
    settings, hub = service.settings, service.web.hub
    journal = settings.journal_dir
    return Importing(
        engine,
        service.clock,
        Identity(keys, pseudonymize=settings.pseudonymize),
        Uploads(journal.with_name(f"{journal.name}-uploads"), settings.import_bytes),
        changed=hub.reset_soon,
    )


def _open_ledger(settings: Settings) -> tuple[Keys, Engine]:
    """The key first: with another key than the ledger's nothing may be written."""
    several = settings.database.startswith("postgresql")
    keys = (key_files.load if several else key_files.load_or_create)(settings.key_file)
    engine = database.prepare(settings.database)
    try:
        database.check_key(engine, keys)
    except BaseException:
        engine.dispose()
        raise
    return keys, engine


@dataclass(frozen=True, slots=True)
class _Recorder:
    """Hands turns to the writer, as rows with the names that the settings want."""

    writer: LedgerWriter
    samples: frozenset[str]
    pseudonymize: Callable[[str], str] | None

    def begin(self, facts: TurnFacts) -> None:
        self.writer.begin(
            to_begun(self._marked(facts), gateway_version=VERSION, pseudonymize=self.pseudonymize)
        )

    def record(self, facts: TurnFacts) -> None:
        self.writer.record(
            to_row(self._marked(facts), gateway_version=VERSION, pseudonymize=self.pseudonymize)
        )

    def _marked(self, facts: TurnFacts) -> TurnFacts:
        return replace(facts, source="sample") if facts.upstream in self.samples else facts


def _recorder(
    settings: Settings, keys: Keys, writer: LedgerWriter, samples: frozenset[str]
) -> _Recorder:
    return _Recorder(writer, samples, keys.pseudonym if settings.pseudonymize else None)


def _shut(web: Web) -> None:
    web.hub.close()
    web.engine, web.writer_state, web.reading, web.alerts = None, None, None, None
    web.importing = None


def _refuse_new(service: Service) -> None:
    service.gateway = service.web.reset_epoch = None


class GatewayFirst:
    """The gateway's paths go to the gateway, before anything of the dashboard sees them."""

    def __init__(self, app: Asgi, *, service: Service) -> None:
        self._app = app
        self._service = service

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if not Gateway.handles(scope):
            return self._app(scope, receive, send)
        if self._service.gateway is None:
            return refuse(scope, receive, send, NOT_READY)
        return self._service.gateway(scope, receive, send)
