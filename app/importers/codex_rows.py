"""The row of a request, or of a turn that got no answer, from what a rollout tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from app.importers.foreign import UNKNOWN_UPSTREAM, Epochs, chain_of, row_of
from app.importers.json_lines import inner, number, text
from app.ledger.rows import TurnRow
from engine.model import EpochReason, Kind, Status, Usage

NAME = "codex"
ROLLBACK = "rollback"
_ERROR_LENGTH = 64
_REFUSED = frozenset({"usage_limit_exceeded", "rate_limit_exceeded", "usage_limit_reached"})
_OF_REQUESTS = _REFUSED | {
    "bad_request",
    "context_window_exceeded",
    "http_connection_failed",
    "internal_server_error",
    "response_stream_connection_failed",
    "response_stream_disconnected",
    "response_too_many_failed_attempts",
    "server_overloaded",
    "unauthorized",
}
"""Errors that only a request ends with."""


@dataclass(slots=True)
class Session:
    """What holds for all requests from here on."""

    name: str
    root: str | None = None
    client: str | None = None
    version: str | None = None
    upstream: str | None = None
    model: str | None = None
    effort: str | None = None
    tier: str | None = None
    reset: str | None = None
    """Why the next request begins a new epoch."""
    _epochs: Epochs = field(default_factory=Epochs)
    _chain: str | None = None
    _asked: bool = False
    """A turn has said what it asks for."""

    def meta(self, payload: dict[str, Any]) -> None:
        self.client_of(payload)
        self.upstream = text(payload.get("model_provider"))
        self.root = text(payload.get("session_id")) or parent_of(payload) or self.name

    def client_of(self, payload: dict[str, Any]) -> None:
        """Another version may take a session up again."""
        self.client = text(payload.get("originator")) or self.client
        self.version = text(payload.get("cli_version")) or self.version

    def rename(self, name: str) -> None:
        self.name, self._chain = name, None

    def context(self, payload: dict[str, Any]) -> None:
        """Of a ``turn_context`` line: all of it holds from here on."""
        self._asked = True
        self.model = text(payload.get("model")) or self.model
        self.effort = text(payload.get("effort")) or _effort(payload)

    def settings(self, payload: dict[str, Any]) -> None:
        """Of ``thread_settings_applied``: what the next turn will ask for. Until that begins, the
        model is the one before: with it a history is compacted for another one."""
        found = inner(payload.get("thread_settings"))
        self.tier = text(found.get("service_tier"))
        if not self._asked:
            self.model = text(found.get("model")) or self.model
            self.effort = text(found.get("reasoning_effort")) or _effort(found)

    def replaced(self, word: str) -> None:
        """The history is another one from here on; of several words the first stands."""
        self.reset = self.reset or word

    def compacted(self) -> None:
        self.replaced(EpochReason.COMPACTION)

    def inherited(self) -> None:
        """What came until here belongs to another session."""
        self.reset, self._epochs = None, Epochs()

    def row(
        self, identity: tuple[str | int | None, ...], *, started: int, ended: int, usage: Usage,
        **known: Any,
    ) -> TurnRow:  # fmt: skip
        reset, self.reset = self.reset, None
        self._chain = self._chain or chain_of(NAME, self.name)
        return row_of(
            NAME,
            (self.name, *identity),
            started_at=min(started, ended),  # some lines are written late
            ended_at=ended,
            usage=usage,
            session=self.name,
            root_session=self.root,
            chain=self._chain,
            **self._epochs.next(reset),
            client=self.client,
            client_version=self.version,
            upstream=self.upstream or UNKNOWN_UPSTREAM,
            model=self.model,
            reasoning_effort=self.effort,
            service_tier=self.tier,
            **known,
        )


def _effort(found: dict[str, Any]) -> str | None:
    mode = inner(inner(found.get("collaboration_mode")).get("settings"))
    return text(mode.get("reasoning_effort"))


def parent_of(payload: dict[str, Any]) -> str | None:
    """The thread that a sub-agent's ``session_meta`` names as its parent."""
    source = inner(inner(payload.get("source")).get("subagent"))
    spawned = text(inner(source.get("thread_spawn")).get("parent_thread_id"))
    return text(payload.get("parent_thread_id")) or spawned


_HELD = 1_000
"""Rows of one turn that wait for its end."""


@dataclass(slots=True)
class Turn:
    """A user's turn: its rows wait until its end, which tells more of them."""

    name: str | None = None
    began: str = ""
    """The time of its first line, as it is written."""
    rows: list[TurnRow] = field(default_factory=list)
    used: bool = False
    """Something told of usage, be it a copy."""
    sent: bool = False
    """Something that goes to the model came since the last usage."""
    answered: bool = False
    """The model said something after that."""
    error: dict[str, Any] = field(default_factory=dict)
    _first: bool = True

    def add(self, row: TurnRow) -> Iterator[TurnRow]:
        self.rows.append(row)
        if len(self.rows) >= _HELD:
            yield from self.release()

    def release(self) -> Iterator[TurnRow]:
        yield from self.rows
        if self.rows:
            self._first = False
        self.rows.clear()

    def compaction(self, response: str | None) -> None:
        """The request of this response was a compaction's."""
        for place, row in enumerate(self.rows):
            if response is not None and row.response_id == response:
                self.rows[place] = replace(row, kind=str(Kind.COMPACTION))

    def adopt(self, response: str | None) -> None:
        """The latest request was the one that had this response."""
        if self.rows:
            self.rows[-1] = replace(self.rows[-1], response_id=response)

    def time_to_first_token(self, value: Any) -> None:
        """It is told once for the turn, and holds for its first request."""
        if self._first and self.rows and self.rows[0].kind != Kind.COMPACTION:
            self.rows[0] = replace(self.rows[0], ttft_ms=duration(value))


def duration(value: Any) -> float | None:
    """Milliseconds, be they a number or seconds and nanoseconds."""
    if isinstance(value, dict):
        secs, nanos = number(value.get("secs")), number(value.get("nanos"))
        value = None if secs is None or nanos is None else secs * 1_000 + nanos / 1e6
    found = number(value)
    return None if found is None else round(found, 3)


def failure(error: dict[str, Any], *, answered: bool) -> tuple[str, str | None, int | None] | None:
    """Status, code and HTTP status of a turn that ended so; None where it may have sent nothing."""
    found = error.get("codex_error_info")
    status = None
    if isinstance(found, dict) and len(found) == 1:
        found, details = next(iter(found.items()))
        code = inner(details).get("http_status_code")
        status = code if isinstance(code, int) and 100 <= code <= 599 else None
    name = text(found)
    if not answered and name not in _OF_REQUESTS:
        return None
    limited = name in _REFUSED or status == 429
    shown = name[:_ERROR_LENGTH] if name and name.isascii() and " " not in name else None
    return str(Status.RATE_LIMITED if limited else Status.ERROR), shown, status
