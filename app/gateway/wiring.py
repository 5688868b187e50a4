"""The gateway with its engine and transports, made from the settings, and their end in order."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from app.clock import Clock
from app.gateway import redaction
from app.gateway.access import HostPolicy
from app.gateway.asgi import Gateway
from app.gateway.handover import SharedSockets
from app.gateway.upstreams import Upstreams
from app.keys import Keys
from app.settings import DEFAULT_UPSTREAM, Settings
from engine import fingerprint
from engine.driver import Driver, Upstream
from engine.model import Evidence, TurnFacts
from engine.sessions import Bounds
from engine.transports.http import Http
from engine.transports.websocket import WebSockets


@dataclass(frozen=True, slots=True)
class Wired:
    gateway: Gateway
    driver: Driver
    http: Http

    async def aclose(self) -> None:
        """End what clients are still being served, then the upstream connections."""
        await self.gateway.aclose()
        await self.driver.aclose()
        await self.http.aclose()


_DIGITS = 24


def ids() -> Callable[[str], str]:
    """Makes ids, ``turn_4f…``: unique over all gateways that write into one ledger.

    A prefix may bring its own separator, as ``anon-`` does. Made anew in each process, and for one
    thread: the system is asked for much chance at once, since each question takes its time.
    """
    drawn = _drawn()

    def new_id(prefix: str) -> str:
        separator = "" if prefix.endswith(("_", "-")) else "_"
        return f"{prefix}{separator}{next(drawn)}"

    return new_id


def _drawn() -> Iterator[str]:
    while True:
        digits = secrets.token_hex(_DIGITS * 128)
        for at in range(0, len(digits), _DIGITS):
            yield digits[at : at + _DIGITS]


def build_gateway(
    settings: Settings,
    keys: Keys,
    clock: Clock,
    *,
    on_turn: Callable[[TurnFacts], None],
    on_pass: Callable[[str, int], None],
    on_begin: Callable[[TurnFacts], None] = lambda _facts: None,
) -> Wired:
    """``on_begin`` gets what is known of every turn at its start, ``on_turn`` the facts of each at
    its end, ``on_pass`` upstream and status of every request that is passed through. Call it on the
    event loop that serves."""
    redaction.install()
    key, new_id = _engine_key(keys), ids()
    http, websocket = Http(), SharedSockets(WebSockets())
    driver = Driver(
        websocket=websocket,
        http=http,
        clock=clock,
        new_id=new_id,
        key=key,
        on_turn=on_turn,
        bounds=Bounds(
            sessions=settings.max_sessions,
            chains_per_session=settings.chains_per_session,
            connections=settings.max_connections,
            bytes=settings.baseline_bytes,
        ),
    )
    gateway = Gateway(
        driver=driver,
        engine_key=key,
        upstreams=upstreams(settings),
        keys=keys,
        clock=clock,
        new_id=new_id,
        on_turn=on_turn,
        hosts=HostPolicy.for_bind(settings.host, settings.allowed_hosts),
        websocket=websocket,
        gateway_token=settings.gateway_token,
        max_body_bytes=settings.max_body_bytes,
        on_pass=on_pass,
        on_begin=on_begin,
    )
    return Wired(gateway, driver, http)


def fingerprints(keys: Keys) -> Callable[[Evidence], str]:
    """How the gateway that has these keys tells breaks of one cause."""
    return partial(fingerprint.of, _engine_key(keys))


def _engine_key(keys: Keys) -> bytes:
    return keys.derive("engine")


def upstreams(settings: Settings) -> Upstreams:
    """The upstreams of the settings, as the engine takes them."""
    named = {
        name: Upstream(name=name, base_url=upstream.base_url.rstrip("/"), policy=upstream.policy)
        for name, upstream in settings.upstreams.items()
    }
    return Upstreams(named[DEFAULT_UPSTREAM], named)
