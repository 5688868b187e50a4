"""One WebSocket as the provider sees it: what it remembers, and one response at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .actions import Close, Hang, Send, Step
from .errors import (
    ApiError,
    connection_limit_reached,
    invalid_value,
    model_without_websocket,
    other_model,
    previous_response_not_found,
)
from .faults import ErrorFrame
from .headers import Headers
from .held import Held
from .http import HttpReply
from .log import Attempt
from .response import Response
from .wire import Json

if TYPE_CHECKING:
    from .core import Provider


class UpgradeRefused(Exception):
    """Instead of a connection: an HTTP answer, a reset (``abort``) or silence (``hang``)."""

    def __init__(self, reply: HttpReply | None, action: Literal["abort", "hang"] | None) -> None:
        super().__init__("the upgrade was refused")
        self.reply = reply
        self.action = action


@dataclass(slots=True)
class Lane:
    """A sequence of responses on a connection; the nameless one is where clients usually are."""

    latest: Held | None = None
    running: Response | None = None
    waiting: int = 0


class Connection:
    """Holds one response per lane: the latest. ``idle`` when nothing is in flight."""

    def __init__(
        self, core: Provider, *, index: int, headers: Headers, path: str, credential: str
    ) -> None:
        self.core = core
        self.index = index
        self.id = f"conn_{index}"
        self.headers = headers
        self.path = path
        self.credential = credential
        self.opened_at = core.now()
        self.heard_at = self.opened_at
        """When anything came last: a frame, or a ping."""
        self.model: str | None = None
        """Of the first turn."""
        self.connect_delay = 0.0
        """Seconds before the 101 answer, to be scaled."""
        self.connect_hang = 0.0
        """Seconds before it that a fault asks for, never scaled."""
        self.open = True
        self.closed_by: str | None = None
        self.deaf = False
        self.lanes: dict[str | None, Lane] = {None: Lane()}
        self.requests = 0

    @property
    def idle(self) -> bool:
        return self.open and all(lane.waiting == 0 for lane in self.lanes.values())

    @property
    def due(self) -> int | None:
        """The close code with which the connection is to end by now; None: it may go on."""
        flavour, now = self.core.flavour, self.core.now()
        over = now - self.opened_at >= self.core.limits.connection_seconds
        if over and flavour.end_code is not None:
            return flavour.end_code
        silent = flavour.idle_seconds is not None and now - self.heard_at >= flavour.idle_seconds
        return 1001 if silent else None

    def pinged(self) -> None:
        """The peer has shown that it is there."""
        self.heard_at = self.core.now()

    @property
    def latest(self) -> Held | None:
        """The response that the next request on the default lane may continue."""
        return self.lanes[None].latest if self.open else None

    @property
    def response_headers(self) -> Headers:
        """Of the 101 answer."""
        return (("x-request-id", f"req_{self.index}"),)

    def close(self, cause: str = "closed") -> None:
        """The socket has ended: everything that it remembered is gone."""
        if self.open:
            self.open = False
            self.closed_by = cause
            self.lanes = {None: Lane()}

    def handle_frame(self, frame: str | bytes) -> Frame:
        """Answer one frame. It is logged at once, and answered as the iterator is advanced.

        Frames of one lane are answered in their order: exhaust or close one iterator before the
        next is advanced.
        """
        size = len(frame) if isinstance(frame, bytes) else len(frame.encode(errors="replace"))
        text = frame if isinstance(frame, str) else frame.decode(errors="replace")
        attempt = self.core.record(
            transport="ws",
            headers=self.headers,
            path=self.path,
            frame=text,
            connection=self,
            nth=self.requests,
        )
        self.requests += 1
        if self.deaf:
            attempt.outcome = "hung"
            return _at_once([(0.0, Hang())])
        if self.due is not None:
            attempt.outcome = f"closed:{self.due}"
            return _at_once([(0.0, Close(self.due))])
        self.heard_at = self.core.now()
        if size >= self.core.limits.frame_bytes:
            attempt.outcome = "closed:1009"
            return _at_once([(0.0, Close(1009, "message too big"))])
        try:
            self.core.read_body(attempt)
            sent = attempt.body.get("stream_id")
            name = sent if isinstance(sent, str) else None
            lane = self._lane(name)
        except ApiError as error:
            return _at_once(self._failed(attempt, error, None))
        kind = attempt.body.get("type")
        if kind == "response.interrupt":
            return self._interrupt(attempt)
        if kind == "response.steer":
            return self._steer(attempt)
        attempt.overlapped = lane.waiting > 0
        lane.waiting += 1
        return Frame(self._create(attempt, lane), lane=lane, lane_name=name)

    def _lane(self, name: str | None) -> Lane:
        if name in self.lanes:
            return self.lanes[name]
        if len(self.lanes) > self.core.limits.named_lanes:
            raise ApiError(
                f"A connection has at most {self.core.limits.named_lanes} streams.",
                code="websocket_stream_limit_reached",
                param="stream_id",
            )
        return self.lanes.setdefault(name, Lane())

    def _create(self, attempt: Attempt, lane: Lane) -> Iterator[Step]:
        if lane.running is not None:
            raise RuntimeError("one response at a time: finish the lane's other iterator first")
        name = attempt.body.get("stream_id")
        faults = self.core.faults.for_request(attempt)
        try:
            if attempt.body.get("type") != "response.create":
                raise invalid_value("type", attempt.body.get("type"), "'response.create'")
            if self.core.now() - self.opened_at >= self.core.limits.connection_seconds:
                raise connection_limit_reached()
            self._pin(attempt)
            prior = self._prior(attempt, lane)
            response = self.core.prepare(attempt, self.credential, prior)
        except ApiError as error:
            self._evict(attempt, lane)
            yield from self._failed(attempt, error, name)
            return
        response.lane = name
        if any(isinstance(fault, ErrorFrame) and fault.deaf for fault in faults):
            self.deaf = True

        def commit(held: Held) -> None:
            lane.latest = held

        def fail() -> None:
            self._evict(attempt, lane)

        lane.running = response
        try:
            yield from response.steps(faults, commit=commit, fail=fail)
        finally:
            lane.running = None
            self.heard_at = self.core.now()
        if attempt.outcome.startswith(("error", "failed")):
            yield from self._farewell(1011)

    def _pin(self, attempt: Attempt) -> None:
        """The first turn's model is the connection's, where the flavour has it so."""
        flavour, model = self.core.flavour, str(attempt.body.get("model"))
        if not flavour.serves(model):
            raise model_without_websocket(model)
        self.model = self.model or model
        if model != self.model and flavour.other_model == "refused":
            raise other_model(self.model)
        if flavour.other_model == "ignored":
            attempt.body["model"] = self.model

    def _farewell(self, code: int) -> Iterator[Step]:
        if self.core.flavour.closes_after_error:
            yield 0.0, Close(code)

    def _prior(self, attempt: Attempt, lane: Lane) -> Held | None:
        wanted = attempt.previous_response_id
        if wanted is None:
            return None
        # Another lane's latest may be forked from; nothing older is kept in memory.
        for candidate in (lane, *self.lanes.values()):
            latest = candidate.latest
            if latest is not None and latest.response_id == wanted:
                return latest
        flavour = self.core.flavour
        stored = self.core.shelf.stored(wanted, self.credential) if flavour.hydrates else None
        if stored is None and not flavour.forgives:
            raise previous_response_not_found(wanted)
        return stored

    def _evict(self, attempt: Attempt, lane: Lane) -> None:
        latest = lane.latest
        if latest is None:
            return
        named = latest.response_id == attempt.previous_response_id
        if named or self.core.flavour.any_failure_evicts:
            lane.latest = None

    def _failed(self, attempt: Attempt, error: ApiError, lane: str | None) -> Iterator[Step]:
        attempt.outcome = f"error:{error.code or error.kind}"
        attempt.status = error.status
        frame = error.frame()
        if isinstance(lane, str):
            frame["stream_id"] = lane
        yield 0.0, Send(frame)
        if error.closes:
            yield 0.0, Close(1000, "connection limit reached")
        else:
            yield from self._farewell(1008)

    def _interrupt(self, attempt: Attempt) -> Frame:
        wanted = attempt.body.get("response_id")
        for lane in self.lanes.values():
            if lane.running is not None and lane.running.id == wanted:
                lane.running.interrupted = True
                attempt.outcome = "completed"
                return _at_once(())
        attempt.outcome = "error:response_not_found"
        return _at_once(())

    def _steer(self, attempt: Attempt) -> Frame:
        """No model here can be steered."""
        attempt.outcome = "error:steering_not_supported"
        event: Json = {
            "type": "response.steer.failed",
            "steer": {"previous_response_id": attempt.previous_response_id},
            "error": {
                "type": "invalid_request_error",
                "code": "steering_not_supported",
                "message": "This model does not support steering.",
            },
        }
        return _at_once([(0.0, Send(event))])


class Frame(Iterator[Step]):
    """The steps that answer one frame. Its lane is free when they have ended in whatever way."""

    def __init__(self, steps: Iterator[Step], *, lane: Lane | None, lane_name: str | None) -> None:
        self._steps = steps
        self._lane = lane
        self.lane_name = lane_name
        self.in_order = lane is not None
        """To be sent after what its lane sends before; else at once."""

    def __next__(self) -> Step:
        try:
            return next(self._steps)
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        """The peer has left."""
        closing = getattr(self._steps, "close", None)
        if closing is not None:
            closing()
        self._end()

    def _end(self) -> None:
        if self._lane is not None:
            self._lane.waiting -= 1
            self._lane = None


def _at_once(steps: Iterable[Step]) -> Frame:
    return Frame(iter(steps), lane=None, lane_name=None)
