"""``POST …/responses``: one turn, its answer as JSON or as a stream of events.

Nothing is sent to the client before the answer is known, so that a refusal by the upstream keeps
its status. Every body goes to the engine, also one that is no JSON at all: a request that works
without Warmline works with it, and one that does not gets the provider's own error. The engine
passes on in full what it cannot read (DESIGN 4.1).
"""

from __future__ import annotations

import logging

from app.gateway import headers, sse
from app.gateway.calls import call_of
from app.gateway.context import Context
from app.gateway.departure import Departure, batches_of, follow, run
from app.gateway.intake import take
from app.gateway.rows import begin, turn_headers
from app.gateway.upstreams import Target
from app.gateway.wire import (
    RawHeaders,
    Receive,
    Refusal,
    Scope,
    Send,
    refuse,
    respond,
)
from app.tasks import describe
from engine.driver import Answer, Call

logger = logging.getLogger(__name__)

INTERNAL = Refusal(
    500, "internal_error", "Warmline failed on this request. Its log tells where; send it again."
)

_STREAM: RawHeaders = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # an nginx in front passes events at once
]
_JSON: RawHeaders = [(b"content-type", b"application/json")]


async def serve(
    context: Context, target: Target, scope: Scope, receive: Receive, send: Send
) -> None:
    taken = await take(context, target, scope, receive, send)
    if taken is None:
        return
    call = call_of(
        taken.receipt,
        target,
        taken.body,
        taken.identity,
        taken.headers,
        transport="sse" if taken.fields.stream else "http",
        epoch_reset=taken.identity.epoch_reset,
        request=taken.request,
        memory=taken.memory,
    )
    begin(context, taken.receipt, taken.identity)
    await _answer(context, call, scope, receive, send)


async def _answer(context: Context, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
    departure = Departure()
    unfollow = follow(departure, context.tasks, scope, receive)
    started = False
    try:
        answer = await run(context.driver, call, departure)
        if not answer.streamed:
            if not departure.gone:
                started = True
                await respond(send, answer.status, answer_headers(answer), answer.body)
            return
        started = True
        await relay(answer, departure, send)
    except Exception as error:
        logger.error("turn %s failed: %s", call.turn_id, describe(error))
        if started:
            raise ConnectionAbortedError(f"turn {call.turn_id} broke off") from None
        await refuse(send, INTERNAL, turn_headers(call.turn_id))
    finally:
        departure.listen(None)
        unfollow()


async def relay(answer: Answer, departure: Departure, send: Send) -> None:
    """The events of an answer, one message for those that came at once.

    The last of them end the answer. A slow client slows the upstream down.

    When the client has left, nothing is sent any more, but the events are still taken: the engine
    reads the upstream on within its own bound, for the usage of the row.
    """
    more = True
    async with batches_of(answer) as batches:
        if not departure.gone:
            head = answer_headers(answer)
            await send({"type": "http.response.start", "status": answer.status, "headers": head})
        async for batch in batches:
            if not departure.gone:
                more = not answer.is_over()
                await _send_piece(send, sse.encode(batch), departure, more=more)
    if not departure.gone and more:
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_piece(send: Send, piece: bytes, departure: Departure, *, more: bool) -> None:
    try:
        await send({"type": "http.response.body", "body": piece, "more_body": more})
    except OSError:  # how some servers tell that the client is gone (ASGI 2.4)
        departure.left()


def answer_headers(answer: Answer) -> RawHeaders:
    """The upstream's headers, with those that the client needs to read the answer."""
    marks = turn_headers(answer.turn_id, answer.mode, answer.reason)
    if answer.streamed and not answer.headers:  # nearly all: a WebSocket's answers have none
        return _STREAM + marks
    kept = headers.returned(answer.headers)
    names = {name for name, _ in kept}
    wanted = _STREAM if answer.streamed else _JSON
    missing = [(name, value) for name, value in wanted if name.decode() not in names]
    return headers.encode(kept) + missing + marks
