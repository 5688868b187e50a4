"""A client's request as a call of the engine."""

from __future__ import annotations

from typing import Literal

from app.gateway.headers import Headers
from app.gateway.identity import Identity
from app.gateway.rows import Receipt
from app.gateway.upstreams import Target
from engine.driver import Call
from engine.handshake import Sender
from engine.request import Request


def call_of(
    receipt: Receipt,
    target: Target,
    body: bytes,
    identity: Identity,
    headers: Headers,
    *,
    transport: Literal["http", "sse", "ws"],
    socket: str | None = None,
    epoch_reset: str | None = None,
    request: Request | None = None,
    memory: dict[str, Sender],
) -> Call:
    return Call(
        turn_id=receipt.turn_id,
        received_at=receipt.at,
        received_mono=receipt.mono,
        body=body,
        upstream=target.queried,
        tenant=identity.tenant,
        session=identity.session,
        root_session=identity.root_session,
        turn_group=identity.turn_group,
        headers=headers,
        transport=transport,
        socket=socket,
        client=identity.client,
        client_version=identity.client_version,
        epoch_reset=epoch_reset,
        compaction=identity.compaction,
        request=request,
        memory=memory,
    )
