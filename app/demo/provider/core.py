"""The provider without sockets: requests in, steps out.

A step is (seconds, action): wait so long, then send, close, reset or hang. Nothing here sleeps,
reads a clock or rolls dice; clock, ids and latency are given. The shell (``server``) takes the
steps one by one and closes the iterator if its peer leaves.

What is kept for tests: ``log`` (every request as it arrived), ``upgrades``, ``connections``, and
``transcripts``: per response id, the items that the provider holds after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .agent import Agent
from .cache import PromptCache
from .connection import Connection, UpgradeRefused
from .errors import ApiError
from .faults import AbortUpgrade, HangUpgrade, RefuseUpgrade
from .flavours import Flavour, flavour
from .headers import Headers, HeadersLike, credential_of, lower_headers
from .held import Held, Shelf
from .http import HttpReply, error_reply, route
from .ids import Ids
from .items import REQUIRED, kind_of
from .latency import NO_LATENCY, Latency
from .log import Attempt, Transport, Upgrade
from .replies import Responder
from .response import Response, prepare
from .script import Script
from .wire import Json, parse_object


@dataclass(frozen=True, slots=True)
class Limits:
    connection_seconds: float = 3600.0
    frame_bytes: int = 16 * 1024 * 1024
    """A frame of this size or more closes the connection with 1009."""
    named_lanes: int = 32
    require_outputs: bool = True
    """A function call without its output in the transcript is a 400."""
    kept_responses: int | None = None
    """How many transcripts and log records are kept; None: all, as tests want it."""


class Provider:
    """See the module. ``responder`` decides the output items; the default is ``Agent()``."""

    def __init__(
        self,
        kind: str = "openai",
        *,
        now: Callable[[], float],
        responder: Responder | None = None,
        new_id: Callable[[str], str] | None = None,
        latency: Latency = NO_LATENCY,
        cache: PromptCache | None = None,
        limits: Limits | None = None,
        models: tuple[str, ...] = ("gpt-5.5", "gpt-5.6-sol", "gpt-6-sol", "gpt-6.1-sol"),
    ) -> None:
        self.flavour: Flavour = flavour(kind)
        self.now = now
        self.responder: Responder = responder or Agent()
        self.new_id = new_id or Ids()
        self.latency = latency
        self.cache = cache or PromptCache()
        self.limits = limits or Limits(
            connection_seconds=self.flavour.connection_seconds,
            frame_bytes=self.flavour.frame_bytes,
        )
        self.models = models
        self.faults = Script()
        self.log: list[Attempt] = []
        self.upgrades: list[Upgrade] = []
        self.connections: list[Connection] = []
        self.shelf = Shelf(self.limits.kept_responses)
        self.issued_kinds: frozenset[str] = frozenset()
        """Types of output items beyond the documented ones; they may come back as input."""
        self.issued_ids: dict[str, None] = {}
        """Ids of output items: an input item with one of them was made by the model."""
        self._attempts = 0
        self._opened = 0
        self._upgraded = 0

    # --- what the tests ask -------------------------------------------------------------------

    @property
    def transcripts(self) -> Mapping[str, list[Json]]:
        """Per response id: the items held after it, its own output included."""
        return self.shelf.transcripts

    def held(self, response_id: str) -> Held:
        """With the exact text of each item. ``KeyError`` if there was no such response."""
        return self.shelf[response_id]

    def live(self) -> list[Connection]:
        return [connection for connection in self.connections if connection.open]

    def expire(self) -> list[Connection]:
        """End the idle connections whose time is over, as the clock has it; which they were."""
        over = [one for one in self.live() if one.idle and one.due is not None]
        for connection in over:
            connection.close(f"expired:{connection.due}")
        return over

    # --- what the shell calls -----------------------------------------------------------------

    def open_connection(self, headers: HeadersLike, path: str = "/v1/responses") -> Connection:
        """Accept an upgrade, or raise ``UpgradeRefused`` (with what to answer, or not to)."""
        lower = lower_headers(headers)
        index = self._upgraded
        self._upgraded += 1
        record = Upgrade(index, lower, path, None)
        self.upgrades.append(record)
        hang = 0.0
        for fault in self.faults.for_upgrade(index):
            if isinstance(fault, RefuseUpgrade):
                record.status = fault.status
                raise UpgradeRefused(error_reply(_refusal(fault)), action=None)
            if isinstance(fault, AbortUpgrade):
                raise UpgradeRefused(None, action="abort")
            if isinstance(fault, HangUpgrade) and fault.seconds is None:
                raise UpgradeRefused(None, action="hang")
            if isinstance(fault, HangUpgrade):
                hang += fault.seconds or 0.0
        try:
            if not self.flavour.websocket:
                raise ApiError("This server has no WebSocket mode.", status=426)
            credential = credential_of(lower)
        except ApiError as error:
            record.status = error.status
            raise UpgradeRefused(error_reply(error), action=None) from None
        record.status = 101
        connection = Connection(
            self, index=self._opened, headers=lower, path=path, credential=credential
        )
        connection.connect_delay = self.latency.connect
        connection.connect_hang = hang
        self._opened += 1
        record.connection = connection.id
        self.connections.append(connection)
        return connection

    def post(
        self, headers: HeadersLike, body: bytes | str, path: str = "/v1/responses"
    ) -> HttpReply:
        """``POST`` without a shell: JSON answers are complete, streams are in ``steps``."""
        return self.request("POST", path, headers, body).complete()

    def request(
        self, method: str, path: str, headers: HeadersLike, body: bytes | str = b""
    ) -> HttpReply:
        """Answer any HTTP request. ``body`` is decoded already (no content encoding).

        Never raises for a bad request; see ``HttpReply`` for what to do with the answer.
        """
        return route(self, method, path, lower_headers(headers), body)

    # --- what the siblings call ---------------------------------------------------------------

    def record(
        self,
        *,
        transport: Transport,
        headers: Headers,
        path: str,
        frame: str,
        connection: Connection | None = None,
        nth: int = 0,
        overlapped: bool = False,
    ) -> Attempt:
        attempt = Attempt(
            index=self._attempts,
            transport=transport,
            connection=connection.id if connection else None,
            connection_index=connection.index if connection else None,
            nth=nth,
            path=path,
            headers=headers,
            frame=frame,
            received_at=self.now(),
            overlapped=overlapped,
        )
        self._attempts += 1
        self.log.append(attempt)
        self._forget()
        return attempt

    def _forget(self) -> None:
        keep = self.limits.kept_responses
        if keep is None or len(self.log) <= keep:
            return
        del self.log[:-keep]
        del self.upgrades[:-keep]
        self.connections = [c for c in self.connections if c.open]
        while len(self.issued_ids) > 50 * keep:
            del self.issued_ids[next(iter(self.issued_ids))]

    def read_body(self, attempt: Attempt) -> None:
        """Decode the attempt's frame into it. Raises ``ApiError``."""
        try:
            parsed = parse_object(attempt.frame)
        except (ValueError, RecursionError) as error:
            raise ApiError(f"We could not parse the JSON body of your request: {error}") from None
        attempt.body = parsed.value
        attempt.input_texts = parsed.input_texts
        previous = parsed.value.get("previous_response_id")
        attempt.previous_response_id = previous if isinstance(previous, str) else None

    def prepare(self, attempt: Attempt, credential: str, prior: Held | None) -> Response:
        return prepare(self, attempt, credential, prior)

    def issue(self, items: Iterable[Json]) -> None:
        """Remember what was sent as output, so that it is known when it comes back."""
        for value in items:
            identifier = value.get("id")
            if isinstance(identifier, str):
                self.issued_ids[identifier] = None
            kind = kind_of(value)
            if kind not in REQUIRED:
                self.issued_kinds |= {kind}


def _refusal(fault: RefuseUpgrade) -> ApiError:
    return ApiError(
        fault.message or "", status=fault.status, code=fault.code, headers=fault.headers
    )
