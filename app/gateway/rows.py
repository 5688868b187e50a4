"""The facts of turns that the engine never sees: refused ones, compactions, those of a tunnel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from app.gateway.context import Context
from app.gateway.identity import Identity
from app.gateway.wire import RawHeaders, Refusal
from engine.model import Kind, Mode, Reason, Status, TurnFacts


@dataclass(frozen=True, slots=True)
class Receipt:
    """When and as what a turn was received."""

    turn_id: str
    at: float
    """Seconds since the Unix epoch."""
    mono: float
    upstream: str
    transport: str
    """``http``, ``sse`` or ``ws``."""

    @classmethod
    def now(cls, context: Context, upstream: str, transport: str) -> Receipt:
        clock = context.clock
        return cls(context.new_id("turn"), clock.now(), clock.monotonic(), upstream, transport)


def facts(
    context: Context, receipt: Receipt, identity: Identity, status: Status, **known: Any
) -> TurnFacts:
    """The facts of a turn that ends now. ``known`` are further fields of ``TurnFacts``."""
    session = identity.session or f"anon-{receipt.turn_id}"
    kind = Kind.COMPACTION if identity.compaction else Kind.GENERATION
    base = TurnFacts(
        turn_id=receipt.turn_id,
        started_at=receipt.at,
        ended_at=context.clock.now(),
        kind=kind,
        status=status,
        session=session,
        session_key=context.session_key(identity, receipt.upstream, session),
        tenant=identity.tenant,
        upstream=receipt.upstream,
        client_transport=receipt.transport,
        root_session=identity.root_session,
        turn_group=identity.turn_group,
        client=identity.client,
        client_version=identity.client_version,
        duration_ms=(context.clock.monotonic() - receipt.mono) * 1000,
    )
    return replace(base, **known) if known else base


def begin(context: Context, receipt: Receipt, identity: Identity) -> None:
    """Tell the ledger that a turn is under way, in case that this process is killed before its end.

    Of such a turn nothing but an error will ever be known.
    """
    context.begin(facts(context, receipt, identity, Status.ERROR))


def record_refusal(
    context: Context, receipt: Receipt, identity: Identity, refusal: Refusal
) -> None:
    """A turn that Warmline refused itself: nothing was sent upstream."""
    context.record(
        facts(
            context,
            receipt,
            identity,
            Status.REFUSED,
            http_status=refusal.status,
            error_code=refusal.code,
        )
    )


def turn_headers(
    turn_id: str, mode: Mode | None = None, reason: Reason | None = None
) -> RawHeaders:
    """``x-warmline-…``: on every answer to a turn. A turn that was not sent has no mode."""
    return [
        (b"x-warmline-turn", turn_id.encode()),
        (b"x-warmline-mode", mode.value.encode() if mode else b"none"),
        (b"x-warmline-reason", reason.value.encode() if reason else b"none"),
    ]
