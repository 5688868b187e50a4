"""``warmline demo``: provider, gateway, pages and sample agents in one process, until a signal.

Everything lies in a temporary directory that is removed at the end. Turns that the built-in
provider answers are marked ``source = sample``; real traffic under ``/u/openai/v1`` is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import click
import uvicorn

from app import keys, server
from app.clock import Clock, SystemClock
from app.demo import watch
from app.demo.agents import HTTP_ONLY, Agents
from app.demo.history import generate
from app.demo.provider.core import Limits, Provider
from app.demo.provider.faults import RefuseUpgrade
from app.demo.provider.ids import Ids
from app.demo.provider.latency import Latency
from app.demo.provider.server import serve
from app.demo.receiver import Receiver, receiving
from app.errors import AppError
from app.gateway.wiring import fingerprints
from app.ledger import database
from app.ledger.writer import write_rows
from app.settings import DEFAULT_UPSTREAM, Settings, load

OPENAI = "https://api.openai.com/v1"
SAMPLE_UPSTREAMS = frozenset({DEFAULT_UPSTREAM, HTTP_ONLY})
"""Upstreams that are the built-in provider: what they answer is made up."""
KEPT_RESPONSES = 500
"""The provider keeps so many transcripts: the demo may run for days."""
MAX_SESSIONS, MAX_CONNECTIONS = 256, 48
"""Rounds never end and each begins new sessions; both ends of a connection are open files here."""


Received = Callable[[], Sequence[Mapping[str, Any]]]


class MakeApp(Protocol):
    """``app.main.create_app``; given, because it stands above this layer."""

    def __call__(
        self,
        settings: Settings,
        *,
        clock: Clock,
        sample_upstreams: frozenset[str],
        received: Received,
    ) -> Any: ...


@dataclass
class Demo:
    url: str
    app: Any
    agents: Agents
    history_rows: int
    receiver: Receiver


@asynccontextmanager
async def running(
    create_app: MakeApp,
    *,
    port: int = 0,
    speed: float = 1.0,
    pace: float = 1.0,
    days: int = 3,
    clock: Clock | None = None,
    openai: str = OPENAI,
) -> AsyncIterator[Demo]:
    """Everything runs inside the block. ``speed`` scales the provider's delays, ``pace`` the
    agents' pauses and the window of the short alert rule. Raises ``AppError`` where the port is
    taken."""
    clock = clock or SystemClock()
    with (
        tempfile.TemporaryDirectory(prefix="warmline-demo-", ignore_cleanup_errors=True) as folder,
        _listen(port) as listener,
    ):
        bound = listener.getsockname()[1]
        url = f"http://127.0.0.1:{bound}"
        async with AsyncExitStack() as stack:
            default = await stack.enter_async_context(serve(_provider("demo", clock), speed=speed))
            plain = _provider("demo-http", clock)
            plain.faults.on_upgrade(RefuseUpgrade(426), times=None)
            http_only = await stack.enter_async_context(serve(plain, speed=speed))
            receiver = await stack.enter_async_context(receiving(clock))
            upstreams = {HTTP_ONLY: http_only.url, "openai": openai}
            settings = _settings(
                Path(folder), bound, default.url, upstreams, watch.tables(receiver, pace)
            )
            count = await asyncio.to_thread(_write_history, settings, clock, days)
            app = create_app(
                settings,
                clock=clock,
                sample_upstreams=SAMPLE_UPSTREAMS,
                received=receiver.received,
            )
            await stack.enter_async_context(_serving(app, settings, listener))
            agents = Agents(url, pace)
            await stack.enter_async_context(_in_background(agents.run()))
            yield Demo(url, app, agents, count, receiver)


def run(create_app: MakeApp, *, port: int) -> None:
    """Run until SIGINT or SIGTERM, then end cleanly."""
    server.configure_logging("warning")
    asyncio.run(_until_signal(create_app, port))


async def _until_signal(create_app: MakeApp, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    click.echo("Warmline demo: writing three days of sample history …")
    async with running(create_app, port=port) as demo:
        click.echo(greeting(demo))
        await stop.wait()
        click.echo("\nStopping …")
    click.echo("Stopped. The demo's database is removed.")


def greeting(demo: Demo) -> str:
    return f"""
  Dashboard   {demo.url}/
  Requests    {demo.url}/requests
  Alerts      {demo.url}/alerts

Sample agents are at work, and {demo.history_rows:,} turns of made-up history are in the ledger.
All of it is marked source = sample, and is removed when the demo ends. One agent breaks its own
prefix now and then: an alert fires within about a minute, and resolves a minute or two later. A
built-in receiver gets its webhooks, and Alerts shows what arrived.

Your own client through Warmline to api.openai.com (your credential is passed on, never kept):

  openai SDK  export OPENAI_BASE_URL={demo.url}/u/openai/v1

  Codex       in ~/.codex/config.toml:
                model_provider = "warmline"
                [model_providers.warmline]
                name = "Warmline"
                base_url = "{demo.url}/u/openai/v1"
                env_key = "OPENAI_API_KEY"
                wire_api = "responses"
                supports_websockets = true

Without an account, {demo.url}/v1 takes any key: its answers are made up, its rows are samples.

Ctrl-C ends it.
"""


def _provider(seed: str, clock: Clock) -> Provider:
    return Provider(
        now=clock.now,
        new_id=Ids(seed),
        latency=Latency(),
        limits=Limits(kept_responses=KEPT_RESPONSES),
    )


def _settings(
    folder: Path, port: int, default: str, upstreams: Mapping[str, str], alerts: str
) -> Settings:
    """From a file of its own: no setting of the user's reaches the demo."""
    config = folder / "warmline.toml"
    tables = "".join(f'[upstreams.{name}]\nbase_url = "{url}"\n' for name, url in upstreams.items())
    config.write_text(
        f'port = {port}\nupstream = "{default}"\ndatabase = "{folder / "demo.sqlite3"}"\n'
        f"max_sessions = {MAX_SESSIONS}\nmax_connections = {MAX_CONNECTIONS}\n{alerts}\n{tables}",
        "utf-8",
    )
    return load(config=config, environ={})


def _write_history(settings: Settings, clock: Clock, days: int) -> int:
    engine = database.prepare(settings.database)
    try:
        of_the_agents = fingerprints(keys.load_or_create(settings.key_file))
        return write_rows(engine, generate(clock.now(), days=days, fingerprint=of_the_agents))
    finally:
        engine.dispose()


@contextlib.contextmanager
def _listen(port: int) -> Iterator[socket.socket]:
    # Only where the protocol is named does asyncio send small frames without waiting for
    # acknowledgements; with WebSocket clients that is 40 ms a turn.
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise server.port_unusable(port, error) from None
        yield listener


class _Server(uvicorn.Server):
    """Signals are the demo's: it ends its agents first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def _serving(app: Any, settings: Settings, listener: socket.socket) -> AsyncIterator[None]:
    config = server.configure(server.PlainFailure(app), settings)
    config.timeout_graceful_shutdown = 2
    web = _Server(config)
    task = asyncio.ensure_future(web.serve(sockets=[listener]))
    try:
        while not web.started:
            if task.done():
                task.result()
                raise AppError("not_started", "The demo's service did not start.")
            await asyncio.sleep(0.01)
        yield
    finally:
        web.should_exit = True
        await task


@asynccontextmanager
async def _in_background(work: Any) -> AsyncIterator[None]:
    """Run ``work`` beside the block; ended with it."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
