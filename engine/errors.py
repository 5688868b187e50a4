"""The engine's errors, and whose fault each is.

::

    EngineError
    ├── UnreadableRequest     the client's body cannot be split: it goes through unchanged
    ├── NotKept               a transcript is asked for of which only digests are kept
    ├── SessionBusy           the agent's fault: one session has one turn at a time
    ├── SessionClosed         the agent's fault: the session was closed
    ├── TurnFailed            the turn was answered with an error before any event (embedded only)
    └── UpstreamError         the upstream's or the network's fault
        ├── ConnectFailed     no connection was made: nothing was sent, a retry is safe
        ├── UpgradeRejected   the upgrade was answered with an HTTP status
        └── ConnectionLost    a live connection ended; ``sent`` tells whether a frame may have left
"""

from __future__ import annotations

from collections.abc import Sequence


class EngineError(Exception):
    """Base of all errors that the engine raises on purpose."""


class UnreadableRequest(EngineError):
    """The body is not a request that the engine can split without guessing.

    It is not an error of the turn: the original body is passed on as it came (DESIGN 4.1).
    """


class NotKept(EngineError):
    """A transcript cannot be told: beyond the byte budget only its digests are kept (DESIGN 4.2).

    The turn that needs it cannot be expanded: its client has to repeat what it named by an id.
    """


class SessionBusy(EngineError):
    """An embedded session was asked for a second turn while one is under way.

    Read the first one's events to their end or close it; two conversations are two sessions.
    """


class SessionClosed(EngineError):
    """An embedded session was used after it was closed. A new session starts in full."""


class TurnFailed(EngineError):
    """An embedded turn ended before its first event, with the provider's error or for want of one.

    ``status`` is the HTTP status: 4xx is the request's or the account's fault, and the same
    request fails again but for 429; 502 and 504 mean that the upstream was lost and may or may not
    have processed the turn. ``code`` is the provider's code, or the engine's word; ``retry_after``
    is in seconds. ``body`` is the error as it came: it may repeat what was sent, unlike the text
    of this exception.
    """

    def __init__(
        self, status: int, code: str | None, body: bytes, retry_after: float | None = None
    ) -> None:
        super().__init__(f"the turn was answered with status {status} ({code or 'no code'})")
        self.status, self.code, self.body, self.retry_after = status, code, body, retry_after


class UpstreamError(EngineError):
    """Base of what the upstream or the network did."""


class ConnectFailed(UpstreamError):
    """The connection could not be opened: refused, timed out, or not a WebSocket.

    Nothing was sent, so that the turn may be sent again elsewhere.
    """

    def __init__(self, cause: str) -> None:
        super().__init__(f"the upstream could not be reached: {cause}")
        self.cause = cause


class UpgradeRejected(UpstreamError):
    """The upstream answered the upgrade with an HTTP status instead of 101."""

    def __init__(self, status: int, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        super().__init__(f"the upstream answered the upgrade with status {status}")
        self.status = status
        self.headers = list(headers)
        self.body = body


class ConnectionLost(UpstreamError):
    """A connection that was open has ended.

    ``sent`` is False only when it is certain that the upstream never got the frame.
    """

    def __init__(self, code: int | None, *, sent: bool) -> None:
        super().__init__(f"the upstream connection ended (close code {code})")
        self.code = code
        self.sent = sent
