"""The turns inside a tunnel as rows: their frames are looked at on the way, never changed.

A lane (``stream_id``, or none) answers its creates in order. A response that nobody asked for is
the successor that a provider makes after steering, and a turn as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.gateway.context import Context
from app.gateway.identity import Identity
from app.gateway.inbox import Frame
from app.gateway.rows import Receipt, begin, facts
from engine import failures
from engine.model import Kind, Mode, Reason, Status
from engine.stream import TERMINAL, Fold

_STATUS = {
    "response.completed": Status.COMPLETED,
    "response.done": Status.COMPLETED,
    "response.incomplete": Status.INCOMPLETE,
    "response.failed": Status.FAILED,
    "error": Status.ERROR,
}


class _Laned(msgspec.Struct):
    type: str = ""
    stream_id: str | None = None


_laned = msgspec.json.Decoder(_Laned)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(slots=True)
class _Turn:
    receipt: Receipt
    identity: Identity
    known: dict[str, Any] = field(default_factory=dict)
    fold: Fold = field(default_factory=Fold)


class TunnelRows:
    def __init__(self, context: Context, upstream: str, latest: Identity) -> None:
        """``latest`` is who sent the turn before: a successor that nobody asked for is theirs."""
        self._context = context
        self._upstream = upstream
        self._asked: dict[str | None, deque[_Turn]] = {}
        self._running: dict[str | None, _Turn] = {}
        self._latest = latest

    def sent(self, frame: Frame) -> None:
        """A frame of the client goes to the upstream."""
        if frame.fields.type != "response.create":
            return
        turn = _Turn(frame.receipt, frame.identity, _request_facts(frame.body))
        lane = _lane(frame.body)
        self._asked.setdefault(lane, deque()).append(turn)
        self._latest = turn.identity

    def refused(self, frame: Frame, status: int, code: str | None) -> None:
        """No connection could be had for a frame of the client: nothing was sent."""
        if frame.fields.type == "response.create":
            known = {"http_status": status, "error_code": code}
            ended = Status.RATE_LIMITED if status == 429 else Status.ERROR
            row = facts(self._context, frame.receipt, frame.identity, ended, **known)
            self._context.record(row)

    def received(self, data: bytes) -> None:
        """A frame of the upstream goes to the client."""
        try:
            event = _laned.decode(data)
        except (msgspec.DecodeError, RecursionError):
            return
        lane = event.stream_id
        if event.type == "response.created":
            self._close(self._running.pop(lane, None), Status.ERROR, "superseded")
            self._running[lane] = self._next(lane) or self._successor()
        elif event.type == "error" and lane not in self._running:
            # Refused before it began; an error of the connection as a whole has no turn.
            turn = self._next(lane)
            if turn is not None:
                self._running[lane] = turn
        turn = self._running.get(lane)
        if turn is not None:
            self._feed(lane, turn, event.type, data)

    def end(self, *, client_left: bool) -> None:
        """The tunnel has ended; so have the turns that were still open."""
        status = Status.CLIENT_CLOSED if client_left else Status.ERROR
        code = None if client_left else "upstream_connection_lost"
        open_turns = [*self._running.values(), *(t for lane in self._asked.values() for t in lane)]
        self._running.clear()
        self._asked.clear()
        for turn in open_turns:
            self._close(turn, status, code)

    def _next(self, lane: str | None) -> _Turn | None:
        waiting = self._asked.get(lane)
        if not waiting:
            return None
        turn = waiting.popleft()
        if not waiting:
            del self._asked[lane]
        return turn

    def _successor(self) -> _Turn:
        receipt = Receipt.now(self._context, self._upstream, "ws")
        begin(self._context, receipt, self._latest)
        known = {"mode": Mode.WS_INCREMENTAL, "reason": Reason.CLIENT_ANCHORED}
        return _Turn(receipt, self._latest, known)

    def _feed(self, lane: str | None, turn: _Turn, event_type: str, data: bytes) -> None:
        elapsed = (self._context.clock.monotonic() - turn.receipt.mono) * 1000
        turn.known.setdefault("first_event_ms", elapsed)
        turn.fold.feed(data)
        if turn.fold.has_output:
            turn.known.setdefault("ttft_ms", elapsed)
        if event_type in TERMINAL:
            del self._running[lane]
            self._close(turn, _STATUS[event_type], None, data)

    def _close(
        self, turn: _Turn | None, status: Status, code: str | None, data: bytes | None = None
    ) -> None:
        if turn is None:
            return
        known = dict(turn.known)
        if data is not None and status in (Status.ERROR, Status.FAILED):
            failure = failures.read(data)
            code = failure.code
            if status is Status.ERROR:
                known["http_status"] = failure.status
                status = Status.RATE_LIMITED if failure.status == 429 else status
        known |= {
            "usage": turn.fold.usage,
            "response_id": turn.fold.response_id,
            "error_code": code,
            "attempts": 1,
        }
        if turn.fold.model is not None:
            known["model"] = turn.fold.model
        self._context.record(facts(self._context, turn.receipt, turn.identity, status, **known))


def _lane(body: bytes) -> str | None:
    try:
        return _laned.decode(body).stream_id
    except (msgspec.DecodeError, RecursionError):
        return None


def _request_facts(body: bytes) -> dict[str, Any]:
    """The mode of a tunnel's turn is the one of its frame; nobody decided on it."""
    try:
        fields = _fields.decode(body)
    except (msgspec.DecodeError, RecursionError):
        fields = {}
    previous = _text(fields, "previous_response_id")
    store = _value(fields, "store")
    count = _items(fields)
    found = {
        "bytes_total": len(body),
        "bytes_sent": len(body),
        "mode": Mode.WS_INCREMENTAL if previous else Mode.WS_FULL,
        "reason": Reason.CLIENT_ANCHORED if previous else Reason.CONTINUATION_OFF,
        "previous_response_id": previous,
        "items_sent": count,
        "items_total": None if previous else count,
        "model": _text(fields, "model"),
        "prompt_cache_key": _text(fields, "prompt_cache_key"),
        "service_tier": _text(fields, "service_tier"),
        "store": store if isinstance(store, bool) else None,
    }
    if _value(fields, "generate") is False:
        found["kind"] = Kind.WARMUP
    return found


def _value(fields: Mapping[str, msgspec.Raw], name: str) -> Any:
    try:
        return msgspec.json.decode(fields[name])
    except (KeyError, msgspec.DecodeError, RecursionError):
        return None


def _text(fields: Mapping[str, msgspec.Raw], name: str) -> str | None:
    value = _value(fields, name)
    return value if isinstance(value, str) else None


def _items(fields: Mapping[str, msgspec.Raw]) -> int | None:
    raw = fields.get("input")
    if raw is None:
        return None
    try:
        return len(_list.decode(raw))
    except (msgspec.DecodeError, RecursionError):
        return 1 if bytes(memoryview(raw)[:1]) == b'"' else None  # a text is one message
