"""One turn from the client's request to its facts: what goes in, what is noted, what comes out."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import msgspec
from msgspec import Raw

from engine import digests, items
from engine.baseline import Baseline
from engine.chain import Anchor, Chain, Staged
from engine.decision import Plan, eligible
from engine.handshake import Sender
from engine.model import Evidence, Kind, Mode, Policy, Reason, Status, TurnFacts, Usage
from engine.request import Request
from engine.sessions import Scope
from engine.spelling import Items
from engine.stream import Fold


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where requests go. ``base_url`` without a trailing slash; ``/responses`` is appended."""

    name: str
    base_url: str
    policy: Policy = field(default_factory=Policy)

    @property
    def http_url(self) -> str:
        return self.base_url + "/responses"

    @property
    def ws_url(self) -> str:
        return "ws" + self.base_url.removeprefix("http") + "/responses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A client's request, with what identifies its sender.

    ``body`` is the JSON object as the client sent it. ``headers`` are lower-case, without
    hop-by-hop ones, credentials included: they are forwarded and nothing else.
    """

    turn_id: str
    received_at: float
    received_mono: float
    body: bytes
    upstream: Upstream
    tenant: str
    session: str | None = None
    root_session: str | None = None
    turn_group: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    transport: str = "sse"
    """``http`` (a complete JSON answer), ``sse`` or ``ws``."""
    socket: str | None = None
    client: str | None = None
    client_version: str | None = None
    epoch_reset: str | None = None
    compaction: bool = False
    request: Request | None = None
    """The body, where the driver has read it already (``Driver.read``)."""
    memory: dict[str, Sender] = field(default_factory=dict, repr=False)
    """For what is worked out of ``headers``: the same one as long as the same client sends them."""


class Timer(Protocol):
    """The time-out of what a turn waits for, in the event loop's seconds."""

    def when(self) -> float | None: ...

    def reschedule(self, when: float) -> None: ...

    def stop(self) -> None: ...

    def until(self, when: float) -> AbstractAsyncContextManager[None]: ...


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event on its way to the client.

    ``data`` is its JSON text (empty for a comment); ``raw`` its exact bytes where it came as SSE.
    """

    data: bytes
    raw: bytes | None = None


@dataclass(slots=True, eq=False)
class Turn:
    """What is noted while a turn runs. The driver fills it in, ``facts`` reads it."""

    call: Call
    request: Request | None
    scope: Scope
    kind: Kind = Kind.GENERATION
    session: str = ""
    anchored: bool = False
    """The client named one of our anchors: its input was expanded."""
    named: str = ""
    """The id by which it did."""
    followed: Anchor | None = None
    """The anchor that the client named, where its request goes as it came."""
    plan: Plan | None = None
    chain: Chain | None = None
    kept_chain: str | None = None
    """The id of the chain without a connection that the turn continues or opens."""
    stores: bool = False
    """The answer is to be continued where the upstream stores it."""
    observed: bool = False
    """The client's own request goes upstream, whatever is decided."""
    connection: str | None = None
    """The id of the connection that only the observed turn's client socket uses."""
    shadow: tuple[Mode, Reason] | None = None
    """What would have been done with an observed turn."""
    staged: Staged | None = None
    extended: Anchor | None = None
    answered: bytes | None = None
    """The transcript digest that the turn leaves, once it is worked out."""
    asks: bool | None = None
    """What was sent last asks for a diagnosis (``diagnosis``); None: nothing was sent yet."""
    resets: int = 0
    epoch: tuple[int, int] | None = None
    mode: Mode | None = None
    reason: Reason | None = None
    fallback: str | None = None
    attempts: int = 0
    bytes_sent: int = 0
    items_sent: int | None = None
    previous_response_id: str | None = None
    queue_ms: float | None = None
    connect_ms: float | None = None
    first_event_ms: float | None = None
    ttft_ms: float | None = None
    http_status: int | None = None
    error_code: str | None = None
    lost: str | None = None
    """Why the stream ended without a terminal event."""
    refused: bool = False
    gone: bool = False
    """The client has left; ``deadline`` is when the drain ends."""
    deadline: float | None = None
    timer: Timer | None = None
    ended: bool = False
    fold: Fold = field(default_factory=Fold)

    @property
    def understood(self) -> Request:
        """The request, where the engine has split it."""
        assert self.request is not None
        return self.request

    @property
    def asks_to_store(self) -> bool:
        """The last attempt said ``store: true``: one that is sent again is the client's own."""
        return self.stores and (self.attempts < 2 or self.understood.value("store") is True)

    @property
    def over_socket(self) -> bool:
        """The last attempt went over an upstream WebSocket."""
        return self.mode in (Mode.WS_FULL, Mode.WS_INCREMENTAL)

    def since(self, now: float) -> float:
        """Milliseconds since the client's request was received."""
        return max(0.0, (now - self.call.received_mono) * 1000)


