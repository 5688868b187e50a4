"""Turns over HTTP: the full input in a POST, the client's own request as it came, or a delta.

A delta hangs on a response that the upstream keeps (``continuation = "store"``). What was rejected
goes again once, in full and as the client sent it.
"""

from __future__ import annotations

from collections.abc import Callable

from engine import diagnosis, failures, handshake, kept
from engine.chain import stage
from engine.endings import Endings
from engine.errors import ConnectFailed, ConnectionLost
from engine.failures import Remedy
from engine.health import ANCHOR_IGNORED
from engine.keeper import Keeper
from engine.model import ColdCause, Kind, Mode, Reason
from engine.outcome import Again, Answer, Ended, left, lost, nested, timed_out
from engine.relay import Relay
from engine.request import own_copy
from engine.stream import Fold
from engine.transports.base import Clock, HttpTransport
from engine.turn import Event, Turn, error_body_code
from engine.wires import HttpWire, end_to_end, is_stream, local_warmup

_MAX_HELD_BACK = 64
"""How many events may come before the response's first one, which names what it continues."""


class HttpSide:
    """The HTTP half of the driver."""

    def __init__(
        self,
        *,
        transport: HttpTransport,
        keeper: Keeper,
        relay: Relay,
        endings: Endings,
        clock: Clock,
        new_id: Callable[[str], str],
    ) -> None:
        self._http, self._keeper, self._relay, self._endings = transport, keeper, relay, endings
        self._clock, self._new_id = clock, new_id

    async def run(
        self, turn: Turn, reason: Reason, cause: str | None, *, keeps: bool = False
    ) -> Answer:
        """The full input in a POST; a warm-up is answered here, it must not generate.

        ``keeps``: the answer is continued if the upstream stores it unasked.
        """
        request, call = turn.understood, turn.call
        turn.reason, turn.fallback = reason, cause
        turn.chain, turn.extended, turn.fold = None, None, Fold()
        turn.kept_chain = self._new_id("ch_") if keeps else None
        turn.stores, turn.asks = keeps, False
        turn.staged = stage(request.items, own_copy(request.fields), None)
        turn.previous_response_id = None
        if turn.kind is Kind.WARMUP:
            wire = local_warmup(self._new_id("resp_"), request.text("model"))
            return await self._relay.respond(turn, wire, [], 200, [])
        turn.items_sent = len(request.items)
        stream = True if call.transport == "ws" else None
        if call.transport == "ws" or turn.anchored:
            items = request.items if turn.anchored else None
            return await self._post(turn, request.post(items, None, stream=stream))
        return await self._post(turn, call.body)

    async def run_kept(self, turn: Turn) -> Answer:
        """Hang on a response that the upstream keeps, or go in full and have the answer kept."""
        blocked = self._keeper.store_blocked(turn)
        if turn.kind is Kind.WARMUP:
            return await self.run(turn, Reason.CONTINUATION_OFF, None)
        if blocked is not None:
            return await self.run(turn, Reason.STORE_UNSUPPORTED, blocked)
        self._keeper.hang(turn)
        while True:
            try:
                return await self._post_kept(turn)
            except Again as failed:
                self._keeper.abandon(turn, failed.cold)
                refused = failed.cause == "refused"
                if failed.reason is Reason.STORE_UNSUPPORTED and not refused:
                    self._keeper.unsupported(turn, failed.cause or "")
                if turn.gone:
                    raise lost(turn, "connection_lost") from failed
                if failed.reason is Reason.STORE_UNSUPPORTED:
                    answer = await self.run(turn, failed.reason, failed.cause)
                    if refused:  # and storage was the cause, since without it all is well
                        self._keeper.unsupported(turn, "refused")
                    return answer
                if turn.attempts:
                    # Sent again once: with nothing of ours in it that could be refused, too.
                    return await self.run(turn, failed.reason, failed.cause, keeps=True)
                turn.reason, turn.fallback = failed.reason, failed.cause
                turn.extended, turn.fold = None, Fold()
                turn.kept_chain = self._new_id("ch_")
            except Ended as end:
                late = end.status == 504
                cold = ColdCause.AFTER_TIMEOUT if late else ColdCause.AFTER_FAILED
                # Refused is not processed: what the upstream keeps is as it was.
                self._keeper.abandon(turn, cold if end.status >= 500 else ColdCause.AFTER_CANCEL)
                raise

    async def _post_kept(self, turn: Turn) -> Answer:
        given, extended = turn.understood, turn.extended
        request = kept.storing(self._keeper.diagnosis.ask(turn))
        proven = 0 if extended is None else len(extended.items)
        freeze = turn.call.upstream.policy.freeze
        turn.staged = stage(given.items, own_copy(given.fields), extended, freeze)
        turn.previous_response_id = None if extended is None else extended.response_id
        turn.items_sent = len(given.items) - proven
        over_socket = turn.call.transport == "ws"
        if extended is None and not turn.anchored and not over_socket and request is given:
            return await self._post(turn, turn.call.body)
        whole = extended is None and not turn.anchored
        body = request.post(
            None if whole else request.items[proven:],
            turn.previous_response_id,
            stream=True if over_socket else None,
        )
        return await self._post(turn, body)

    async def run_observed(self, turn: Turn) -> Answer:
        """The client's own request, byte for byte."""
        return await self._post(turn, turn.call.body)

    async def unchanged(self, turn: Turn, reason: Reason) -> Answer:
        """As the client sent it, over HTTP: what the engine does not understand is not touched."""
        request, call = turn.request, turn.call
        turn.reason = reason
        named = request.text("previous_response_id") if request else None
        turn.previous_response_id = named
        turn.items_sent = len(request.items) if request else None
        turn.session = turn.session or self._new_id("anon-")
        turn.chain, turn.extended, turn.fold, turn.asks = None, None, Fold(), False
        if request is not None and call.transport == "ws" and turn.kind is Kind.WARMUP:
            if named is None:
                turn.staged = stage(request.items, own_copy(request.fields), None)
            wire = local_warmup(self._new_id("resp_"), request.text("model"))
            return await self._relay.respond(turn, wire, [], 200, [])
        if request is not None and (call.transport == "ws" or turn.anchored):
            # A delta is never sent without its anchor: an expanded request stays expanded.
            items = request.items if turn.anchored else None
            stream = True if call.transport == "ws" else None
            return await self._post(turn, request.post(items, named, stream=stream))
        return await self._post(turn, call.body)

    async def _post(self, turn: Turn, body: bytes) -> Answer:
        call, policy = turn.call, turn.call.upstream.policy
        if turn.gone:
            raise left()
        named = turn.previous_response_id is not None
        turn.mode = Mode.HTTP_INCREMENTAL if named else Mode.HTTP_FULL
        turn.attempts += 1
        headers = handshake.post_headers(call.headers, turn.request, socket=call.transport == "ws")
        wants_stream = call.transport != "http"
        turn.queue_ms = turn.since(self._clock.monotonic()) - (turn.connect_ms or 0.0)
        try:
            patience = policy.first_event_timeout if wants_stream else policy.answer_timeout
            async with self._relay.limit(turn, patience):
                answer = await self._http.post(
                    call.upstream.http_url, headers, body, policy.connect_timeout
                )
        except ConnectFailed as error:
            if turn.extended is not None:
                turn.attempts -= 1  # nothing was sent
                raise Again(ColdCause.CLOSED, Reason.CONNECTION_LOST, "closed") from error
            raise lost(turn, f"connect_{error.cause}") from error
        except ConnectionLost as error:
            if turn.extended is not None and policy.retry_ambiguous:
                raise Again(ColdCause.CLOSED, Reason.CONNECTION_LOST, "closed") from error
            raise lost(turn, "connection_lost") from error
        except TimeoutError as error:
            raise timed_out(turn, "first_event_timeout") from error
        turn.bytes_sent += len(body)
        try:
            await self._relay.look_ahead(turn, len(body))
        except BaseException:
            await answer.close()
            raise
        turn.http_status = answer.status
        passed = end_to_end(answer.headers)
        wire = HttpWire(answer)
        if answer.status == 200 and wants_stream and is_stream(answer.headers):
            held_back = [] if turn.extended is None else await self._first(turn, wire)
            return await self._relay.respond(turn, wire, held_back, 200, passed)
        try:
            whole = await self._relay.whole(turn, wire)
        except ConnectionLost as error:
            raise lost(turn, "connection_lost") from error
        except TimeoutError as error:
            raise timed_out(turn, "connection_lost") from error
        if answer.status != 200:
            self._judge(turn, answer.status, whole)
            turn.error_code = error_body_code(whole) or f"http_{answer.status}"
            raise Ended(answer.status, whole, passed)
        turn.first_event_ms = turn.since(self._clock.monotonic())
        turn.fold.feed_response(whole)
        if turn.extended is not None:
            self._verify(turn, whole, event=False)
        self._endings.conclude(turn)
        return self._endings.plain(turn, 200, whole, passed)

    def _judge(self, turn: Turn, status: int, body: bytes) -> None:
        """An error: send again with less, where what was added to the request is its cause."""
        continued = turn.extended is not None
        if turn.asks and diagnosis.is_refusal(failures.read(body), status, continued=continued):
            self._keeper.diagnosis.refused(turn)
            raise Again(ColdCause.AFTER_CANCEL, Reason.CONNECTION_LOST, diagnosis.REFUSED)
        if continued and failures.read(body).remedy(continued=True) is Remedy.NOT_FOUND:
            raise Again(ColdCause.REJECTED, Reason.PREVIOUS_RESPONSE_NOT_FOUND, None)
        asked = turn.asks_to_store and turn.understood.value("store") is not True
        if asked and kept.refuses_to_store(status, body):
            raise Again(ColdCause.AFTER_CANCEL, Reason.STORE_UNSUPPORTED, "refused")

    def _verify(self, turn: Turn, data: bytes, *, event: bool) -> None:
        """Nothing of the answer is handed out unless it continues what the delta hangs on."""
        if turn.fold.terminal == "response.failed":
            self._judge(turn, 200, data)
        elif kept.hangs_on(data, event=event) != turn.previous_response_id:
            raise Again(ColdCause.HTTP, Reason.STORE_UNSUPPORTED, ANCHOR_IGNORED)

    async def _first(self, turn: Turn, wire: HttpWire) -> list[Event]:
        """The events up to the first one that counts, if it shows that the delta was understood."""
        policy, held_back = turn.call.upstream.policy, list[Event]()
        try:
            while turn.fold.terminal is None and not turn.fold.has_started:
                if len(held_back) >= _MAX_HELD_BACK:
                    raise Again(ColdCause.HTTP, Reason.STORE_UNSUPPORTED, ANCHOR_IGNORED)
                event = await self._relay.next(turn, wire, policy.first_event_timeout)
                kind = turn.fold.feed(event.data) if event.data else ""
                if kind == "error":
                    self._judge(turn, 200, event.data)
                    event = nested(event) if turn.call.transport == "ws" else event
                elif turn.fold.has_started:
                    self._verify(turn, event.data, event=True)
                held_back.append(event)
        except BaseException as error:
            await wire.close()
            if isinstance(error, ConnectionLost) and policy.retry_ambiguous:
                raise Again(ColdCause.CLOSED, Reason.CONNECTION_LOST, "closed") from error
            if isinstance(error, ConnectionLost):
                raise lost(turn, "connection_lost") from error
            if isinstance(error, TimeoutError):
                raise timed_out(turn, "first_event_timeout") from error
            raise
        return held_back
