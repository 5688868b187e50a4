"""What the gateway's routes share: the engine, the rules of access, and the makers of ids."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp

from app.clock import Clock
from app.gateway.access import HostPolicy
from app.gateway.identity import Identity
from app.gateway.upstreams import Upstreams
from app.keys import Keys
from app.tasks import Tasks, describe
from engine.driver import Driver
from engine.model import EpochReason, TurnFacts
from engine.transports.base import WebSocketTransport
from engine.turn import session_key

logger = logging.getLogger(__name__)
MIB = 1024 * 1024


@dataclass(slots=True)
class Context:
    driver: Driver
    engine_key: bytes
    """The key of the driver's digests."""
    upstreams: Upstreams
    keys: Keys
    clock: Clock
    new_id: Callable[[str], str]
    """Makes an id from a prefix."""
    on_turn: Callable[[TurnFacts], None]
    """For the turns that the engine never sees: refused ones, compactions, those of a tunnel."""
    hosts: HostPolicy
    websocket: WebSocketTransport
    """Opens the upstream connections of tunnels."""
    gateway_token: str | None = None
    max_body_bytes: int = 64 * MIB
    on_pass: Callable[[str, int], None] = lambda _upstream, _status: None
    """Told of each request that was passed through: upstream and status (metrics only)."""
    on_begin: Callable[[TurnFacts], None] = lambda _facts: None
    """For all turns: what is known of one when its request has come in."""
    tasks: Tasks = field(default_factory=Tasks)
    _http: aiohttp.ClientSession | None = None

    def http(self) -> aiohttp.ClientSession:
        """The client for what is passed through. It adds, decodes and keeps nothing by itself."""
        if self._http is None or self._http.closed:
            self._http = aiohttp.ClientSession(
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                connector=aiohttp.TCPConnector(limit=0),
            )
        return self._http

    def record(self, facts: TurnFacts) -> None:
        """Hand a row to the ledger, which must never fail a turn."""
        try:
            self.on_turn(facts)
        except Exception as error:
            logger.error("facts of turn %s lost: %s", facts.turn_id, describe(error))

    def begin(self, facts: TurnFacts) -> None:
        """Tell the ledger of a turn that is under way; as ``record``."""
        try:
            self.on_begin(facts)
        except Exception as error:
            logger.error("turn %s is not in the journal: %s", facts.turn_id, describe(error))

    def session_key(self, identity: Identity, upstream: str, session: str) -> str:
        """As the engine makes it, for the rows that it never sees."""
        return session_key(self.engine_key, identity.tenant, upstream, session)

    def compacted(self, identity: Identity, upstream: str) -> None:
        """Tell the engine that a session's history was compacted beside it."""
        if identity.session is not None:
            scope = self.driver.sessions.scope((identity.tenant, upstream, identity.session))
            scope.epoch(identity.session).reset(EpochReason.COMPACTION)

    async def aclose(self) -> None:
        await self.tasks.aclose()
        if self._http is not None:
            await self._http.close()