def kind_of(request: Request, call: Call) -> Kind:
    """A warm-up generates nothing; a compaction turn rewrites the history (DESIGN 4.6)."""
    if request.value("generate") is False:
        return Kind.WARMUP
    if call.compaction or (request.items and _is_trigger(request.items[-1])):
        return Kind.COMPACTION
    return Kind.GENERATION


def _is_trigger(raw: Raw) -> bool:
    if b"compaction_trigger" not in bytes(raw)[:4096]:
        return False
    try:
        value = items.parse(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("type") == "compaction_trigger"


def is_understood(request: Request) -> bool:
    """Whether the engine knows all that the request asks for; if not, it goes through unchanged."""
    return (
        request.value("background") is not True
        and request.value("conversation") is None
        and request.value("stream_id") is None
        # Without it the rest would mean something else; it is not the engine's to judge.
        and isinstance(request.value("previous_response_id"), str | None)
    )


def facts(turn: Turn, *, key: bytes, ended_at: float, ended_mono: float) -> TurnFacts:
    """The facts of a turn that has ended."""
    call, request, fold, plan = turn.call, turn.request, turn.fold, turn.plan
    compared = None if plan is None else plan.compared
    staged = turn.staged
    return TurnFacts(
        turn_id=call.turn_id,
        started_at=call.received_at,
        ended_at=ended_at,
        kind=turn.kind,
        status=_status(turn),
        session=turn.session,
        session_key=session_key(key, call.tenant, call.upstream.name, turn.session),
        tenant=call.tenant,
        upstream=call.upstream.name,
        client_transport=call.transport,
        root_session=call.root_session,
        turn_group=call.turn_group,
        chain=turn.kept_chain if turn.chain is None else turn.chain.id,
        epoch=None if turn.epoch is None else turn.epoch[0],
        epoch_turn=None if turn.epoch is None else turn.epoch[1],
        client=call.client,
        client_version=call.client_version,
        model=_model(turn),
        reasoning_effort=_effort(request),
        service_tier=fold.service_tier or (request.text("service_tier") if request else None),
        mode=turn.mode,
        reason=turn.reason,
        epoch_reset_reason=_reset_reason(turn),
        eligible=turn.reason is not None and eligible(turn.reason, compared=compared is not None),
        changed_fields=() if plan is None else plan.changed,
        fallback_reason=turn.fallback,
        attempts=turn.attempts,
        # A chain in the shadow has no connection.
        connection=turn.connection or (turn.chain.connection or None if turn.chain else None),
        previous_response_id=turn.previous_response_id,
        response_id=fold.response_id,
        prompt_cache_key=request.text("prompt_cache_key") if request else None,
        store=_store(request),
        items_total=None if request is None else len(request.items),
        items_sent=turn.items_sent,
        baseline_items=None if compared is None else len(compared.items),
        bytes_total=_bytes_total(turn),
        bytes_sent=turn.bytes_sent,
        frozen_items=0 if staged is None else staged.frozen,
        evidence=_evidence(plan),
        tools_digest=_digest(turn, "tools", key),
        instructions_digest=_digest(turn, "instructions", key),
        prefix_digest=turn.extended.digest.hex() if turn.extended is not None else None,
        baseline_digest=None if turn.answered is None else turn.answered.hex(),
        usage=Usage() if turn.refused else fold.usage,
        ttft_ms=turn.ttft_ms,
        first_event_ms=turn.first_event_ms,
        queue_ms=turn.queue_ms,
        connect_ms=turn.connect_ms,
        duration_ms=turn.since(ended_mono),
        http_status=turn.http_status,
        error_code=_error_code(turn),
        provider_miss_reason=fold.miss_reason,
        shadow_mode=None if turn.shadow is None else turn.shadow[0],
        shadow_reason=None if turn.shadow is None else turn.shadow[1],
    )


@lru_cache(maxsize=1024)
def session_key(key: bytes, tenant: str, upstream: str, session: str) -> str:
    """The session's id in URLs and filters; its parts are the untruncated names."""
    return digests.mac(key, "session", tenant, upstream, session).hex()


_RATE_LIMITS = frozenset(
    {"rate_limit_exceeded", "usage_limit_reached", "insufficient_quota", "rate_limit_error"}
)


def _status(turn: Turn) -> Status:
    fold = turn.fold
    if turn.refused:
        return Status.REFUSED
    if turn.gone:
        return Status.CLIENT_CLOSED
    if fold.commits and turn.lost is None:
        incomplete = fold.terminal == "response.incomplete"
        return Status.INCOMPLETE if incomplete else Status.COMPLETED
    if turn.http_status == 429 or _error_code(turn) in _RATE_LIMITS:
        return Status.RATE_LIMITED
    return Status.FAILED if fold.terminal == "response.failed" else Status.ERROR


def _error_code(turn: Turn) -> str | None:
    """A code, never a message: messages may repeat what was sent."""
    error = turn.fold.error or {}
    code = turn.error_code or turn.lost or error.get("code") or error.get("type")
    return code[:64] if isinstance(code, str) and code.isascii() and " " not in code else None


def _model(turn: Turn) -> str | None:
    asked = turn.request.text("model") if turn.request else None
    return asked or turn.fold.model


def _effort(request: Request | None) -> str | None:
    reasoning = request.value("reasoning") if request else None
    effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
    return effort if isinstance(effort, str) else None


def _store(request: Request | None) -> bool | None:
    """As the client asked; the provider's default is to store."""
    if request is None:
        return None
    value = request.value("store")
    return value if isinstance(value, bool) else True


def _reset_reason(turn: Turn) -> str | None:
    reason = turn.reason if turn.shadow is None else turn.shadow[1]
    if reason is not Reason.EPOCH_RESET or turn.plan is None:
        return None
    return turn.plan.reset_reason


def _bytes_total(turn: Turn) -> int:
    sent = None if turn.request is None else turn.request.items
    if turn.request is None or not isinstance(sent, Items) or sent.base is None:
        return len(turn.call.body)
    commas = len(sent.base) - (0 if sent.rest else 1)
    return len(turn.request.post(sent.rest, None, stream=None)) + sent.base.length + max(0, commas)


def _digest(turn: Turn, name: str, key: bytes) -> str | None:
    """The digest of a field, which may be large; worked out when it changes."""
    if turn.staged is None:
        raw = turn.request.fields.get(name) if turn.request else None
        return digests.value_digest(key, raw)
    raw = turn.staged.fields.get(name)
    if raw is None:
        return None
    latest = turn.scope.digests.get(name)
    if latest is None or latest[0] != raw:
        latest = turn.scope.digests[name] = (raw, digests.value_digest(key, raw))
    return latest[1]


def _evidence(plan: Plan | None) -> Evidence | None:
    return None if plan is None else plan.evidence


def expand(request: Request, anchor: Anchor) -> Request:
    """The full logical input of a request that names an anchor: its baseline, then its items."""
    held = anchor.items
    return dataclasses.replace(
        request,
        fields={k: v for k, v in request.fields.items() if k != "previous_response_id"},
        items=Items(
            tuple(request.items),
            base=held if isinstance(held, Baseline) else Baseline(None, (), tuple(held)),
        ),
    )


def error_body_code(body: bytes) -> str | None:
    """The error code of an HTTP error body; None when it cannot be read."""
    try:
        error = msgspec.json.decode(body).get("error")
        code = error.get("code") or error.get("type")
    except (msgspec.MsgspecError, AttributeError, RecursionError):
        return None
    return code if isinstance(code, str) else None
