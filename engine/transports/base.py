"""What the driver needs of the world: connections, an HTTP client, and a clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

Headers = Sequence[tuple[str, str]]


class Clock(Protocol):
    """``now`` is wall-clock time in seconds since the epoch; ``monotonic`` only ever grows."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...


class Connection(Protocol):
    """One live upstream WebSocket. Only one turn uses it at a time."""

    @property
    def closed(self) -> bool:
        """True as soon as the end of the connection is known, also while it is idle."""

    async def send(self, frame: bytes) -> None:
        """Send one text frame. Raises ``ConnectionLost`` (``sent=False``: it never left)."""

    async def receive(self) -> bytes:
        """The next frame's payload. Raises ``ConnectionLost``. May be cancelled safely."""

    def take(self) -> bytes | None:
        """The payload of a frame that is there already; None where it has to be waited for.

        It tells of no end: ``receive`` does.
        """

    async def ping(self, within: float) -> bool:
        """Whether the peer answers within ``within`` seconds."""

    async def close(self) -> None:
        """End the connection; never raises."""


class WebSocketTransport(Protocol):
    async def connect(self, url: str, headers: Headers, within: float) -> Connection:
        """Open a connection. Raises ``UpgradeRejected`` or ``ConnectFailed``."""


class HttpAnswer(Protocol):
    """An answer whose body is still coming."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ``ConnectionLost`` when it breaks off."""

    async def close(self) -> None:
        """Give the connection back, or end it where the body was not read to its end."""


class HttpTransport(Protocol):
    async def post(self, url: str, headers: Headers, body: bytes, within: float) -> HttpAnswer:
        """Send a POST; returns when the head of the answer is there.

        ``within`` bounds the connect. Raises ``ConnectFailed`` (nothing was sent) or
        ``ConnectionLost`` (it may have been).
        """
