"""The frames of one client WebSocket, in the order they came, until the socket's turns take them.

It is read on all the time, also while a turn is running: only so is the client's departure noticed,
and only so are its pongs. What it may hold is bounded; what would exceed the bound is refused in
its place in the order, so that an error never overtakes the answer before it.

A turn begins when its frame has come: also one that waits for another leaves a row, whatever ends
this process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from app.gateway.context import Context
from app.gateway.departure import Departure
from app.gateway.identity import Fields, Identity, peek
from app.gateway.rows import Receipt, begin
from app.gateway.wire import Receive, Refusal
from engine.aside import aside

MAX_FRAMES = 256
"""More frames that wait end the socket: no client has so many requests in flight."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of the client, or the refusal that stands in its place."""

    receipt: Receipt
    body: bytes
    fields: Fields
    identity: Identity
    """Who sends it."""
    refusal: Refusal | None = None

    @property
    def is_turn(self) -> bool:
        """It asks for a response, whether the engine serves it or a tunnel."""
        return self.refusal is None and self.fields.type == "response.create"

    @property
    def is_create(self) -> bool:
        """A turn that the engine serves: anything else is for a tunnel."""
        return self.fields.type == "response.create" and not self.fields.stream_id

    @property
    def is_about_another(self) -> bool:
        """It asks for no response, but speaks of one: an interrupt, a steer."""
        return self.refusal is None and self.fields.type != "response.create"


class Inbox:
    def __init__(
        self, context: Context, upstream: str, identify: Callable[[Fields], Identity]
    ) -> None:
        self._context = context
        self._upstream = upstream
        self._identify = identify
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()
        self._ended = False
        self.overflown = False

    async def read(
        self,
        receive: Receive,
        departure: Departure,
        beside: Callable[[Frame], Awaitable[bool]],
    ) -> None:
        """Take the client's messages until it is gone.

        ``beside`` is shown each frame that is no create, and tells whether it has dealt with it.
        """
        while not self.overflown:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                break
            if message["type"] == "websocket.receive":
                frame = await self._frame(message.get("text"))
                if not (frame.is_about_another and await beside(frame)):
                    self._put(frame)
        self.end()
        departure.left()

    def end(self) -> None:
        self._ended = True
        self._arrived.set()

    async def next(self) -> Frame | None:
        """The next frame; None when the socket has ended, whatever still waits."""
        while not self._ended and not self._frames:
            self._arrived.clear()
            await self._arrived.wait()
        if self._ended:
            return None
        frame = self._frames.popleft()
        self._bytes -= len(frame.body)
        return frame

    def left_over(self) -> list[Frame]:
        """The frames that nobody took before the end."""
        return list(self._frames)

    def _put(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._bytes += len(frame.body)
        self.overflown = len(self._frames) > MAX_FRAMES
        self._arrived.set()

    async def _frame(self, text: str | None) -> Frame:
        receipt = Receipt.now(self._context, self._upstream, "ws")
        body, fields, refusal = await self._read(text)
        frame = Frame(receipt, body, fields, self._identify(fields), refusal)
        if frame.is_turn:
            begin(self._context, receipt, frame.identity)
        return frame

    async def _read(self, text: str | None) -> tuple[bytes, Fields, Refusal | None]:
        if text is None:
            return b"", Fields(), BINARY
        body = await aside(len(text), text.encode)
        limit = self._context.max_body_bytes
        if len(body) > limit:
            return b"", Fields(), _too_large(limit)
        if self._frames and self._bytes + len(body) > limit:
            return b"", Fields(), TOO_MANY
        fields = await aside(len(body), lambda: peek(body))
        if not fields.is_object:
            return b"", fields, NOT_JSON
        if not isinstance(fields.type, str):
            return b"", fields, NO_TYPE
        return body, fields, None


BINARY = Refusal(400, "binary_frame", "Send each request as one text frame that holds JSON.")
NOT_JSON = Refusal(400, "invalid_json", "The frame is not a JSON object. Send one per text frame.")
NO_TYPE = Refusal(
    400,
    "missing_type",
    "The frame has no type. Send response.create with the fields of a request beside it.",
    param="type",
)
TOO_MANY = Refusal(
    429,
    "too_many_queued_requests",
    "Too much is queued on this WebSocket. Wait for an answer before the next request.",
)


def _too_large(limit: int) -> Refusal:
    return Refusal(
        413,
        "request_too_large",
        f"The frame is larger than {limit} bytes. Shorten the input, or raise the setting "
        "max_body_bytes of Warmline.",
    )
