"""Everything that is not a turn: streamed through, unchanged, counted in metrics only.

Reading a stored response or listing models is no turn: it would count tokens a second time.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import aiohttp
from yarl import URL

from app.gateway import headers
from app.gateway.context import Context
from app.gateway.departure import Departure, watch
from app.gateway.upstreams import Target
from app.gateway.wire import ClientGone, Receive, Refusal, Scope, Send, refuse
from app.tasks import describe
from engine.model import Policy

logger = logging.getLogger(__name__)

UNREACHABLE = Refusal(
    502,
    "upstream_unreachable",
    "The upstream could not be reached. Check its base_url in Warmline's settings and the network.",
)
BROKE_OFF = Refusal(502, "upstream_connection_lost", "The upstream ended before its answer.")
TIMED_OUT = Refusal(504, "upstream_timeout", "The upstream did not answer in time.")


async def serve(
    context: Context, target: Target, scope: Scope, receive: Receive, send: Send
) -> None:
    """Pass a request through. A failure after the answer began ends the client's connection."""
    given = headers.decode(scope["headers"])
    body = None if _has_no_body(given) else _body(receive)
    request = context.http().request(
        scope["method"],
        url_of(target, scope.get("query_string", b"")),
        headers=_request_headers(given),
        data=body,
        allow_redirects=False,
        timeout=timeout_of(target.upstream.policy),
    )
    started = False
    try:
        async with request as response:
            head = headers.returned(text_headers(response), keep_length=True)
            await send(
                {
                    "type": "http.response.start",
                    "status": response.status,
                    "headers": headers.encode(head),
                }
            )
            started = True
            await _relay(context, response, receive, send)
            context.on_pass(target.upstream.name, response.status)
    except ClientGone:
        return
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        refusal = refusal_of(error)
        context.on_pass(target.upstream.name, refusal.status)
        if started:
            raise ConnectionAbortedError("the upstream ended in the middle of an answer") from None
        logger.warning("pass-through to %s: %s", target.upstream.name, describe(error))
        await refuse(send, refusal)


async def _relay(
    context: Context, response: aiohttp.ClientResponse, receive: Receive, send: Send
) -> None:
    departure = Departure()
    # A client that leaves also ends the upstream's answer: nobody would read it.
    departure.listen(response.close)
    watcher = context.tasks.start(watch(receive, departure), name="client of a pass-through")
    try:
        async for chunk in response.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except (aiohttp.ClientError, OSError):
        if not departure.gone:
            raise
    finally:
        departure.listen(None)
        watcher.cancel()


def url_of(target: Target, query: bytes) -> URL:
    """The upstream's address, with path and query exactly as the client wrote them."""
    suffix = f"?{query.decode('latin-1')}" if query else ""
    return URL(f"{target.upstream.base_url}{target.path}{suffix}", encoded=True)


def timeout_of(policy: Policy) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=None, sock_connect=policy.connect_timeout, sock_read=policy.idle_timeout
    )


def refusal_of(error: BaseException) -> Refusal:
    """What the client is told of a transport failure: never the error's own text."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return UNREACHABLE
    if isinstance(error, TimeoutError):
        return TIMED_OUT
    return BROKE_OFF


def text_headers(response: aiohttp.ClientResponse) -> headers.Headers:
    return headers.decode(response.raw_headers)


def _has_no_body(given: headers.Headers) -> bool:
    names = dict(given)
    return "transfer-encoding" not in names and names.get("content-length", "0") == "0"


def _request_headers(given: headers.Headers) -> list[tuple[str, str]]:
    kept = list(headers.forwarded(given, body_is_read=False))
    length = headers.first(given, "content-length")
    if length is not None and length != "0":
        kept.append(("content-length", length))  # else the client library would send it in chunks
    return kept


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        if chunk := message.get("body", b""):
            yield chunk
        more = message.get("more_body", False)
