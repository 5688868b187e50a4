"""The demo's own receiver of webhooks: what a user's receiver has to do, and what it got.

It listens on the loopback, checks signatures with the public library of Standard Webhooks, and
keeps the newest messages in memory for the page ``/alerts``.
"""

from __future__ import annotations

import base64
import secrets
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from app.clock import Clock
from app.ledger.rows import iso, to_ms

KEPT = 50
HOST = "127.0.0.1"
_MOST_BYTES = 20_000
"""Standard Webhooks asks for no more."""


class Receiver:
    """``url`` and ``secret`` are what a sender needs; nothing shows them."""

    def __init__(self, clock: Clock) -> None:
        self.path = f"/hooks/{secrets.token_urlsafe(24)}"
        self.secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
        self.url = ""
        self._clock = clock
        self._verifier = Webhook(self.secret)
        self._received: deque[dict[str, Any]] = deque(maxlen=KEPT)

    def received(self) -> list[dict[str, Any]]:
        """The newest first: ``at``, ``webhook_id``, ``verified``, ``type``, ``title``, ``body``.

        A message that came twice is there twice.
        """
        return list(self._received)

    async def take(self, request: web.Request) -> web.Response:
        """204 for what is signed well, 401 for what is not, 400 for what is no message."""
        raw = await request.read()
        try:
            body = msgspec.json.decode(raw)  # unlike json, takes nothing that cannot be shown again
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            body = None
        if not isinstance(body, dict):
            return web.Response(status=400, text="This is no JSON object.")
        verified = self._verified(raw, request.headers)
        data = body.get("data")
        self._received.appendleft(
            {
                "at": iso(to_ms(self._clock.now())),
                "webhook_id": request.headers.get("webhook-id", ""),
                "verified": verified,
                "type": _text(body.get("type")),
                "title": _text(data.get("title") if isinstance(data, dict) else None),
                "body": body,
            }
        )
        if not verified:
            return web.Response(status=401, text="The signature is not valid.")
        return web.Response(status=204)

    def _verified(self, raw: bytes, headers: Mapping[str, str]) -> bool:
        try:
            self._verifier.verify(raw, dict(headers), json_parse=False)
        except (WebhookVerificationError, ValueError):
            # The library lets a ValueError through where a signature is no base64, or no pair.
            return False
        return True


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


@asynccontextmanager
async def receiving(clock: Clock) -> AsyncIterator[Receiver]:
    """Listens on a free port of the loopback until the block ends."""
    receiver = Receiver(clock)
    app = web.Application(client_max_size=_MOST_BYTES)
    app.router.add_post(receiver.path, receiver.take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0).start()
        host, port = runner.addresses[0][:2]
        receiver.url = f"http://{host}:{port}{receiver.path}"
        yield receiver
    finally:
        await runner.cleanup()
