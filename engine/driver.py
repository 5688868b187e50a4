"""Runs turns: acquires a connection, then decides, sends, relays, commits, and emits the facts.

The only file of the engine, beside the transports, that awaits. Between a decision and the moment
its chain is taken nothing is awaited; where something has to be (a ping, a connect), the decision
is made again or no longer rests on the connection (DESIGN 4.1).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

from engine import failures, handshake
from engine.chain import Chain, stage
from engine.errors import (
    ConnectFailed,
    ConnectionLost,
    UnreadableRequest,
    UpgradeRejected,
    UpstreamError,
)
from engine.failures import Remedy
from engine.keeper import Keeper
from engine.model import ColdCause, Kind, Mode, Reason, TurnFacts
from engine.outcome import Again, Answer, Ended, OverHttp, chained, lost, name_of, nested
from engine.request import Request, own_copy, split
from engine.sessions import Bounds, Sessions
from engine.stream import Fold, ended_response
from engine.transports.base import Clock, Connection, HttpTransport, WebSocketTransport
from engine.turn import (
    Call,
    Event,
    Turn,
    Upstream,
    error_body_code,
    facts,
    is_understood,
    kind_of,
)
from engine.wires import HttpWire, SocketWire, Wire, end_to_end, is_stream, local_warmup

__all__ = ["Answer", "Call", "Driver", "Event", "Upstream"]

_log = logging.getLogger("warmline.engine")
_MAX_HELD_BACK = 64
"""How many private events may come before the response's first one; then all is relayed."""


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
        self._keeper = Keeper(
            clock=clock, new_id=new_id, key=key, close=self._close_later, bounds=bounds or Bounds()
        )
        self._active: dict[str, Turn] = {}
        self._opening = 0
        self._timers: dict[str, asyncio.Timeout] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def run(self, call: Call) -> Answer:
        """Run a turn up to its first event, or its complete answer. Never raises for upstreams."""
        turn = self._begin(call)
        self._active[call.turn_id] = turn
        turn.scope.turns += 1
        try:
            return await self._answer(turn)
        except Ended as end:
            return self._finish(turn, end)
        except asyncio.CancelledError:
            turn.gone = True
            self._keeper.abandon(turn, ColdCause.AFTER_CANCEL)
            self._emit(turn)
            raise
        except Exception as error:  # an internal fault must not be the client's
            _log.error("internal error in turn %s: %s", call.turn_id, name_of(error))
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
        for turn in list(self._active.values()):
            if turn.call.socket == socket:
                self.client_left(turn.call.turn_id)
        self.sessions.release(socket)

    def reset_epoch(self, tenant: str, upstream: str, session: str, reason: str) -> None:
        """Make a session's anchors cold; its next turn goes in full and says why (DESIGN 4.6)."""
        scope = self.sessions.scope_of(tenant, upstream, session)
        self._keeper.close(self.sessions.reset(scope, session, reason))

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

    # --- what the turn is ---------------------------------------------------------------------

    def _begin(self, call: Call) -> Turn:
        request: Request | None
        try:
            request = split(call.body)
        except UnreadableRequest:
            request = None
        scope = self.sessions.scope((call.tenant, call.upstream.name, call.session))
        turn = Turn(call=call, request=request, scope=scope, session=call.session or "")
        turn.resets = scope.resets
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
        if named is not None and not self._keeper.expand(turn, named):
            if call.transport == "ws":
                return await self._client_anchored(turn, named)
            return await self._unchanged(turn, Reason.CLIENT_ANCHORED)
        if call.epoch_reset:
            name = turn.session or self._keeper.decide(turn, turn.scope.epoch("")).session
            self._keeper.close(self.sessions.reset(turn.scope, name, call.epoch_reset))
        self._keeper.settle(turn)
        blocked = self._keeper.health.blocked(
            call.tenant, call.upstream.name, self._clock.monotonic()
        )
        try:
            if blocked is not None:
                raise OverHttp(*blocked)
            return await self._over_websocket(turn)
        except OverHttp as other:
            return await self._over_http(turn, other.reason, other.cause)

    # --- over a WebSocket ---------------------------------------------------------------------

    async def _over_websocket(self, turn: Turn) -> Answer:
        again: Again | None = None
        while True:
            try:
                await self._acquire(turn, fresh=again is not None)
                if again is not None:
                    turn.fallback = again.cause
                    if turn.plan is not None and turn.plan.candidates:
                        turn.reason = again.reason
                return await self._send(turn)
            except Again as failed:
                self._keeper.abandon(turn, failed.cold)
                if again is not None or turn.gone:
                    raise lost(turn, failed.cause or "connection_lost") from failed
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
            turn.chain = chain
            connection = self._keeper.connections[chain.connection]
            alive = idle <= policy.ping_idle_after or await connection.ping(policy.ping_timeout)
            if alive and not connection.closed and chain.is_warm:
                turn.extended = chain.anchor
                break
            turn.chain = None
            self._keeper.retire(turn.scope, chain, ColdCause.CLOSED)
            self._keeper.settle(turn)
        if turn.extended is None:
            await self._open(turn)
        turn.staged = stage(turn.understood.items, own_copy(turn.understood.fields), turn.extended)
        turn.queue_ms = turn.since(self._clock.monotonic()) - (turn.connect_ms or 0.0)

    async def _open(self, turn: Turn) -> None:
        """A chain of the turn's own, on a fresh connection. One retry where nothing was sent."""
        call, policy = turn.call, turn.call.upstream.policy
        room = self.sessions.make_room(self._opening)
        if room is None:
            raise OverHttp(Reason.WS_UNAVAILABLE, "no_connection_free")
        self._keeper.close(room)
        headers, identity = self._keeper.handshake(turn)
        began = self._clock.monotonic()
        connection: Connection | None = None
        for last in (False, True):
            self._opening += 1
            try:
                connection = await self._websocket.connect(
                    call.upstream.ws_url, headers, policy.connect_timeout
                )
                break
            except UpgradeRejected as error:
                self._upgrade_rejected(turn, error, last=last)
            except ConnectFailed as error:
                self._keeper.lost_one(turn)
                if last:
                    raise OverHttp(Reason.WS_UNAVAILABLE, "connect_failed") from error
            finally:
                self._opening -= 1
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
        self._keeper.connections[chain.connection] = connection
        turn.scope.chains[chain.id] = chain
        turn.chain = chain

    def _upgrade_rejected(self, turn: Turn, error: UpgradeRejected, *, last: bool) -> None:
        """426, 403, 404 …: HTTP, sticky. 401 and 429 are the client's. 5xx: once more."""
        call = turn.call
        if error.status in (401, 429):
            turn.fold.error = {"code": error_body_code(error.body)}
            raise Ended(error.status, error.body, end_to_end(error.headers)) from error
        if error.status >= 500:
            self._keeper.lost_one(turn)
            if last:
                raise OverHttp(Reason.WS_UNAVAILABLE, f"upgrade_{error.status}") from error
            return
        cause = f"upgrade_{error.status}"
        policy, now = call.upstream.policy, self._clock.monotonic()
        self._keeper.health.rejected(call.tenant, call.upstream.name, cause, policy, now)
        raise OverHttp(Reason.WS_REJECTED, cause) from error

    async def _send(self, turn: Turn) -> Answer:
        request, chain, extended = turn.understood, turn.chain, turn.extended
        assert chain is not None
        connection = self._keeper.connections[chain.connection]
        proven = 0 if extended is None else len(extended.items)
        whole = extended is None and not turn.anchored
        frame = request.frame(
            None if whole else request.items[proven:],
            None if extended is None else extended.response_id,
            keep_stream=turn.call.transport == "ws",
            client_metadata=self._client_metadata(turn),
        )
        if len(frame) > turn.call.upstream.policy.max_frame_bytes:
            self._keeper.give_back(turn)
            raise OverHttp(Reason.PAYLOAD_TOO_LARGE, "frame_size")
        if turn.gone:
            self._keeper.give_back(turn)
            raise Ended(499, b"")
        turn.mode = Mode.WS_FULL if extended is None else Mode.WS_INCREMENTAL
        turn.items_sent = len(request.items) - proven
        turn.previous_response_id = None if extended is None else extended.response_id
        return await self._exchange(turn, connection, frame)

    async def _exchange(self, turn: Turn, connection: Connection, frame: bytes) -> Answer:
        """Send the frame and wait for the response's first event."""
        policy = turn.call.upstream.policy
        turn.attempts += 1
        try:
            await connection.send(frame)
        except ConnectionLost as error:
            self._keeper.lost_one(turn)
            if error.sent and error.code != 1009 and not policy.retry_ambiguous:
                self._keeper.abandon(turn, ColdCause.CLOSED)
                raise lost(turn, "connection_lost") from error
            turn.attempts -= 1
            if error.code == 1009:
                self._keeper.abandon(turn, ColdCause.CLOSED)
                raise OverHttp(Reason.PAYLOAD_TOO_LARGE, "closed_1009") from error
            raise Again(ColdCause.CLOSED, Reason.CONNECTION_LOST, "closed") from error
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
                self._keeper.lost_one(turn)
                if error.code == 1009:
                    self._keeper.abandon(turn, ColdCause.CLOSED)
                    raise OverHttp(Reason.PAYLOAD_TOO_LARGE, "closed_1009") from error
                if policy.retry_ambiguous:
                    raise Again(ColdCause.CLOSED, Reason.CONNECTION_LOST, "closed") from error
                self._keeper.abandon(turn, ColdCause.CLOSED)
                raise lost(turn, "connection_lost") from error
            except TimeoutError as error:
                self._keeper.abandon(turn, ColdCause.AFTER_TIMEOUT)
                raise lost(turn, "first_event_timeout") from error
            if not turn.fold.has_started and _ends_the_former(turn, event):
                continue
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
        # Without a staged transcript nobody knows the full input: there is nothing to send again.
        remedy = Remedy.RELAY if turn.staged is None else failure.remedy(continued=continued)
        if remedy is Remedy.NOT_FOUND:
            raise Again(ColdCause.REJECTED, Reason.PREVIOUS_RESPONSE_NOT_FOUND, None)
        if remedy is Remedy.LIMIT_REACHED and turn.attempts < 2:
            raise Again(ColdCause.LIMIT_REACHED, Reason.CONNECTION_LOST, "limit_reached")
        if remedy is Remedy.SERVER_ERROR and kind == "error" and turn.attempts < 2:
            raise Again(ColdCause.AFTER_FAILED, Reason.CONNECTION_LOST, "server_error")
        if kind == "error":
            self._keeper.abandon(turn, ColdCause.AFTER_FAILED)
            headers = [("retry-after", failure.retry_after)] if failure.retry_after else []
            shaped = failure.has_status and b'"error"' in data
            raise Ended(failure.status, failure.body, headers, data if shaped else failure.frame())

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
        turn.chain, turn.extended, turn.fold = None, None, Fold()
        if request is not None and call.transport == "ws" and turn.kind is Kind.WARMUP:
            if named is None:
                turn.staged = stage(request.items, own_copy(request.fields), None)
            wire = local_warmup(self._new_id("resp_"), request.text("model"))
            return await self._respond(turn, wire, [], 200, [])
        if request is not None and (call.transport == "ws" or turn.anchored):
            # A delta is never sent without its anchor: an expanded request stays expanded.
            items = request.items if turn.anchored else None
            stream = True if call.transport == "ws" else None
            return await self._post(turn, request.post(items, named, stream=stream))
        return await self._post(turn, call.body)

    async def _client_anchored(self, turn: Turn, named: str) -> Answer:
        """A frame that hangs on an id which is not ours: the provider alone knows its baseline."""
        turn.reason = Reason.CLIENT_ANCHORED
        turn.session = turn.session or self._new_id("anon-")
        found = self.sessions.find(named, turn.scope.key)
        anchor = found[1] if found is not None else None
        chain = anchor.chain if anchor is not None else None
        connection = self._keeper.connections.get(chain.connection) if chain is not None else None
        _, identity = self._keeper.handshake(turn)
        usable = connection is not None and not connection.closed
        try:
            if chain is not None and usable and chain.free_for(turn.call.socket, identity):
                chain.stage(self._clock.monotonic())
                self.sessions.move(chain, turn.scope)
                turn.chain = chain
            else:
                await self._open(turn)
        except OverHttp:
            return await self._unchanged(turn, Reason.CLIENT_ANCHORED)
        assert turn.chain is not None
        turn.mode, turn.previous_response_id = Mode.WS_INCREMENTAL, named
        turn.items_sent = len(turn.understood.items)
        frame = turn.understood.frame(
            None, named, keep_stream=True, client_metadata=self._client_metadata(turn)
        )
        try:
            return await self._exchange(
                turn, self._keeper.connections[turn.chain.connection], frame
            )
        except Again as failed:
            # Without its anchor the frame would mean something else: it is never sent again.
            self._keeper.abandon(turn, failed.cold)
            raise lost(turn, failed.cause or "connection_lost") from failed
        except OverHttp:
            return await self._unchanged(turn, Reason.CLIENT_ANCHORED)

    async def _let_through(self, turn: Turn) -> Answer:
        """An internal fault: the original request, in full, if nothing was answered yet."""
        self._keeper.abandon(turn, ColdCause.AFTER_FAILED)
        turn.extended, turn.staged, turn.fold, turn.chain = None, None, Fold(), None
        try:
            if turn.attempts:
                raise lost(turn, "internal_error")
            return await self._unchanged(turn, Reason.INTERNAL_ERROR)
        except Ended as end:
            return self._finish(turn, end)
        except Exception as error:
            _log.error("turn %s could not be let through: %s", turn.call.turn_id, name_of(error))
            return self._finish(turn, lost(turn, "internal_error"))

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
            raise lost(turn, f"connect_{error.cause}") from error
        except ConnectionLost as error:
            raise lost(turn, "connection_lost") from error
        except TimeoutError as error:
            raise lost(turn, "first_event_timeout") from error
        turn.bytes_sent += len(body)
        turn.http_status = answer.status
        passed = end_to_end(answer.headers)
        wire = HttpWire(answer)
        if answer.status == 200 and wants_stream and is_stream(answer.headers):
            return await self._respond(turn, wire, [], 200, passed)
        try:
            whole = await self._next_all(turn, wire)
        except (ConnectionLost, TimeoutError) as error:
            raise lost(turn, "connection_lost") from error
        if answer.status != 200:
            turn.error_code = error_body_code(whole) or f"http_{answer.status}"
            raise Ended(answer.status, whole, passed)
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
            answer.events = chained(first, events)
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

    async def _relay(
        self, turn: Turn, wire: Wire, held_back: list[Event]
    ) -> AsyncGenerator[Event, None]:
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
                        event = nested(event)
                yield event
            async for event in wire.rest():
                yield event
        finally:
            if not turn.ended:
                turn.gone = turn.gone or turn.lost is None
                self._keeper.abandon(turn, ColdCause.AFTER_CANCEL)
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
            self._keeper.lost_one(turn)
        cold = ColdCause.AFTER_TIMEOUT if timed_out else ColdCause.CLOSED
        self._keeper.abandon(turn, ColdCause.AFTER_CANCEL if turn.gone else cold)
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
                self._keeper.commit(turn)
                if turn.chain is not None:
                    self._keeper.health.succeeded(call.tenant, call.upstream.name)
            else:
                self._keeper.abandon(turn, ColdCause.AFTER_FAILED)
        except Exception as error:  # the answer is the client's whatever happens here
            _log.error("turn %s left no anchor: %s", call.turn_id, name_of(error))
            self._keeper.abandon(turn, ColdCause.AFTER_FAILED)
        self._emit(turn)

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
            _log.error("facts of turn %s lost: %s", turn.call.turn_id, name_of(error))
        turn.scope.turns -= 1
        self._keeper.close(self.sessions.trim(turn.scope))

    def _finish(self, turn: Turn, end: Ended) -> Answer:
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


def _ends_the_former(turn: Turn, event: Event) -> bool:
    """A late end of the response that the connection answered before: it is not this turn's."""
    former = None if turn.chain is None else turn.chain.anchor
    return former is not None and former.response_id == ended_response(event.data)
