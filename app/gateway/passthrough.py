"""Everything that is not a turn: streamed through, unchanged, counted in metrics only.

Reading a stored response or listing models is no turn: it would count tokens a second time.
"""

from __future__ import annotations

import asyncio
import contextlib
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
    upload = _Upload(receive)
    if _has_no_body(given):
        upload.ended.set()
    request = context.http().request(
        scope["method"],
        url_of(target),
        headers=_request_headers(given),
        data=None if upload.ended.is_set() else upload.chunks(),
        allow_redirects=False,
        timeout=timeout_of(target.upstream.policy),
    )
    departure = upload.departure
    watcher = context.tasks.start(upload.watch(), name="client of a pass-through")
    started = False
    try:
        async with _ended_by(departure), request as response:
            head = headers.encode(headers.returned(text_headers(response), keep_length=True))
            start = {"type": "http.response.start", "status": response.status, "headers": head}
            started = True
            await send(start)
            # A head leaves with the first piece of its body, which may take its time.
            await send({"type": "http.response.body", "body": b"", "more_body": True})
            async for chunk in response.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            context.on_pass(target.upstream.name, response.status)
    except (aiohttp.ClientError, TimeoutError, OSError, ClientGone) as error:
        if departure.gone:
            return
        refusal = refusal_of(error)
        context.on_pass(target.upstream.name, refusal.status)
        if started:
            raise ConnectionAbortedError("the upstream ended in the middle of an answer") from None
        logger.warning("pass-through to %s: %s", target.upstream.name, describe(error))
        await refuse(send, refusal)
    finally:
        departure.listen(None)
        watcher.cancel()


@contextlib.asynccontextmanager
async def _ended_by(departure: Departure) -> AsyncIterator[None]:
    """A client that leaves ends the request: nobody would read its answer."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        departure.listen(lambda: limit.reschedule(loop.time()))
        yield


class _Upload:
    """The client's body on its way, and after its end the watch for the client's departure."""

    def __init__(self, receive: Receive) -> None:
        self.departure = Departure()
        self.ended = asyncio.Event()
        self._receive = receive

    async def chunks(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                self.departure.left()
                raise ClientGone  # so that the upstream does not take half a body for a whole one
            if chunk := message.get("body", b""):
                yield chunk
            more = message.get("more_body", False)
        self.ended.set()

    async def watch(self) -> None:
        await self.ended.wait()
        await watch(self._receive, self.departure)


def url_of(target: Target) -> URL:
    """The upstream's address, with path and query exactly as the client wrote them."""
    suffix = f"?{target.query}" if target.query else ""
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
