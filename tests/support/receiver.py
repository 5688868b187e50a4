"""A webhook receiver on loopback that answers by a script and checks signatures for itself, with
the public library."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from unittest import mock

from aiohttp import web
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from app.clock import Clock

SECRET = "whsec_" + base64.b64encode(b"the receiver's own secret, 32 b.").decode()
OTHER_SECRET = "whsec_" + base64.b64encode(b"another secret of the same size.").decode()
PATH = "/hooks/T0CANARY/path-canary-9f2c"
"""A path as secret as a password: it must turn up nowhere else."""
QUERY = "token=query-canary-77aa"


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: str = "ok"
    headers: Mapping[str, str] = field(default_factory=dict)


HANG = Answer(0, "hang")
"""No answer until the test ends or ``release`` is called."""
DROP = Answer(0, "drop")
"""The connection is closed without an answer."""


@dataclass(frozen=True)
class Received:
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    verified: bool
    """The library found it signed with the receiver's secret, in time."""

    @property
    def id(self) -> str | None:
        return self.headers.get("webhook-id")

    @property
    def timestamp(self) -> str | None:
        return self.headers.get("webhook-timestamp")

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """``script`` is used up answer by answer (a number is a status); then all is well (200)."""

    def __init__(self, script: Iterable[Answer | int], *, secret: str, clock: Clock | None) -> None:
        self.script: deque[Answer | int] = deque(script)
        self.secret = secret
        self.received: list[Received] = []
        self.base = ""
        self._clock = clock
        self._changed = asyncio.Condition()
        self._released = asyncio.Event()

    @property
    def url(self) -> str:
        return f"{self.base}{PATH}?{QUERY}"

    @property
    def shown(self) -> str:
        """All of the address that may be shown."""
        return self.base

    @property
    def ids(self) -> list[str | None]:
        return [one.id for one in self.received]

    async def arrived(self, count: int = 1) -> list[Received]:
        """Wait until so many requests have arrived; returns all of them."""
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: len(self.received) >= count)
        return self.received

    def release(self) -> None:
        """Answer 200 to all who hang."""
        self._released.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        verified = _verified(self.secret, body, headers, self._clock)
        async with self._changed:
            self.received.append(Received(request.path_qs, headers, body, verified))
            step = self.script.popleft() if self.script else 200
            self._changed.notify_all()
        answer = Answer(step) if isinstance(step, int) else step
        if answer is HANG:
            await self._released.wait()
            return web.Response(text="late")
        if answer is DROP:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(
            status=answer.status or 200, text=answer.body, headers=dict(answer.headers)
        )


def _verified(secret: str, body: bytes, headers: Mapping[str, str], clock: Clock | None) -> bool:
    instant = datetime.now(UTC) if clock is None else datetime.fromtimestamp(clock.now(), UTC)

    class Held(datetime):
        """The library reads the time of the machine; here it is that of the test's clock."""

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return instant

    try:
        with mock.patch("standardwebhooks.webhooks.datetime", Held):
            Webhook(secret).verify(body, dict(headers), json_parse=False)
    except (WebhookVerificationError, ValueError):
        return False
    return True


@asynccontextmanager
async def receiving(
    *script: Answer | int, secret: str = SECRET, clock: Clock | None = None
) -> AsyncIterator[Receiver]:
    """Serve on a free port of 127.0.0.1. ``clock`` is the one that messages are stamped by, where
    it is not the machine's."""
    receiver = Receiver(script, secret=secret, clock=clock)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        receiver.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield receiver
    finally:
        receiver.release()
        await runner.cleanup()
