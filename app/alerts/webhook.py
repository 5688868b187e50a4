"""Sends one message to one receiver, once, and says in a few words what became of it.

Signed as Standard Webhooks say, with every secret that is valid. Success is decided by the status
alone; of the body only the first kilobyte is read, scrubbed and kept. What the client raises may
quote the URL, so nothing of it goes further than this file: a failure is a word from the list
below.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

import aiohttp
from standardwebhooks import Webhook
from yarl import URL

from app.alerts.endpoints import ADDRESS_UNREADABLE, SECRET_UNREADABLE, Endpoint, check_secret
from app.alerts.guard import AddressRefusedError, Gate, Guard
from app.alerts.scrub import Scrub
from app.version import VERSION

RESPONSE_BYTES = 1_024
DELIVERED = "delivered"
TIMED_OUT = "timed out"
REFUSED = "connection refused"
NO_HOST = "host not found"
NO_CONNECTION = "no connection"
CLOSED = "connection closed without an answer"
BAD_CERTIFICATE = "certificate not trusted"
BAD_TLS = "no TLS connection"
BAD_ANSWER = "the answer is no HTTP"
ADDRESS_REFUSED = "address refused"
BAD_ADDRESS = "the address is not valid"
FAILED = "sending failed"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of an attempt. Holds nothing of the URL or the secrets."""

    status: int | None
    """HTTP status; None where there was no answer."""
    outcome: str
    """``delivered``, ``HTTP 500``, or one of the words above."""
    duration_ms: float = 0.0
    response: str | None = None
    """The beginning of the answer, scrubbed, at most 1,024 bytes; None where there was none."""
    retry_after: str | None = None
    """The header: whole seconds, or an HTTP date; None where there is none that can be read."""


class Sender:
    """``timeout`` is the seconds that an attempt may take, the answer's body included.

    ``tls`` replaces the system's certificates.
    """

    def __init__(self, guard: Guard, timeout: float, *, tls: ssl.SSLContext | None = None) -> None:
        self._guard = guard
        self._timeout = timeout
        self._tls = tls

    async def send(
        self, endpoint: Endpoint, delivery_id: str, body: bytes, timestamp: float
    ) -> Result:
        """``timestamp`` is the time of this attempt in seconds since 1970. Raises nothing but a
        cancellation.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        result = await self._outcome(endpoint, delivery_id, body, timestamp, began + self._timeout)
        took = round(1_000 * (loop.time() - began), 1)
        return Result(result.status, result.outcome, took, result.response, result.retry_after)

    async def _outcome(
        self, endpoint: Endpoint, delivery_id: str, body: bytes, timestamp: float, deadline: float
    ) -> Result:
        try:
            headers = signed(endpoint, delivery_id, body, timestamp)
        except Exception:
            return Result(None, SECRET_UNREADABLE)
        gate: Gate | None = None
        try:
            gate = self._guard.gate(self._guard.check_url(endpoint.url))
            return await self._post(gate, endpoint, headers, body, deadline)
        except AddressRefusedError as error:
            words = BAD_ADDRESS if error.code == "bad_address" else ADDRESS_REFUSED
            return Result(None, words)
        except Exception as error:
            return Result(None, ADDRESS_REFUSED if gate and gate.refused else words_of(error))

    async def _post(
        self,
        gate: Gate,
        endpoint: Endpoint,
        headers: Mapping[str, str],
        body: bytes,
        deadline: float,
    ) -> Result:
        session = aiohttp.ClientSession(
            connector=gate.connector(self._tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            auto_decompress=False,
            trust_env=False,
        )
        response: aiohttp.ClientResponse | None = None
        try:
            async with asyncio.timeout_at(deadline):
                response = await session.post(
                    URL(endpoint.url), data=body, headers=headers, allow_redirects=False
                )
            beginning = await _beginning(response, deadline)
            status = response.status
            return Result(
                status,
                DELIVERED if 200 <= status <= 299 else f"HTTP {status}",
                response=_kept(beginning, endpoint),
                retry_after=readable_pause(response.headers.get("Retry-After")),
            )
        finally:
            if response is not None:
                response.close()  # what it has not yet sent is not waited for
            await session.close()


async def _beginning(response: aiohttp.ClientResponse, deadline: float) -> bytes | None:
    """The first kilobyte, or what came of it in time. None where nothing readable came."""
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        return None  # what it hides could not be scrubbed
    data = b""
    try:
        async with asyncio.timeout_at(deadline):
            while len(data) < RESPONSE_BYTES:
                part = await response.content.read(RESPONSE_BYTES - len(data))
                if not part:
                    break
                data += part
    except Exception:  # noqa: S110  (the status has decided already)
        pass
    return data or None


def _kept(beginning: bytes | None, endpoint: Endpoint) -> str | None:
    if beginning is None:
        return None
    text = Scrub(endpoint.url, endpoint.secrets)(beginning)
    return text.encode()[:RESPONSE_BYTES].decode("utf-8", "ignore")


def signed(endpoint: Endpoint, delivery_id: str, body: bytes, timestamp: float) -> dict[str, str]:
    """The headers of an attempt."""
    moment = datetime.fromtimestamp(int(timestamp), UTC)
    headers = {
        "content-type": "application/json",
        "accept-encoding": "identity",
        "user-agent": f"Warmline/{VERSION}",
        "webhook-id": delivery_id,
        "webhook-timestamp": str(int(timestamp)),
    }
    signatures = [
        Webhook(check_secret(secret)).sign(delivery_id, moment, body.decode())
        for secret in endpoint.secrets
    ]
    if signatures:
        headers["webhook-signature"] = " ".join(signatures)
    return headers


def readable_pause(header: str | None) -> str | None:
    """A ``Retry-After`` in one spelling, so that nothing else a receiver writes gets through."""
    text = "" if header is None else header.strip()
    if re.fullmatch("[0-9]{1,12}", text):
        return text
    try:
        moment = parsedate_to_datetime(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return format_datetime(moment, usegmt=True)


def words_of(error: Exception) -> str:
    """An error of the client without its text."""
    match error:
        case TimeoutError():
            return TIMED_OUT
        case aiohttp.ClientConnectorCertificateError():
            return BAD_CERTIFICATE
        case aiohttp.ClientSSLError():
            return BAD_TLS
        case aiohttp.ClientConnectorDNSError():
            return NO_HOST
        case aiohttp.ClientConnectorError():
            return REFUSED if isinstance(error.os_error, ConnectionRefusedError) else NO_CONNECTION
        case aiohttp.InvalidURL():
            return BAD_ADDRESS
        case aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return CLOSED
        case aiohttp.ClientResponseError() | aiohttp.ClientPayloadError():
            return BAD_ANSWER
        case aiohttp.ClientOSError() | OSError():
            return CLOSED
        case _:
            return FAILED


def unsent(outcome: str = ADDRESS_UNREADABLE) -> Result:
    """The result of an attempt that did not get as far as sending."""
    return Result(None, outcome)
