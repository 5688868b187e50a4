"""The beginning of a turn over HTTP: its body is read, and who sent it is known."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from app.gateway import bodies
from app.gateway.context import Context
from app.gateway.head import head_of, length_of
from app.gateway.headers import Headers
from app.gateway.identity import (
    Fields,
    Identity,
    fields_of,
    identify,
    likely_session,
    peek,
)
from app.gateway.rows import Receipt, record_refusal, turn_headers
from app.gateway.upstreams import Target
from app.gateway.wire import ClientGone, Receive, Refusal, Scope, Send, extension, refuse
from app.http_connection import BODY
from engine.aside import aside
from engine.handshake import Sender
from engine.request import Request


@dataclass(frozen=True, slots=True)
class Intake:
    receipt: Receipt
    headers: Headers
    """The client's, as far as the upstream gets them."""
    memory: dict[str, Sender]
    """For what the engine works out of them."""
    body: bytes
    fields: Fields
    identity: Identity
    request: Request | None = None
    """The body as the engine reads it; None where it could not, and for a compaction."""


async def take(
    context: Context,
    target: Target,
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    compaction: bool = False,
) -> Intake | None:
    """None where there is nothing to serve: the client left, or its body was refused.

    Half a request is no turn; a refused body is one, and is answered and recorded here.
    """
    receipt = Receipt.now(context, target.upstream.name, "http")
    head = head_of(scope)
    given, tenant = head.headers, head.tenant(context.keys)

    def identity(fields: Fields) -> Identity:
        found = identify(context.keys, given, fields, tenant=tenant, by_name=head.by_name)
        return dataclasses.replace(found, compaction=True) if compaction else found

    try:
        whole = extension(scope, BODY)
        sized = (*head.encodings, *length_of(scope))
        body = await bodies.read(receive, sized, context.max_body_bytes, whole)
    except ClientGone:
        return None
    except Refusal as refusal:
        record_refusal(context, receipt, identity(Fields()), refusal)
        await refuse(send, refusal, turn_headers(receipt.turn_id))
        return None
    request = None
    if not compaction:
        request = await context.driver.read(
            body,
            tenant=tenant,
            upstream=target.upstream.name,
            session=likely_session(head.by_name, body),
        )
    fields = None if request is None else fields_of(request.fields)
    if fields is None:
        fields = await aside(len(body), lambda: peek(body))
    return Intake(receipt, head.forwarded, head.memory, body, fields, identity(fields), request)
