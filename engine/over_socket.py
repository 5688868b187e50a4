"""Turns over an upstream WebSocket: a chain is taken or opened, the frame sent, the answer awaited.

Between a decision and the moment its chain is taken nothing is awaited; where something has to be
(a ping, a connect), the decision is made again or no longer rests on the connection (DESIGN 4.1).
Whatever has to go over HTTP instead is raised as ``OverHttp``.
"""

from __future__ import annotations

from collections.abc import Callable

from engine import closes, diagnosis, failures, handshake
from engine.chain import Chain, stage
from engine.errors import ConnectFailed, ConnectionLost, UpgradeRejected
from engine.failures import Remedy
from engine.keeper import Keeper
from engine.model import ColdCause, Mode, Reason
from engine.outcome import Again, Answer, Ended, OverHttp, left, lost, timed_out
from engine.relay import Relay
from engine.request import own_copy
from engine.stream import Fold, ended_response
from engine.transports.base import Clock, Connection, WebSocketTransport
from engine.turn import Event, Turn, error_body_code
from engine.wires import SocketWire, Wire, end_to_end

_MAX_HELD_BACK = 64
"""How many private events may come before the response's first one; then all is relayed."""


_CONNECT_GRACE = 1.0
"""Seconds that a transport gets to end by itself once its time to connect is over."""


