"""Runs turns: acquires a connection, then decides, sends, relays, commits, and emits the facts.

The only file of the engine, beside the transports, that awaits. Between a decision and the moment
its chain is taken nothing is awaited; where something has to be (a ping, a connect), the decision
is made again or no longer rests on the connection (DESIGN 4.1).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from engine import decision, digests, failures, handshake
from engine.chain import Anchor, Chain, Epoch, stage
from engine.errors import (
    ConnectFailed,
    ConnectionLost,
    UnreadableRequest,
    UpgradeRejected,
    UpstreamError,
)
from engine.failures import Remedy
from engine.health import Health
from engine.model import ColdCause, EpochReason, Kind, Mode, Reason, TurnFacts
from engine.request import Request, own_copy, split
from engine.sessions import Bounds, Scope, Sessions
from engine.stream import Fold
from engine.transports.base import Clock, Connection, HttpTransport, WebSocketTransport
from engine.turn import (
    Call,
    Event,
    Turn,
    Upstream,
    error_body_code,
    expand,
    facts,
    is_understood,
    kind_of,
)
from engine.wires import HttpWire, SocketWire, Wire, end_to_end, is_stream, local_warmup

__all__ = ["Answer", "Call", "Driver", "Event", "Upstream"]

_log = logging.getLogger("warmline.engine")
_MAX_HELD_BACK = 64
"""How many private events may come before the response's first one; then all is relayed."""


@dataclass(slots=True, eq=False)
class Answer:
    """What the client is answered. Iterate it if ``streamed``, else ``body`` is complete.

    ``frame`` is the provider's own error frame for a client WebSocket, to be relayed as it is.
    """

    turn_id: str
    mode: Mode | None
    reason: Reason | None
    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""
    frame: bytes | None = None
    events: AsyncIterator[Event] | None = None
    client_left: Callable[[], None] = lambda: None
    """Call it when the client has gone, and keep iterating: the driver drains within its bound."""

    @property
    def streamed(self) -> bool:
        return self.events is not None

    def __aiter__(self) -> AsyncIterator[Event]:
        assert self.events is not None
        return self.events


class _OverHttp(Exception):
    """The turn has to go over HTTP, for this reason."""

    def __init__(self, reason: Reason, cause: str | None) -> None:
        super().__init__(reason)
        self.reason, self.cause = reason, cause


class _Again(Exception):
    """The turn was provably not processed: once more, in full, on a fresh connection."""

    def __init__(self, cold: ColdCause, reason: Reason, cause: str | None) -> None:
        super().__init__(reason)
        self.cold, self.reason, self.cause = cold, reason, cause


class _Ended(Exception):
    """The turn ends here with an answer that is no stream."""

    def __init__(
        self,
        status: int,
        body: bytes,
        headers: list[tuple[str, str]] | None = None,
        frame: bytes | None = None,
    ) -> None:
        super().__init__(status)
        self.status, self.body, self.headers, self.frame = status, body, headers or [], frame


def _lost(turn: Turn, cause: str) -> _Ended:
    """The upstream was lost before anything was answered; what it did with the turn is unknown."""
    turn.error_code = cause
    timed_out = cause.endswith("timeout")
    message = "The upstream did not answer in time." if timed_out else "The upstream was lost."
    status = 504 if timed_out else 502
    return _Ended(status, failures.synthetic(status, cause, message))


def _name(error: BaseException) -> str:
    """What may be logged of an exception: its text may repeat what was sent."""
    return type(error).__name__


def _nested(event: Event) -> Event:
    """An error in the middle of a stream, for a client socket: flatter ones hang Codex."""
    failure = failures.read(event.data)
    return event if failure.has_status else Event(failure.frame())


async def _chained(first: Event | None, rest: AsyncIterator[Event]) -> AsyncIterator[Event]:
    if first is not None:
        yield first
    async for event in rest:
        yield event


