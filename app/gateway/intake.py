"""The beginning of a turn over HTTP: its body is read, and who sent it is known."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from app.gateway import bodies, headers
from app.gateway.context import Context
from app.gateway.identity import Fields, Identity, identify, peek
from app.gateway.rows import Receipt, record_refusal, turn_headers
from app.gateway.upstreams import Target
from app.gateway.wire import ClientGone, Receive, Refusal, Scope, Send, refuse


@dataclass(frozen=True, slots=True)
class Intake:
    receipt: Receipt
    headers: headers.Headers
    """The client's, as it sent them."""
    body: bytes
    fields: Fields
    identity: Identity


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

    def identity(fields: Fields) -> Identity:
        found = identify(context.keys, given, fields, target.query)
        return dataclasses.replace(found, compaction=True) if compaction else found

    try:
        body = await bodies.read(receive, given, context.max_body_bytes)
    except ClientGone:
        return None
    except Refusal as refusal:
        record_refusal(context, receipt, identity(Fields()), refusal)
        await refuse(send, refusal, turn_headers(receipt.turn_id))
        return None
    fields = peek(body)
    return Intake(receipt, given, body, fields, identity(fields))
