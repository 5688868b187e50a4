"""The beginning of a turn over HTTP: its body is read, and who sent it is known."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from app.gateway import bodies, headers
from app.gateway.context import Context
from app.gateway.identity import (
    Fields,
    Identity,
    fields_of,
    identify,
    likely_session,
    peek,
    tenant_of,
)
from app.gateway.rows import Receipt, record_refusal, turn_headers
from app.gateway.upstreams import Target
from app.gateway.wire import ClientGone, Receive, Refusal, Scope, Send, extension, refuse
from app.http_connection import BODY
from engine.aside import aside
from engine.request import Request


@dataclass(frozen=True, slots=True)
class Intake:
    receipt: Receipt
    headers: headers.Headers
    """The client's, as it sent them."""
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
    given = headers.decode(scope["headers"])

    tenant = tenant_of(context.keys, given, target.query)

    def identity(fields: Fields) -> Identity:
        found = identify(context.keys, given, fields, target.query, tenant=tenant)
        return dataclasses.replace(found, compaction=True) if compaction else found

    try:
        whole = extension(scope, BODY)
        body = await bodies.read(receive, given, context.max_body_bytes, whole)
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
            session=likely_session(given, body),
        )
    fields = None if request is None else fields_of(request.fields)
    if fields is None:
        fields = await aside(len(body), lambda: peek(body))
    return Intake(receipt, given, body, fields, identity(fields), request)
