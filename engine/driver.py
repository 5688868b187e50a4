"""Runs turns: what a request is, over which wire it goes, and what is done when one fails.

The driver and its parts are the only files of the engine, beside the transports, that await:
``over_socket`` and ``over_http`` send, ``relay`` hands on what comes over the ``wires``. How a turn
ends (``endings``) and what is kept of it (``keeper``) never waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from engine import kept
from engine.aside import aside
from engine.chain import Anchor, known
from engine.endings import Endings
from engine.errors import NotKept, UnreadableRequest
from engine.keeper import Keeper
from engine.model import ColdCause, Kind, Reason, TurnFacts
from engine.outcome import Answer, Ended, OverHttp, lost, name_of
from engine.over_http import HttpSide
from engine.over_socket import SocketSide
from engine.relay import Relay
from engine.request import Request, split
from engine.sessions import Bounds, Sessions
from engine.shadow import Shadow
from engine.stream import Fold
from engine.transports.base import Clock, Connection, HttpTransport, WebSocketTransport
from engine.turn import Call, Event, Turn, Upstream, is_understood, kind_of

__all__ = ["Answer", "Call", "Driver", "Event", "Upstream"]

_log = logging.getLogger("warmline.engine")


class Driver:
    """One per process. ``on_turn`` gets the facts of every turn, exactly once."""

    def __init__(
        self,
        *,
        websocket: WebSocketTransport,
        http: HttpTransport,
        clock: Clock,
        new_id: Callable[[str], str],
        key: bytes,
        on_turn: Callable[[TurnFacts], None],
        bounds: Bounds | None = None,
    ) -> None:
        self._clock, self._new_id = clock, new_id
        self._keeper = Keeper(
            clock=clock, new_id=new_id, key=key, close=self._close_later, bounds=bounds or Bounds()
        )
        self._endings = Endings(
            keeper=self._keeper, clock=clock, new_id=new_id, key=key, on_turn=on_turn
        )
        self._relay = Relay(keeper=self._keeper, endings=self._endings, clock=clock)
        self._socket = SocketSide(
            transport=websocket, keeper=self._keeper, relay=self._relay, clock=clock, new_id=new_id
        )
        self._http = HttpSide(
            transport=http,
            keeper=self._keeper,
            relay=self._relay,
            endings=self._endings,
            clock=clock,
            new_id=new_id,
        )
        self._shadow = Shadow(keeper=self._keeper, clock=clock, new_id=new_id)
        self._closing: set[asyncio.Task[None]] = set()

    async def read(
        self, body: bytes, *, tenant: str, upstream: str, session: str | None
    ) -> Request | None:
        """A body in its parts, for the ``Call`` of its turn; None where it has to go as it is.

        What it repeats of a body of the session is not read again. A wrong session costs time and
        changes nothing else. A large body is read in a thread.
        """
        bodies = known(self.sessions.anchors((tenant, upstream, session)))
        try:
            return await aside(len(body), lambda: split(body, bodies))
        except UnreadableRequest:
            return None
        except Exception as error:  # a fault here; the turn is read anew
            _log.error("a body could not be read ahead: %s", name_of(error))
            return None

    async def run(self, call: Call) -> Answer:
        """Run a turn up to its first event, or its complete answer. Never raises for upstreams."""
        turn = self._begin(call)
        self._endings.begin(turn)
        try:
            return await self._answer(turn)
        except Ended as end:
            return self._endings.finish(turn, end)
        except NotKept:
            return self._endings.finish(turn, self._keeper.not_kept(turn))
        except asyncio.CancelledError:
            turn.gone = True
            self._keeper.abandon(turn, ColdCause.AFTER_CANCEL)
            self._endings.emit(turn)
            raise
        except Exception as error:  # an internal fault must not be the client's
            _log.error("internal error in turn %s: %s", call.turn_id, name_of(error))
            return await self._let_through(turn)

    def client_left(self, turn_id: str) -> None:
        """The client of this turn is gone: drain what is under way, within the policy's bound."""
        turn = self._endings.active.get(turn_id)
        if turn is not None:
            self._relay.client_left(turn)

    def socket_closed(self, socket: str) -> None:
        """A client WebSocket ended: its leases end, its chains live on."""
        for turn in list(self._endings.active.values()):
            if turn.call.socket == socket:
                self._relay.client_left(turn)
        self.sessions.release(socket)
        if all(turn.call.socket != socket for turn in self._endings.active.values()):
            self._keeper.disown(socket)

    def reset_epoch(self, tenant: str, upstream: str, session: str, reason: str) -> None:
        """Make a session's anchors cold; its next turn goes in full and says why (DESIGN 4.6)."""
        for scope in self.sessions.scopes_of(tenant, upstream, session):
            self._keeper.close(self.sessions.reset(scope, session, reason))

    def cool(
        self, tenant: str, upstream: str, session: str, anchor: Anchor, cause: ColdCause
    ) -> None:
        """Let nothing continue an anchor; the connection that holds it as its latest is closed."""
        if (chain := anchor.chain) is None:
            anchor.cool(cause)  # the upstream keeps it, unless it is cold already
        else:
            for scope in self.sessions.scopes_of(tenant, upstream, session):
                self._keeper.retire(scope, chain, cause)

    def figures(self, upstream: str) -> tuple[int, int]:
        """For how many tenants the upstream keeps no responses; answers that can be continued."""
        return self._keeper.figures(upstream)

    @property
    def sessions(self) -> Sessions:
        """The registry of anchors and chains."""
        return self._keeper.sessions

    def _close_later(self, connection: Connection) -> None:
        task = asyncio.get_running_loop().create_task(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def aclose(self) -> None:
        """Close all upstream connections."""
        for connection in list(self._keeper.connections.values()):
            await connection.close()
        self._keeper.connections.clear()
        if self._closing:
            await asyncio.wait(self._closing)

    def _begin(self, call: Call) -> Turn:
        request: Request | None
        scope = self.sessions.scope((call.tenant, call.upstream.name, call.session))
        kind = Kind.GENERATION
        try:
            request = call.request
            if request is None:
                request = split(call.body, known(scope.anchors.values()))
            kind = kind_of(request, call)
        except UnreadableRequest:
            request = None
        except Exception as error:  # a fault here; what was known may have been its cause
            _log.error("turn %s could not be read: %s", call.turn_id, name_of(error))
            request = _read_alone(call.body)
        turn = Turn(call=call, request=request, scope=scope, kind=kind, session=call.session or "")
        if call.session:
            turn.resets = scope.epoch(call.session).resets
        return turn

    async def _answer(self, turn: Turn) -> Answer:
        call, request = turn.call, turn.request
        if call.upstream.policy.continuation == "observe":
            return await self._observe(turn)
        if (
            request is None
            or not is_understood(request)
            or call.upstream.policy.continuation == "off"
        ):
            return await self._pass_on(turn, Reason.CONTINUATION_OFF)
        if turn.kind is Kind.WARMUP and call.transport != "ws":
            return await self._pass_on(turn, Reason.CONTINUATION_OFF)
        covered = kept.covers(call.upstream.policy.models, request.text("model"))
        if not covered and call.transport != "ws":
            return await self._pass_on(turn, Reason.CONTINUATION_OFF)
        named = request.text("previous_response_id")
        if named is not None and not self._keeper.expand(turn, named):
            if call.transport == "ws" and call.upstream.policy.continuation == "websocket":
                return await self._anchored_over_websocket(turn, named)
            return await self._pass_on(turn, Reason.CLIENT_ANCHORED)
        if not covered:
            return await self._pass_on(turn, Reason.CONTINUATION_OFF)
        if call.epoch_reset:
            self._keeper.reset_by_call(turn)
        self._keeper.settle(turn)
        if call.upstream.policy.continuation == "store":
            return await self._http.run_kept(turn)
        blocked = self._keeper.health.blocked(
            call.tenant, call.upstream.name, self._clock.monotonic()
        )
        try:
            if blocked is not None:
                raise OverHttp(*blocked)
            return await self._socket.run(turn)
        except OverHttp as other:
            return await self._http.run(turn, other.reason, other.cause)

    async def _pass_on(self, turn: Turn, reason: Reason) -> Answer:
        """Over HTTP as it came. A reset that came with it is for the next turn that is decided."""
        if turn.call.epoch_reset and turn.session:
            self._keeper.reset_by_call(turn)
        return await self._http.unchanged(turn, reason)

    async def _observe(self, turn: Turn) -> Answer:
        """Change nothing; a client socket without a WebSocket upstream is served over HTTP."""
        call = turn.call
        try:
            self._shadow.cast(turn)
        except Exception as error:  # what could have been is not worth another wire
            _log.error("turn %s has no shadow: %s", call.turn_id, name_of(error))
            self._keeper.abandon(turn, ColdCause.AFTER_FAILED)
            turn.chain, turn.staged, turn.plan = None, None, None
            turn.reason, turn.fallback, turn.shadow = Reason.INTERNAL_ERROR, None, None
        turn.session = turn.session or self._new_id("anon-")
        now = self._clock.monotonic()
        blocked = self._keeper.health.blocked(call.tenant, call.upstream.name, now)
        try:
            if call.transport != "ws":
                return await self._http.run_observed(turn)
            if blocked is not None:
                raise OverHttp(*blocked)
            return await self._socket.run_observed(turn)
        except OverHttp as other:
            self._keeper.give_back(turn)
            turn.fallback, turn.connection = other.cause, None
            return await self._http.unchanged(turn, turn.reason or Reason.CONTINUATION_OFF)
        except Ended:
            self._keeper.abandon(turn, ColdCause.AFTER_FAILED)
            raise

    async def _anchored_over_websocket(self, turn: Turn, named: str) -> Answer:
        try:
            return await self._socket.run_anchored(turn, named)
        except OverHttp:
            return await self._pass_on(turn, Reason.CLIENT_ANCHORED)

    async def _let_through(self, turn: Turn) -> Answer:
        """An internal fault: the original request, in full, if nothing was answered yet."""
        self._keeper.abandon(turn, ColdCause.AFTER_FAILED)
        turn.extended, turn.staged, turn.fold, turn.chain = None, None, Fold(), None
        try:
            if turn.attempts:
                raise lost(turn, "internal_error")
            return await self._http.unchanged(turn, Reason.INTERNAL_ERROR)
        except Ended as end:
            return self._endings.finish(turn, end)
        except NotKept:
            return self._endings.finish(turn, self._keeper.not_kept(turn))
        except Exception as error:
            _log.error("turn %s could not be let through: %s", turn.call.turn_id, name_of(error))
            return self._endings.finish(turn, lost(turn, "internal_error"))


def _read_alone(body: bytes) -> Request | None:
    """The request, read without what is known; None where it is to go as it came."""
    with suppress(Exception):
        return split(body)
    return None