class _Decision(NamedTuple):
    """A plan, and the session that the turn belongs to by it."""

    plan: decision.Plan
    session: str


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
        self._websocket, self._http, self._clock = websocket, http, clock
        self._new_id, self._key, self._on_turn = new_id, key, on_turn
        self.sessions = Sessions(bounds or Bounds())
        self._health = Health()
        self._connections: dict[str, Connection] = {}
        self._active: dict[str, Turn] = {}
        self._timers: dict[str, asyncio.Timeout] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def run(self, call: Call) -> Answer:
        """Run a turn up to its first event, or its complete answer. Never raises for upstreams."""
        turn = self._begin(call)
        self._active[call.turn_id] = turn
        try:
            return await self._answer(turn)
        except _Ended as end:
            return self._finish(turn, end)
        except asyncio.CancelledError:
            turn.gone = True
            self._abandon(turn, ColdCause.AFTER_CANCEL)
            self._emit(turn)
            raise
        except Exception as error:  # an internal fault must not be the client's
            _log.error("internal error in turn %s: %s", call.turn_id, _name(error))
            return await self._let_through(turn)

    def client_left(self, turn_id: str) -> None:
        """The client of this turn is gone: drain what is under way, within the policy's bound."""
        turn = self._active.get(turn_id)
        if turn is None or turn.gone or turn.fold.terminal is not None:
            return
        turn.gone = True
        turn.deadline = asyncio.get_running_loop().time() + turn.call.upstream.policy.drain_timeout
        timer = self._timers.get(turn_id)
        if timer is not None and (timer.when() or 0) > turn.deadline:
            with suppress(RuntimeError):  # it has just ended by itself
                timer.reschedule(turn.deadline)

    def socket_closed(self, socket: str) -> None:
        """A client WebSocket ended: its leases end, its chains live on."""
        self.sessions.release(socket)

    def reset_epoch(self, tenant: str, upstream: str, session: str, reason: str) -> None:
        """Make a session's anchors cold; its next turn goes in full and says why (DESIGN 4.6)."""
        scope = self.sessions.scope((tenant, upstream, session))
        self._close(self.sessions.reset(scope, session, reason))

    async def aclose(self) -> None:
        """Close all upstream connections."""
        for connection in list(self._connections.values()):
            await connection.close()
        self._connections.clear()
        if self._closing:
            await asyncio.wait(self._closing)

    # --- what the turn is ---------------------------------------------------------------------

    def _begin(self, call: Call) -> Turn:
        request: Request | None
        try:
            request = split(call.body)
        except UnreadableRequest:
            request = None
        scope = self.sessions.scope((call.tenant, call.upstream.name, call.session))
        turn = Turn(call=call, request=request, scope=scope, session=call.session or "")
        if request is not None:
            turn.kind = kind_of(request, call)
        return turn

    async def _answer(self, turn: Turn) -> Answer:
        call, request = turn.call, turn.request
        if (
            request is None
            or not is_understood(request)
            or call.upstream.policy.continuation == "off"
        ):
            return await self._unchanged(turn, Reason.CONTINUATION_OFF)
        if turn.kind is Kind.WARMUP and call.transport != "ws":
            return await self._unchanged(turn, Reason.CONTINUATION_OFF)
        named = request.text("previous_response_id")
        if named is not None and not self._expand(turn, named):
            if call.transport == "ws":
                return await self._client_anchored(turn, named)
            return await self._unchanged(turn, Reason.CLIENT_ANCHORED)
        if call.epoch_reset:
            name = turn.session or self._decide(turn, turn.scope.epoch("")).session
            self._close(self.sessions.reset(turn.scope, name, call.epoch_reset))
        self._settle(turn)
        blocked = self._health.blocked(call.tenant, call.upstream.name, self._clock.monotonic())
        try:
            if blocked is not None:
                raise _OverHttp(*blocked)
            return await self._over_websocket(turn)
        except _OverHttp as other:
            return await self._over_http(turn, other.reason, other.cause)

    def _expand(self, turn: Turn, named: str) -> bool:
        """Expand a request that names an anchor of ours; False where it is to go as it is."""
        found = self.sessions.find(named)
        if found is None:
            return False
        (tenant, upstream, _), anchor = found
        if tenant != turn.call.tenant:
            # Another tenant's id does not exist, as far as this tenant can tell.
            turn.refused = True
            raise _Ended(400, failures.not_found(named))
        if upstream != turn.call.upstream.name or anchor.stored or anchor.opaque:
            return False
        turn.request = expand(turn.understood, anchor)
        turn.anchored = True
        if turn.call.session is None:
            turn.session = anchor.session
        return True

    def _decide(self, turn: Turn, epoch: Epoch) -> _Decision:
        plan = decision.decide(
            list(turn.scope.anchors.values()),
            turn.understood,
            turn.call.upstream.policy,
            epoch,
            decision.Asker(turn.call.socket, self._handshake(turn)[1], self._key),
        )
        session = turn.call.session or (plan.compared.session if plan.compared else turn.session)
        return _Decision(plan, session or self._new_id("anon-"))

    def _handshake(self, turn: Turn) -> tuple[tuple[tuple[str, str], ...], bytes]:
        call = turn.call
        headers = handshake.handshake(call.headers)
        return headers, handshake.identity(call.tenant, call.upstream.name, headers, self._key)

    def _settle(self, turn: Turn) -> None:
        """Decide, after taking note of what ended meanwhile; fix session, epoch and reason."""
        now, policy = self._clock.monotonic(), turn.call.upstream.policy
        for chain in list(turn.scope.chains.values()):
            connection = self._connections.get(chain.connection)
            if chain.state.value != "idle":
                continue
            if connection is None or connection.closed:
                self._retire(turn.scope, chain, ColdCause.CLOSED)
            elif now - chain.opened >= policy.max_connection_age:
                session = chain.anchor.session if chain.anchor else turn.session
                turn.scope.epoch(session).reset(EpochReason.CONNECTION_AGE)
                self._retire(turn.scope, chain, ColdCause.EPOCH_RESET, EpochReason.CONNECTION_AGE)
        epoch = turn.scope.epoch(turn.session) if turn.session else Epoch()
        made = self._decide(turn, epoch)
        turn.plan, turn.session = made.plan, made.session
        turn.resets = turn.scope.resets
        turn.epoch = turn.scope.epoch(turn.session).next_turn()
        turn.reason, turn.fallback = made.plan.reason, made.plan.fallback

    # --- over a WebSocket ---------------------------------------------------------------------

    async def _over_websocket(self, turn: Turn) -> Answer:
        again: _Again | None = None
        while True:
            try:
                await self._acquire(turn, fresh=again is not None)
                if again is not None:
                    turn.fallback = again.cause
                    if turn.plan is not None and turn.plan.candidates:
                        turn.reason = again.reason
                return await self._send(turn)
            except _Again as failed:
                self._abandon(turn, failed.cold)
                if again is not None or turn.gone:
                    raise _lost(turn, failed.cause or "connection_lost") from failed
                again = failed
                turn.fold = Fold()

    async def _acquire(self, turn: Turn, *, fresh: bool) -> None:
        """Take a chain: the best candidate that still lives, else one of the turn's own."""
        policy = turn.call.upstream.policy
        turn.extended = None
        while not fresh and turn.plan is not None and turn.plan.candidates:
            chain = turn.plan.candidates[0]
            idle = self._clock.monotonic() - chain.last_used
            chain.stage(self._clock.monotonic())
            connection = self._connections[chain.connection]
            alive = idle <= policy.ping_idle_after or await connection.ping(policy.ping_timeout)
            if alive and not connection.closed and chain.anchor is not None:
                turn.chain, turn.extended = chain, chain.anchor
                break
            self._retire(turn.scope, chain, ColdCause.CLOSED)
            self._settle(turn)
        if turn.extended is None:
            await self._open(turn)
        turn.staged = stage(turn.understood.items, own_copy(turn.understood.fields), turn.extended)
        turn.queue_ms = turn.since(self._clock.monotonic()) - (turn.connect_ms or 0.0)

    async def _open(self, turn: Turn) -> None:
        """A chain of the turn's own, on a fresh connection. One retry where nothing was sent."""
        call, policy = turn.call, turn.call.upstream.policy
        room = self.sessions.make_room()
        if room is None:
            raise _OverHttp(Reason.WS_UNAVAILABLE, "no_connection_free")
        self._close(room)
        headers, identity = self._handshake(turn)
        began = self._clock.monotonic()
        connection: Connection | None = None
        for last in (False, True):
            try:
                connection = await self._websocket.connect(
                    call.upstream.ws_url, headers, policy.connect_timeout
                )
                break
            except UpgradeRejected as error:
                self._upgrade_rejected(turn, error, last=last)
            except ConnectFailed as error:
                self._lost_one(turn)
                if last:
                    raise _OverHttp(Reason.WS_UNAVAILABLE, "connect_failed") from error
        assert connection is not None
        now = self._clock.monotonic()
        turn.connect_ms = (turn.connect_ms or 0.0) + (now - began) * 1000
        chain = Chain(
            id=self._new_id("ch_"),
            connection=self._new_id("conn_"),
            handshake=identity,
            opened=now,
            last_used=now,
        )
        self._connections[chain.connection] = connection
        turn.scope.chains[chain.id] = chain
        turn.chain = chain

    def _upgrade_rejected(self, turn: Turn, error: UpgradeRejected, *, last: bool) -> None:
        """426, 403, 404 …: HTTP, sticky. 401 and 429 are the client's. 5xx: once more."""
        call = turn.call
        if error.status in (401, 429):
            turn.fold.error = {"code": error_body_code(error.body)}
            raise _Ended(error.status, error.body, end_to_end(error.headers)) from error
        if error.status >= 500:
            self._lost_one(turn)
            if last:
                raise _OverHttp(Reason.WS_UNAVAILABLE, f"upgrade_{error.status}") from error
            return
        cause = f"upgrade_{error.status}"
        policy, now = call.upstream.policy, self._clock.monotonic()
        self._health.rejected(call.tenant, call.upstream.name, cause, policy, now)
        raise _OverHttp(Reason.WS_REJECTED, cause) from error

    def _lost_one(self, turn: Turn) -> None:
        call = turn.call
        self._health.lost(
            call.tenant, call.upstream.name, call.upstream.policy, self._clock.monotonic()
        )

    async def _send(self, turn: Turn) -> Answer:
        request, chain, extended = turn.understood, turn.chain, turn.extended
        assert chain is not None
        connection = self._connections[chain.connection]
        proven = 0 if extended is None else len(extended.items)
        whole = extended is None and not turn.anchored
        frame = request.frame(
            None if whole else request.items[proven:],
            None if extended is None else extended.response_id,
            keep_stream=turn.call.transport == "ws",
            client_metadata=self._client_metadata(turn),
        )
        if len(frame) > turn.call.upstream.policy.max_frame_bytes:
            self._give_back(turn)
            raise _OverHttp(Reason.PAYLOAD_TOO_LARGE, "frame_size")
        if turn.gone:
            self._give_back(turn)
            raise _Ended(499, b"")
        turn.mode = Mode.WS_FULL if extended is None else Mode.WS_INCREMENTAL
        turn.items_sent = len(request.items) - proven
        turn.previous_response_id = None if extended is None else extended.response_id
        return await self._exchange(turn, connection, frame)

    async def _exchange(self, turn: Turn, connection: Connection, frame: bytes) -> Answer:
        """Send the frame and wait for the response's first event."""
        turn.attempts += 1
        try:
            await connection.send(frame)
        except ConnectionLost as error:
            turn.attempts -= 1
            self._lost_one(turn)
            if error.code == 1009:
                raise _OverHttp(Reason.PAYLOAD_TOO_LARGE, "closed_1009") from error
            raise _Again(ColdCause.CLOSED, Reason.CONNECTION_LOST, "closed") from error
        turn.bytes_sent += len(frame)
        wire = SocketWire(connection)
        held_back = await self._first(turn, wire, continued=turn.extended is not None)
        return await self._respond(turn, wire, held_back, 200, [])

    async def _first(self, turn: Turn, wire: Wire, *, continued: bool) -> list[Event]:
        """The events up to the response's first; a failure before it may be sent again."""
        policy, held_back = turn.call.upstream.policy, []
        while True:
            try:
                event = await self._next(turn, wire, policy.first_event_timeout)
            except ConnectionLost as error:
                self._lost_one(turn)
                if error.code == 1009:
                    self._abandon(turn, ColdCause.CLOSED)
                    raise _OverHttp(Reason.PAYLOAD_TOO_LARGE, "closed_1009") from error
                if policy.retry_ambiguous:
                    raise _Again(ColdCause.CLOSED, Reason.CONNECTION_LOST, "closed") from error
                self._abandon(turn, ColdCause.CLOSED)
                raise _lost(turn, "connection_lost") from error
            except TimeoutError as error:
                self._abandon(turn, ColdCause.AFTER_TIMEOUT)
                raise _lost(turn, "first_event_timeout") from error
            if turn.first_event_ms is None:
                turn.first_event_ms = turn.since(self._clock.monotonic())
            kind = turn.fold.feed(event.data)
            held_back.append(event)
            if kind in ("error", "response.failed") and not turn.fold.has_output:
                self._judge(turn, event.data, kind, continued=continued)
                return held_back
            if turn.fold.has_started or len(held_back) >= _MAX_HELD_BACK:
                return held_back

    def _judge(self, turn: Turn, data: bytes, kind: str, *, continued: bool) -> None:
        """A failure before any output: send again, or answer it as the error that it is."""
        failure = failures.read(data)
        remedy = failure.remedy(continued=continued)
        if remedy is Remedy.NOT_FOUND:
            raise _Again(ColdCause.REJECTED, Reason.PREVIOUS_RESPONSE_NOT_FOUND, None)
        if remedy is Remedy.LIMIT_REACHED and turn.attempts < 2:
            raise _Again(ColdCause.LIMIT_REACHED, Reason.CONNECTION_LOST, "limit_reached")
        if remedy is Remedy.SERVER_ERROR and turn.attempts < 2:
            raise _Again(ColdCause.AFTER_FAILED, Reason.CONNECTION_LOST, "server_error")
        if kind == "error":
            self._abandon(turn, ColdCause.AFTER_FAILED)
            headers = [("retry-after", failure.retry_after)] if failure.retry_after else []
            shaped = failure.has_status and b'"error"' in data
            raise _Ended(failure.status, failure.body, headers, data if shaped else failure.frame())

    def _client_metadata(self, turn: Turn) -> bytes | None:
        raw = turn.understood.fields.get("client_metadata")
        state = turn.scope.turn_states.get(turn.call.turn_group or "")
        return handshake.client_metadata(
            None if raw is None else bytes(raw), turn.call.headers, state
        )

    # --- over HTTP ----------------------------------------------------------------------------

    async def _over_http(self, turn: Turn, reason: Reason, cause: str | None) -> Answer:
        """The full input in a POST; a warm-up is answered here, it must not generate."""
        request, call = turn.understood, turn.call
        turn.reason, turn.fallback = reason, cause
        turn.chain, turn.extended, turn.fold = None, None, Fold()
        turn.staged = stage(request.items, own_copy(request.fields), None)
        turn.previous_response_id = None
        if turn.kind is Kind.WARMUP:
            wire = local_warmup(self._new_id("resp_"), request.text("model"))
            return await self._respond(turn, wire, [], 200, [])
        turn.items_sent = len(request.items)
        stream = True if call.transport == "ws" else None
        if call.transport == "ws" or turn.anchored:
            items = request.items if turn.anchored else None
            return await self._post(turn, request.post(items, None, stream=stream))
        return await self._post(turn, call.body)

    async def _unchanged(self, turn: Turn, reason: Reason) -> Answer:
        """As the client sent it, over HTTP: what the engine does not understand is not touched."""
        request, call = turn.request, turn.call
        turn.reason = reason
        named = request.text("previous_response_id") if request else None
        turn.previous_response_id = named
        turn.items_sent = len(request.items) if request else None
        turn.session = turn.session or self._new_id("anon-")
        if request is not None and call.transport == "ws":
            return await self._post(turn, request.post(None, named, stream=True))
        return await self._post(turn, call.body)

    async def _client_anchored(self, turn: Turn, named: str) -> Answer:
        """A frame that hangs on an id which is not ours: the provider alone knows its baseline."""
        turn.reason = Reason.CLIENT_ANCHORED
        turn.session = turn.session or self._new_id("anon-")
        found = self.sessions.find(named)
        anchor = found[1] if found is not None else None
        chain = anchor.chain if anchor is not None else None
        connection = self._connections.get(chain.connection) if chain is not None else None
        _, identity = self._handshake(turn)
        usable = connection is not None and not connection.closed
        try:
            if chain is not None and usable and chain.free_for(turn.call.socket, identity):
                chain.stage(self._clock.monotonic())
                turn.chain = chain
            else:
                await self._open(turn)
        except _OverHttp:
            return await self._unchanged(turn, Reason.CLIENT_ANCHORED)
        assert turn.chain is not None
        turn.mode, turn.previous_response_id = Mode.WS_INCREMENTAL, named
        turn.items_sent = len(turn.understood.items)
        frame = turn.understood.frame(
            None, named, keep_stream=True, client_metadata=self._client_metadata(turn)
        )
        try:
            return await self._exchange(turn, self._connections[turn.chain.connection], frame)
        except _Again as failed:
            # Without its anchor the frame would mean something else: it is never sent again.
            self._abandon(turn, failed.cold)
            raise _lost(turn, failed.cause or "connection_lost") from failed
        except _OverHttp:
            return await self._unchanged(turn, Reason.CLIENT_ANCHORED)

    async def _let_through(self, turn: Turn) -> Answer:
        """An internal fault: the original request, in full, if nothing was answered yet."""
        self._abandon(turn, ColdCause.AFTER_FAILED)
        turn.extended, turn.staged, turn.fold, turn.chain = None, None, Fold(), None
        try:
            if turn.attempts:
                raise _lost(turn, "internal_error")
            return await self._unchanged(turn, Reason.INTERNAL_ERROR)
        except _Ended as end:
            return self._finish(turn, end)
        except Exception as error:
            _log.error("turn %s could not be let through: %s", turn.call.turn_id, _name(error))
            return self._finish(turn, _lost(turn, "internal_error"))

    async def _post(self, turn: Turn, body: bytes) -> Answer:
        call, policy = turn.call, turn.call.upstream.policy
        named = turn.previous_response_id is not None
        turn.mode = Mode.HTTP_INCREMENTAL if named else Mode.HTTP_FULL
        turn.attempts += 1
        headers = handshake.post_headers(call.headers, turn.request, socket=call.transport == "ws")
        wants_stream = call.transport != "http"
        turn.queue_ms = turn.since(self._clock.monotonic()) - (turn.connect_ms or 0.0)
        try:
            patience = policy.first_event_timeout if wants_stream else policy.answer_timeout
            async with asyncio.timeout(patience) as timer:
                self._timers[call.turn_id] = timer
                answer = await self._http.post(
                    call.upstream.http_url, headers, body, policy.connect_timeout
                )
        except ConnectFailed as error:
            raise _lost(turn, f"connect_{error.cause}") from error
        except ConnectionLost as error:
            raise _lost(turn, "connection_lost") from error
        except TimeoutError as error:
            raise _lost(turn, "first_event_timeout") from error
        turn.bytes_sent += len(body)
        turn.http_status = answer.status
        passed = end_to_end(answer.headers)
        wire = HttpWire(answer)
        if answer.status == 200 and wants_stream and is_stream(answer.headers):
            return await self._respond(turn, wire, [], 200, passed)
        try:
            whole = await self._next_all(turn, wire)
        except (ConnectionLost, TimeoutError) as error:
            raise _lost(turn, "connection_lost") from error
        if answer.status != 200:
            turn.error_code = error_body_code(whole) or f"http_{answer.status}"
            raise _Ended(answer.status, whole, passed)
        turn.first_event_ms = turn.since(self._clock.monotonic())
        turn.fold.feed_response(whole)
        self._conclude(turn)
        return self._plain(turn, 200, whole, passed)

    # --- relaying -----------------------------------------------------------------------------

    async def _respond(
        self,
        turn: Turn,
        wire: Wire,
        held_back: list[Event],
        status: int,
        headers: list[tuple[str, str]],
    ) -> Answer:
        """Stream the events, or gather them for a client that wants one JSON answer."""
        events = self._relay(turn, wire, held_back)
        if turn.call.transport != "http":
            first = await anext(events, None)
            answer = self._plain(turn, status, b"", headers)
            answer.events = _chained(first, events)
            answer.client_left = lambda: self.client_left(turn.call.turn_id)
            return answer
        last = Event(b"")
        async for event in events:
            last = event
        body = turn.fold.complete_response()
        if body is not None and turn.lost is None:
            return self._plain(turn, 200, body, [("content-type", "application/json")])
        failure = failures.read(last.data)
        return self._plain(turn, 502 if turn.lost else failure.status, failure.body, [])

    async def _relay(self, turn: Turn, wire: Wire, held_back: list[Event]) -> AsyncIterator[Event]:
        """All events as received. The turn is concluded before its terminal event is handed out."""
        idle = turn.call.upstream.policy.idle_timeout
        try:
            for event in held_back:
                self._note(turn)
                yield event
            while turn.fold.terminal is None:
                try:
                    event = await self._next(turn, wire, idle)
                except (UpstreamError, TimeoutError) as error:
                    yield self._broken_off(turn, error)
                    return
                if event.data:
                    kind = turn.fold.feed(event.data)
                    self._note(turn)
                    if kind == "error" and turn.call.transport == "ws":
                        event = _nested(event)
                yield event
            async for event in wire.rest():
                yield event
        finally:
            if not turn.ended:
                turn.gone = turn.gone or turn.lost is None
                self._abandon(turn, ColdCause.AFTER_CANCEL)
                self._emit(turn)
            await wire.close()

    def _note(self, turn: Turn) -> None:
        fold = turn.fold
        if turn.first_event_ms is None:
            turn.first_event_ms = turn.since(self._clock.monotonic())
        if turn.ttft_ms is None and fold.has_output:
            turn.ttft_ms = turn.since(self._clock.monotonic())
        if fold.turn_state is not None and turn.call.turn_group:
            turn.scope.turn_states[turn.call.turn_group] = fold.turn_state
        if fold.terminal is not None and not turn.ended:
            self._conclude(turn)

    def _broken_off(self, turn: Turn, error: Exception) -> Event:
        """The one ``response.failed`` that tells a client its stream was lost."""
        timed_out = isinstance(error, TimeoutError)
        turn.lost = "idle_timeout" if timed_out else "connection_lost"
        if not turn.gone and turn.chain is not None:
            self._lost_one(turn)
        cold = ColdCause.AFTER_TIMEOUT if timed_out else ColdCause.CLOSED
        self._abandon(turn, ColdCause.AFTER_CANCEL if turn.gone else cold)
        self._emit(turn)
        return Event(
            failures.failed_event(
                turn.fold.response_id, "server_error", "The upstream connection was lost."
            )
        )

    async def _next(self, turn: Turn, wire: Wire, within: float) -> Event:
        loop = asyncio.get_running_loop()
        when = loop.time() + within
        if turn.deadline is not None:
            when = min(when, turn.deadline)
        async with asyncio.timeout_at(when) as timer:
            self._timers[turn.call.turn_id] = timer
            return await wire.next()

    async def _next_all(self, turn: Turn, wire: HttpWire) -> bytes:
        async with asyncio.timeout(turn.call.upstream.policy.idle_timeout) as timer:
            self._timers[turn.call.turn_id] = timer
            try:
                return await wire.whole()
            finally:
                await wire.close()

    # --- how it ends --------------------------------------------------------------------------

    def _conclude(self, turn: Turn) -> None:
        """A terminal event was seen: commit, or cool; then the facts. Nothing is relayed before."""
        fold, call = turn.fold, turn.call
        turn.ended = True
        try:
            if fold.commits:
                self._commit(turn)
                if turn.chain is not None:
                    self._health.succeeded(call.tenant, call.upstream.name)
            else:
                self._abandon(turn, ColdCause.AFTER_FAILED)
        except Exception as error:  # the answer is the client's whatever happens here
            _log.error("turn %s left no anchor: %s", call.turn_id, _name(error))
            self._abandon(turn, ColdCause.AFTER_FAILED)
        self._emit(turn)

    def _commit(self, turn: Turn) -> None:
        call, scope, chain = turn.call, turn.scope, turn.chain
        now, policy = self._clock.monotonic(), call.upstream.policy
        anchor = self._anchor(turn)
        cold = self._flaw(turn)
        if chain is not None and (anchor is None or cold is not None):
            # The connection's latest response is one that nothing may hang on.
            self._retire(scope, chain, cold or ColdCause.SUPERSEDED)
        elif chain is not None:
            if chain.anchor is not None:
                self.sessions.superseded(chain.anchor.size)
            chain.commit(anchor, now)
            chain.leased_by = call.socket
        if anchor is not None:
            if chain is None or cold is not None:
                anchor.cool(cold or ColdCause.HTTP)
            self.sessions.add(scope, anchor)
        if turn.kind is Kind.COMPACTION:
            scope.epoch(turn.session).reset(EpochReason.COMPACTION)
        elif turn.kind is Kind.GENERATION and not (anchor is not None and anchor.opaque):
            full = scope.epoch(turn.session).commit(policy.epoch_turns)
            if full:
                self._close(self.sessions.reset(scope, turn.session, EpochReason.TURN_COUNT))
        if turn.resets != scope.resets and anchor is not None and anchor.chain is not None:
            self._retire(scope, anchor.chain, ColdCause.EPOCH_RESET, EpochReason.MANUAL)
        self._close(self.sessions.trim(scope))

    def _anchor(self, turn: Turn) -> Anchor | None:
        """What the turn leaves; None for compactions and for baselines that nobody knows."""
        fold, staged = turn.fold, turn.staged
        if turn.kind is Kind.COMPACTION:
            return None
        opaque = staged is None
        if opaque and turn.chain is None:
            return None
        baseline, digest = (
            ((), digests.EMPTY) if staged is None else staged.baseline(fold.outputs, self._key)
        )
        store = turn.understood.value("store")
        return Anchor(
            id=self._new_id("an_"),
            response_id=fold.response_id or "",
            session=turn.session,
            fields={} if staged is None else staged.fields,
            items=baseline,
            digest=digest,
            epoch=turn.epoch[0] if turn.epoch else 1,
            born=self._clock.monotonic(),
            size=sum(len(memoryview(item.held)) for item in baseline),
            warmup=turn.kind is Kind.WARMUP,
            stored=store is not False and turn.mode is not None,
            opaque=opaque,
        )

    def _flaw(self, turn: Turn) -> ColdCause | None:
        """Why the answer cannot be continued although it was one."""
        fold = turn.fold
        if not fold.response_id:
            return ColdCause.MISSING_RESPONSE_ID
        if fold.lacks_items:
            return ColdCause.MISSING_OUTPUT_ITEMS
        return ColdCause.OUTPUT_CONFLICT if fold.conflicts else None

    def _abandon(self, turn: Turn, cause: ColdCause) -> None:
        """The turn's chain ends with it: nobody can tell what the connection holds."""
        if turn.chain is not None and turn.chain.id in turn.scope.chains:
            self._retire(turn.scope, turn.chain, cause)

    def _give_back(self, turn: Turn) -> None:
        """Nothing was sent: the chain is as it was; one without an anchor is of no use."""
        chain, turn.chain = turn.chain, None
        if chain is not None and chain.anchor is None:
            self._retire(turn.scope, chain, ColdCause.CLOSED)
        elif chain is not None:
            chain.release()

    def _retire(
        self, scope: Scope, chain: Chain, cause: ColdCause, reset_reason: str | None = None
    ) -> None:
        chain.cool(cause, reset_reason)
        scope.chains.pop(chain.id, None)
        self._close([chain])

    def _close(self, chains: list[Chain]) -> None:
        for chain in chains:
            connection = self._connections.pop(chain.connection, None)
            if connection is not None:
                task = asyncio.get_running_loop().create_task(connection.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    def _emit(self, turn: Turn) -> None:
        turn.ended = True
        if self._active.pop(turn.call.turn_id, None) is None:
            return
        self._timers.pop(turn.call.turn_id, None)
        try:
            self._on_turn(
                facts(
                    turn,
                    key=self._key,
                    ended_at=self._clock.now(),
                    ended_mono=self._clock.monotonic(),
                )
            )
        except Exception as error:  # the ledger must never fail a turn
            _log.error("facts of turn %s lost: %s", turn.call.turn_id, _name(error))

    def _finish(self, turn: Turn, end: _Ended) -> Answer:
        """An answer that is no stream: an error, or a refusal."""
        turn.session = turn.session or self._new_id("anon-")
        turn.http_status = end.status
        if turn.error_code is None and turn.fold.error is None:
            turn.error_code = error_body_code(end.body)
        self._emit(turn)
        answer = self._plain(turn, end.status, end.body, end.headers)
        answer.frame = end.frame
        return answer

    def _plain(
        self, turn: Turn, status: int, body: bytes, headers: list[tuple[str, str]]
    ) -> Answer:
        return Answer(turn.call.turn_id, turn.mode, turn.reason, status, headers, body)
