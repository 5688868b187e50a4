"""A client's WebSocket: accepted at once, its creates run in order, one after the other.

What the upstream answers to the engine's own upgrade reaches the client as an error frame with a
status. A frame that is no plain ``response.create`` makes the socket a tunnel (DESIGN 4.2).
"""

from __future__ import annotations

import contextlib
import logging
from functools import cached_property

from app.gateway import headers, tunnel
from app.gateway.calls import call_of
from app.gateway.context import Context
from app.gateway.departure import Departure, batches_of, run
from app.gateway.handover import Seat
from app.gateway.http_turns import INTERNAL
from app.gateway.identity import Fields, Identity, identify
from app.gateway.inbox import Frame, Inbox
from app.gateway.rows import facts, record_refusal
from app.gateway.upstreams import Target
from app.gateway.wire import Receive, Scope, Send, error_frame
from app.tasks import describe
from engine.driver import Answer, Call
from engine.handshake import Sender
from engine.model import Status

logger = logging.getLogger(__name__)

# What these say holds for one turn; on a socket each frame says it anew (CASES 57).
_PER_TURN = ("x-codex-turn-metadata", "x-codex-turn-state", "x-codex-window-id")


async def serve(
    context: Context, target: Target, scope: Scope, receive: Receive, send: Send
) -> None:
    await receive()  # "websocket.connect"
    await send({"type": "websocket.accept"})
    await ClientSocket(context, target, scope, receive, send).serve()


class ClientSocket:
    """One accepted client WebSocket."""

    def __init__(
        self, context: Context, target: Target, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self.id = context.new_id("socket")
        self.context = context
        self.target = target
        self.given = headers.decode(scope["headers"])
        self._memory: dict[str, Sender] = {}
        self.departure = Departure()
        self.inbox = Inbox(context, target.upstream.name, self._identify)
        self.seat = Seat()
        self._is_running = False
        self._is_tunnel = False
        self._receive = receive
        self._send = send
        self._epoch_reset_is_due = True

    async def serve(self) -> None:
        """Until the client or the tunnel ends it."""
        self.seat.occupy()
        reading = self.inbox.read(self._receive, self.departure, self._beside)
        reader = self.context.tasks.start(reading, name="client of a WebSocket")
        try:
            while (frame := await self.inbox.next()) is not None:
                if frame.refusal is not None:
                    await self.refuse(frame)
                elif frame.is_create:
                    await self._turn(frame)
                else:
                    await tunnel.run(self, frame, frame)
                if self._is_tunnel:
                    self._is_tunnel = False
                    await tunnel.run(self, frame, None)
        except Exception as error:
            logger.error("client socket %s failed: %s", self.id, describe(error))
            await self.close(1011)
        finally:
            reader.cancel()
            self.departure.listen(None)
            self.context.driver.socket_closed(self.id)
        for frame in self.inbox.left_over():
            self._record_abandoned(frame)
        if self.inbox.overflown:
            await self.close(1008)

    async def send(self, data: bytes) -> None:
        """One text frame; nothing when the client has left. A slow client slows its caller."""
        if self.departure.gone:
            return
        try:
            await self._send({"type": "websocket.send", "text": data.decode()})
        except OSError:  # how servers tell that the client is gone
            self.departure.left()

    async def close(self, code: int) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # it may be closed already
            await self._send({"type": "websocket.close", "code": code})
        self.inbox.end()

    async def refuse(self, frame: Frame) -> None:
        assert frame.refusal is not None
        record_refusal(self.context, frame.receipt, frame.identity, frame.refusal)
        await self.send(frame.refusal.frame)

    def _identify(self, fields: Fields) -> Identity:
        return identify(
            self.context.keys,
            self.given,
            fields,
            self.target.query,
            headers_are_of_this_request=False,
        )

    async def call(self, frame: Frame) -> Call:
        identity = frame.identity
        request = await self.context.driver.read(
            frame.body,
            tenant=identity.tenant,
            upstream=self.target.upstream.name,
            session=identity.session,
        )
        call = call_of(
            frame.receipt,
            self.target,
            frame.body,
            identity,
            self.forwarded,
            transport="ws",
            socket=self.id,
            epoch_reset=identity.epoch_reset if self._epoch_reset_is_due else None,
            request=request,
            memory=self._memory,
        )
        self._epoch_reset_is_due = False  # the header came with the upgrade: it asks for one reset
        return call

    async def _beside(self, frame: Frame) -> bool:
        """A frame about the response under way goes at once to the connection that it is on.

        With it the socket becomes a tunnel, from the end of that response on.
        """
        if not self._is_running or not await self.seat.send_beside(frame.body):
            return False
        self._is_tunnel = True
        return True

    async def _turn(self, frame: Frame) -> None:
        call = await self.call(frame)
        if self.departure.gone:
            self._record_abandoned(frame)
            return
        self._is_running = True
        self.seat.note(None)
        try:
            answer = await run(self.context.driver, call, self.departure)
            await self._relay(answer)
        except Exception as error:
            logger.error("turn %s failed: %s", call.turn_id, describe(error))
            await self.send(INTERNAL.frame)
        finally:
            self._is_running = False
            self.departure.listen(None)

    async def _relay(self, answer: Answer) -> None:
        if not answer.streamed:
            await self.send(answer.frame or _as_frame(answer))
            return
        async with batches_of(answer) as batches:
            async for batch in batches:
                for event in batch:
                    if event.data:  # a comment of an HTTP upstream is no frame
                        await self.send(event.data)

    def _record_abandoned(self, frame: Frame) -> None:
        """A turn that waited when its client left: nothing was sent for it."""
        if frame.is_turn:
            ended = facts(self.context, frame.receipt, frame.identity, Status.CLIENT_CLOSED)
            self.context.record(ended)

    @cached_property
    def forwarded(self) -> headers.Headers:
        """The upgrade's headers, without what they say of the turn that opened the socket."""
        kept = headers.forwarded(self.given, body_is_read=True)
        return tuple(pair for pair in kept if pair[0] not in _PER_TURN)


def _as_frame(answer: Answer) -> bytes:
    """An answer that is no stream, as the one frame that says the same."""
    if answer.status < 300:
        return b'{"type":"response.completed","response":' + answer.body + b"}"
    return error_frame(answer.status, answer.body)
