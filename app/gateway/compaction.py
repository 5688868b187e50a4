"""``POST …/responses/compact``: passed through, and a row of kind ``compaction``.

The engine takes no part: the answer is no response that a turn could continue. It is told only
that the session's history was compacted, so that the full turn that follows is explained.
"""

from __future__ import annotations

import asyncio
import dataclasses
import io
import logging
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import msgspec

from app.gateway import headers, passthrough
from app.gateway.context import Context
from app.gateway.departure import Departure, watch
from app.gateway.intake import take
from app.gateway.rows import Receipt, begin, facts, turn_headers
from app.gateway.upstreams import Target
from app.gateway.wire import Receive, Scope, Send, refuse, respond
from app.tasks import describe
from engine import failures
from engine.errors import UnreadableRequest
from engine.model import Mode, Reason, Status
from engine.request import split
from engine.stream import read_usage

logger = logging.getLogger(__name__)


_Request = AbstractAsyncContextManager[aiohttp.ClientResponse]


@dataclasses.dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: headers.Headers
    body: bytes
    first_byte_mono: float


async def serve(
    context: Context, target: Target, scope: Scope, receive: Receive, send: Send
) -> None:
    taken = await take(context, target, scope, receive, send, compaction=True)
    if taken is None:
        return
    receipt, identity, body = taken.receipt, taken.identity, taken.body
    begin(context, receipt, identity)
    departure = Departure()
    watcher = context.tasks.start(watch(receive, departure), name="client of a compaction")
    known: dict[str, Any] = {
        **_request_facts(body),
        "mode": Mode.HTTP_FULL,
        "reason": Reason.CONTINUATION_OFF,
        "attempts": 1,
        "bytes_sent": len(body),
    }
    marks = turn_headers(receipt.turn_id, Mode.HTTP_FULL, Reason.CONTINUATION_OFF)
    try:
        plain = (*taken.headers, ("accept-encoding", "identity"))
        request = context.http().post(
            passthrough.url_of(target),
            headers=plain,
            data=io.BytesIO(body),  # in pieces: one large write would hold up all others
            allow_redirects=False,
            timeout=passthrough.timeout_of(target.upstream.policy),
        )
        reply = await _reply(context, request, departure, target.upstream.policy.drain_timeout)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        failure = passthrough.refusal_of(error)
        logger.warning("compaction at %s: %s", target.upstream.name, describe(error))
        known |= {"http_status": failure.status, "error_code": failure.code}
        status = Status.CLIENT_CLOSED if departure.gone else Status.ERROR
        context.record(facts(context, receipt, identity, status, **known))
        if not departure.gone:
            await refuse(send, failure, marks)
        return
    finally:
        watcher.cancel()
    known |= _reply_facts(reply, receipt)
    status = Status.CLIENT_CLOSED if departure.gone else _status(reply.status)
    if reply.status < 300:
        context.compacted(identity, target.upstream.name)
    context.record(facts(context, receipt, identity, status, **known))
    if not departure.gone:
        head = headers.encode(headers.returned(reply.headers)) + marks
        await respond(send, reply.status, head, reply.body)


async def _reply(context: Context, request: _Request, departure: Departure, drain: float) -> _Reply:
    """The whole answer. A client that leaves is waited for as long as one of a turn."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        departure.listen(lambda: limit.reschedule(loop.time() + drain))
        async with request as response:
            first = context.clock.monotonic()
            content = await response.read()
            return _Reply(response.status, passthrough.text_headers(response), content, first)


def _status(status: int) -> Status:
    if status == 429:
        return Status.RATE_LIMITED
    return Status.COMPLETED if status < 300 else Status.ERROR


def _request_facts(body: bytes) -> dict[str, Any]:
    try:
        request = split(body)
    except UnreadableRequest:
        return {"bytes_total": len(body)}
    return {
        "bytes_total": len(body),
        "items_total": len(request.items),
        "items_sent": len(request.items),
        "model": request.text("model"),
        "prompt_cache_key": request.text("prompt_cache_key"),
        "previous_response_id": request.text("previous_response_id"),
    }


def _reply_facts(reply: _Reply, receipt: Receipt) -> dict[str, Any]:
    found: dict[str, Any] = {
        "http_status": reply.status,
        "first_event_ms": (reply.first_byte_mono - receipt.mono) * 1000,
    }
    if reply.status >= 300:
        return found | {"error_code": failures.read(reply.body).code}
    try:
        answer = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, RecursionError):
        return found
    if isinstance(answer, dict):
        found["usage"] = read_usage(answer.get("usage"))
        found["response_id"] = answer["id"] if isinstance(answer.get("id"), str) else None
    return found
