"""Turns over HTTP: the full input in a POST, or the client's own request as it came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine import handshake
from engine.chain import stage
from engine.endings import Endings
from engine.errors import ConnectFailed, ConnectionLost
from engine.model import Kind, Mode, Reason
from engine.outcome import Answer, Ended, lost
from engine.relay import Relay
from engine.request import own_copy
from engine.stream import Fold
from engine.transports.base import Clock, HttpTransport
from engine.turn import Turn, error_body_code
from engine.wires import HttpWire, end_to_end, is_stream, local_warmup


class HttpSide:
    """The HTTP half of the driver."""

    def __init__(
        self,
        *,
        transport: HttpTransport,
        relay: Relay,
        endings: Endings,
        clock: Clock,
        new_id: Callable[[str], str],
    ) -> None:
        self._http, self._relay, self._endings = transport, relay, endings
        self._clock, self._new_id = clock, new_id

    async def run(self, turn: Turn, reason: Reason, cause: str | None) -> Answer:
        """The full input in a POST; a warm-up is answered here, it must not generate."""
        request, call = turn.understood, turn.call
        turn.reason, turn.fallback = reason, cause
        turn.chain, turn.extended, turn.fold = None, None, Fold()
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

    async def unchanged(self, turn: Turn, reason: Reason) -> Answer:
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
            return await self._relay.respond(turn, wire, [], 200, [])
        if request is not None and (call.transport == "ws" or turn.anchored):
            # A delta is never sent without its anchor: an expanded request stays expanded.
            items = request.items if turn.anchored else None
            stream = True if call.transport == "ws" else None
            return await self._post(turn, request.post(items, named, stream=stream))
        return await self._post(turn, call.body)

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
                turn.timer = timer
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
            return await self._relay.respond(turn, wire, [], 200, passed)
        try:
            whole = await self._relay.whole(turn, wire)
        except (ConnectionLost, TimeoutError) as error:
            raise lost(turn, "connection_lost") from error
        if answer.status != 200:
            turn.error_code = error_body_code(whole) or f"http_{answer.status}"
            raise Ended(answer.status, whole, passed)
        turn.first_event_ms = turn.since(self._clock.monotonic())
        turn.fold.feed_response(whole)
        self._endings.conclude(turn)
        return self._endings.plain(turn, 200, whole, passed)