class SocketSide:
    """The WebSocket half of the driver."""

    def __init__(
        self,
        *,
        transport: WebSocketTransport,
        keeper: Keeper,
        relay: Relay,
        clock: Clock,
        new_id: Callable[[str], str],
    ) -> None:
        self._websocket, self._keeper, self._relay = transport, keeper, relay
        self._clock, self._new_id = clock, new_id
        self._opening = 0

    async def run(self, turn: Turn) -> Answer:
        """Continue the best chain that lives, or go in full; once more where nothing was done."""
        again: Again | None = None
        while True:
            try:
                await self._acquire(turn, fresh=again is not None)
                return await self._send(turn)
            except Again as failed:
                self._keeper.abandon(turn, failed.cold)
                if again is not None or turn.gone:
                    raise lost(turn, failed.cause or "connection_lost") from failed
                again = failed
                turn.fold = Fold()
                # What is sent again may be refused at the door: that is no turn on this wire.
                turn.mode = turn.items_sent = turn.previous_response_id = None
                turn.fallback = again.cause
                if turn.plan is not None and turn.plan.candidates:
                    turn.reason = again.reason

    async def run_anchored(self, turn: Turn, named: str) -> Answer:
        """A frame that hangs on an id which is not ours: the provider alone knows its baseline."""
        turn.reason = Reason.CLIENT_ANCHORED
        turn.session = turn.session or self._new_id("anon-")
        found = self._keeper.sessions.find(named, turn.scope.key)
        anchor = found[1] if found is not None else None
        chain = anchor.chain if anchor is not None else None
        connection = self._keeper.connections.get(chain.connection) if chain is not None else None
        identity = self._keeper.sender(turn).identity
        usable = connection is not None and not connection.closed and _takes(chain, turn)
        if chain is not None and usable and chain.free_for(turn.call.socket, identity):
            chain.stage(self._clock.monotonic())
            self._keeper.sessions.move(chain, turn.scope)
            turn.chain = chain
        else:
            await self._open(turn)
        assert turn.chain is not None
        if turn.call.epoch_reset:  # not before: what the client goes on with stays its own
            self._keeper.reset_by_call(turn)
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

    async def run_observed(self, turn: Turn) -> Answer:
        """The client's own frame, on a connection that only its socket uses."""
        named, again = turn.previous_response_id, False
        while True:
            connection = self._keeper.owned(turn)
            if connection is None:
                turn.connection = None
                connection = await self._connect(turn)
                self._keeper.own(turn, connection)
            turn.queue_ms = turn.since(self._clock.monotonic()) - (turn.connect_ms or 0.0)
            turn.mode = Mode.WS_FULL if named is None else Mode.WS_INCREMENTAL
            try:
                return await self._exchange(turn, connection, turn.call.body)
            except Again as failed:
                if again:
                    raise lost(turn, failed.cause or "connection_lost") from failed
                again = True

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
            self._keeper.must_tell(turn)
            await self._open(turn)
        fields = own_copy(turn.understood.fields)
        turn.staged = stage(turn.understood.items, fields, turn.extended, policy.freeze)
        turn.queue_ms = turn.since(self._clock.monotonic()) - (turn.connect_ms or 0.0)

    async def _open(self, turn: Turn) -> None:
        """A chain of the turn's own, on a fresh connection. One retry where nothing was sent."""
        room = self._keeper.sessions.make_room(self._opening, len(self._keeper.connections))
        if room is None:
            raise OverHttp(Reason.WS_UNAVAILABLE, "no_connection_free")
        self._keeper.close(room)
        connection = await self._connect(turn)
        now = self._clock.monotonic()
        chain = Chain(
            id=self._new_id("ch_"),
            connection=self._new_id("conn_"),
            handshake=self._keeper.sender(turn).identity,
            opened=now,
            last_used=now,
            model=turn.understood.text("model"),
        )
        self._keeper.connections[chain.connection] = connection
        turn.scope.chains[chain.id] = chain
        turn.chain = chain

    async def _connect(self, turn: Turn) -> Connection:
        """A fresh connection for the turn."""
        call, policy = turn.call, turn.call.upstream.policy
        headers = self._keeper.sender(turn).opening
        began = self._clock.monotonic()
        connection: Connection | None = None
        for last in (False, True):  # pragma: no branch - the last attempt breaks or raises
            self._opening += 1
            try:
                async with self._relay.limit(turn, policy.connect_timeout + _CONNECT_GRACE):
                    connection = await self._websocket.connect(
                        call.upstream.ws_url, headers, policy.connect_timeout
                    )
                break
            except UpgradeRejected as error:
                self._upgrade_rejected(turn, error, last=last)
            except (ConnectFailed, TimeoutError) as error:
                if turn.gone:
                    raise left() from error
                self._keeper.lost_one(turn)
                if last:
                    raise OverHttp(Reason.WS_UNAVAILABLE, "connect_failed") from error
            finally:
                self._opening -= 1
        assert connection is not None
        if turn.gone:
            await connection.close()
            raise left()
        now = self._clock.monotonic()
        turn.connect_ms = (turn.connect_ms or 0.0) + (now - began) * 1000
        return connection

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
        chain, extended = turn.chain, turn.extended
        assert chain is not None
        request = self._keeper.diagnosis.ask(turn)
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
            raise left()
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
                raise self._too_large(turn) from error
            raise Again(ColdCause.CLOSED, Reason.CONNECTION_LOST, "closed") from error
        turn.bytes_sent += len(frame)
        await self._relay.look_ahead(turn, len(frame))
        wire = SocketWire(connection)
        held_back = await self._first(turn, wire, continued=turn.extended is not None)
        return await self._relay.respond(turn, wire, held_back, 200, [])

    async def _first(self, turn: Turn, wire: Wire, *, continued: bool) -> list[Event]:
        """The events up to the response's first; a failure before it may be sent again."""
        policy, held_back = turn.call.upstream.policy, []
        while True:
            try:
                event = await self._relay.next(turn, wire, policy.first_event_timeout)
            except ConnectionLost as error:
                if (refused := closes.refusal(error.code)) is not None:
                    self._keeper.abandon(turn, ColdCause.AFTER_FAILED)
                    raise Ended(refused.status, refused.body) from error
                self._keeper.lost_one(turn)
                if error.code == 1009:
                    raise self._too_large(turn) from error
                if policy.retry_ambiguous:
                    raise Again(ColdCause.CLOSED, Reason.CONNECTION_LOST, "closed") from error
                self._keeper.abandon(turn, ColdCause.CLOSED)
                raise lost(turn, "connection_lost") from error
            except TimeoutError as error:
                cold = ColdCause.AFTER_CANCEL if turn.gone else ColdCause.AFTER_TIMEOUT
                self._keeper.abandon(turn, cold)
                raise timed_out(turn, "first_event_timeout") from error
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

    def _too_large(self, turn: Turn) -> Exception:
        """Closed with 1009: once over HTTP, unless the turn was sent again already."""
        self._keeper.abandon(turn, ColdCause.CLOSED)
        if turn.attempts > 1:
            return lost(turn, "closed_1009")
        return OverHttp(Reason.PAYLOAD_TOO_LARGE, "closed_1009")

    def _judge(self, turn: Turn, data: bytes, kind: str, *, continued: bool) -> None:
        """A failure before any output: send again, or answer it as the error that it is."""
        failure = failures.read(data)
        # Without a staged transcript nobody knows the full input: there is nothing to send again.
        again = turn.staged is not None and not turn.observed
        if turn.asks and diagnosis.is_refusal(failure, continued=continued):
            self._keeper.diagnosis.refused(turn)
            raise Again(ColdCause.AFTER_FAILED, Reason.CONNECTION_LOST, diagnosis.REFUSED)
        remedy = failure.remedy(continued=continued) if again else Remedy.RELAY
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
            None if raw is None else bytes(raw), self._keeper.sender(turn).per_turn, state
        )


def _takes(chain: Chain | None, turn: Turn) -> bool:
    """Whether the chain's connection serves the turn's model."""
    asked = turn.understood.text("model")
    return chain is None or not turn.call.upstream.policy.one_model or chain.model == asked


def _ends_the_former(turn: Turn, event: Event) -> bool:
    """A late end of the response that the connection answered before: it is not this turn's."""
    former = None if turn.chain is None else turn.chain.anchor
    return former is not None and former.response_id == ended_response(event.data)
