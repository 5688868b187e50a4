"""The words of the engine: what a turn is, how it was sent, why, and what is known of it after.

Only the standard library is imported here, so that everything may import this file.
Nothing in it ever holds content: no prompt, answer, tool output, header or credential.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Mode(StrEnum):
    """The wire that the attempt which answered really used."""

    WS_INCREMENTAL = "ws_incremental"
    """A WebSocket frame with ``previous_response_id`` and only the new items."""
    WS_FULL = "ws_full"
    """A WebSocket frame with the whole input."""
    HTTP_FULL = "http_full"
    """A POST with the whole input."""
    HTTP_INCREMENTAL = "http_incremental"
    """A POST with ``previous_response_id`` and only the new items."""

    @property
    def incremental(self) -> bool:
        return self in (Mode.WS_INCREMENTAL, Mode.HTTP_INCREMENTAL)


class Reason(StrEnum):
    """Why this mode and not a better one, in the order in which they are tested."""

    CONTINUATION_OFF = "continuation_off"
    CLIENT_ANCHORED = "client_anchored"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    WS_REJECTED = "ws_rejected"
    WS_UNAVAILABLE = "ws_unavailable"
    STORE_UNSUPPORTED = "store_unsupported"
    NO_BASELINE = "no_baseline"
    EPOCH_RESET = "epoch_reset"
    NON_INPUT_FIELDS_CHANGED = "non_input_fields_changed"
    PREFIX_MISMATCH = "prefix_mismatch"
    EMPTY_DELTA = "empty_delta"
    MISSING_RESPONSE_ID = "missing_response_id"
    MISSING_OUTPUT_ITEMS = "missing_output_items"
    OUTPUT_CONFLICT = "output_conflict"
    CHAIN_BUSY = "chain_busy"
    CONNECTION_LOST = "connection_lost"
    PREVIOUS_RESPONSE_NOT_FOUND = "previous_response_not_found"
    INTERNAL_ERROR = "internal_error"
    OK = "ok"


NOT_ELIGIBLE = frozenset(
    {
        Reason.CONTINUATION_OFF,
        Reason.CLIENT_ANCHORED,
        Reason.PAYLOAD_TOO_LARGE,
        Reason.WS_REJECTED,
        Reason.WS_UNAVAILABLE,
        Reason.STORE_UNSUPPORTED,
        Reason.NO_BASELINE,
        Reason.EPOCH_RESET,
    }
)
"""Reasons of turns that could not have been continued whatever their content (DESIGN 4.4)."""


class ColdCause(StrEnum):
    """Why an anchor is no longer the latest response of a live connection."""

    SUPERSEDED = "superseded"
    """A later turn of the same chain was committed."""
    CLIENT_ANCHORED = "client_anchored"
    """The client went on from it by itself, and what came of that could not be proven."""
    HTTP = "http"
    """The turn was answered over HTTP: no connection ever held it."""
    CLOSED = "closed"
    AFTER_FAILED = "after_failed"
    AFTER_TIMEOUT = "after_timeout"
    AFTER_CANCEL = "after_cancel"
    LIMIT_REACHED = "limit_reached"
    EVICTED = "evicted"
    EPOCH_RESET = "epoch_reset"
    REJECTED = "rejected"
    """The provider answered ``previous_response_not_found`` for it."""
    OUTPUT_CONFLICT = "output_conflict"
    MISSING_OUTPUT_ITEMS = "missing_output_items"
    MISSING_RESPONSE_ID = "missing_response_id"


class EpochReason(StrEnum):
    """Why a session's anchors were reset. A caller's own word may stand in its place."""

    SUMMARIZE = "summarize"
    TURN_COUNT = "turn_count"
    CONNECTION_AGE = "connection_age"
    COMPACTION = "compaction"
    MANUAL = "manual"


class Kind(StrEnum):
    GENERATION = "generation"
    WARMUP = "warmup"
    COMPACTION = "compaction"


class Status(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    """The provider ended it with ``response.failed``."""
    ERROR = "error"
    """It never reached a terminal event: refused by the provider, lost, or timed out."""
    RATE_LIMITED = "rate_limited"
    CLIENT_CLOSED = "client_closed"
    """The client left before the end."""
    REFUSED = "refused"
    """Warmline itself refused it; nothing was sent upstream."""


class UsageState(StrEnum):
    REPORTED = "reported"
    MISSING = "missing"
    INCONSISTENT = "inconsistent"
    """The numbers contradict each other (cached above input …); they are kept as reported."""
    ESTIMATED = "estimated"


class DivergenceClass(StrEnum):
    EDITED = "edited"
    INSERTED = "inserted"
    REMOVED = "removed"
    REORDERED = "reordered"
    TRUNCATED_HEAD = "truncated_head"
    TRUNCATED_TAIL = "truncated_tail"
    REPLACED = "replaced"


def is_metadata(key: str) -> bool:
    """Whether agents hang metadata on items under this JSON key."""
    return key.startswith("_") or key == "metadata"


class Nature(StrEnum):
    """What kind of change made one value out of another, in a word that tells no content."""

    ADDED = "added"
    """Only there now: a key, an element, a field."""
    REMOVED = "removed"
    REORDERED = "reordered"
    """A list of the same elements in another order."""
    RESERIALIZED = "reserialized"
    """The same JSON, written in another way."""
    WHITESPACE = "whitespace"
    """Nothing but spaces and line ends differs."""
    UNICODE = "unicode"
    """The same text in another normal form of Unicode."""
    TIME = "time"
    """Nothing but dates and times differs."""
    NUMBER = "number"
    """Nothing but numbers differs, dates and times included."""
    IDENTIFIER = "identifier"
    """Nothing but identifiers (UUIDs, hexadecimal, random letters and digits) and numbers."""
    SHORTENED = "shortened"
    """Cut, or condensed to less than half."""
    LENGTHENED = "lengthened"
    REWRITTEN = "rewritten"
    TYPE = "type"
    """Another JSON type."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider reported them. ``None`` is unknown; 0 is a reported zero.

    ``input_tokens`` includes cached and written ones; ``output_tokens`` includes reasoning.
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_long_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None
    state: UsageState = UsageState.MISSING

    @property
    def non_cached_tokens(self) -> int | None:
        """``input − cached``, never below zero; unknown when either is."""
        if self.input_tokens is None or self.cached_tokens is None:
            return None
        return max(0, self.input_tokens - self.cached_tokens)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where two transcripts or two field sets part, without any content (DESIGN 4.4)."""

    index: int | None = None
    """Index of the first item that differs."""
    kind_before: str | None = None
    kind_now: str | None = None
    length_before: int = 0
    """Items of the baseline."""
    length_now: int = 0
    """Items of the turn's full input."""
    path: str | None = None
    """JSON pointer, inside the item, of the first difference; unknown keys appear as hashes."""
    offset: int | None = None
    """Character offset inside the differing string, from 0."""
    line: int | None = None
    """Line of the first difference, from 1; None for a text of one line."""
    klass: DivergenceClass | None = None
    nature: Nature | None = None
    items_gone: int | None = None
    """Items of the baseline from ``index`` on that are not there any more; None if unknown."""
    items_new: int | None = None
    """Items of the request that stand in their place."""
    further: bool = False
    """The two part again after that place."""
    freezable: tuple[str, ...] = ()
    """JSON keys of tools' outputs that are all that differs in the histories."""
    value_length_before: int | None = None
    value_length_now: int | None = None
    digest_before: str | None = None
    digest_now: str | None = None
    changed_fields: tuple[str, ...] = ()
    field_details: tuple[Mapping[str, Any], ...] = ()
    """Per changed field what is known of it, e.g. which tool was added (docs/ledger.md)."""
    fingerprint: str | None = None
    """Groups breaks of one cause: kind, pointer shape, class, changed names."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How an upstream is to be continued. One per upstream; times in seconds, sizes in bytes."""

    continuation: str = "websocket"
    """``websocket``, ``store`` (HTTP with stored responses), ``observe`` or ``off``."""
    models: tuple[str, ...] = ()
    """Only these models are continued, ``*`` at the end of a name being anything; empty: all."""
    force_store: bool = False
    """With ``store``: store also what the client asked not to store (docs/decisions/0011)."""
    tools: str = "strict"
    one_model: bool = False
    """A connection serves one model: a turn of another never goes over it, whatever it names."""
    diagnostics: bool = False
    """Ask the provider to compare each turn with its anchor's response (docs/decisions/0017)."""
    max_frame_bytes: int = 16_000_000
    """A larger frame goes over HTTP; the provider closes with 1009 from 16 MiB on."""
    connect_timeout: float = 15.0
    first_event_timeout: float = 300.0
    idle_timeout: float = 300.0
    answer_timeout: float = 900.0
    """How long a POST that is not streamed may take to answer."""
    drain_timeout: float = 30.0
    """How long an upstream is read on after its client has left."""
    ping_idle_after: float = 10.0
    """A connection idle for longer answers a ping before it is used."""
    ping_timeout: float = 5.0
    max_connection_age: float = 55 * 60.0
    """Rotate before the provider's limit of 60 minutes."""
    epoch_turns: int = 0
    """Reset the epoch after that many turns; 0 is never."""
    retry_ambiguous: bool = False
    max_losses: int = 5
    """Losses in a row after which the upstream is used over HTTP for a cooldown."""
    cooldown: float = 60.0
    rejected_cooldown: float = 600.0
    """How long a 426, 403 or 404 on the upgrade keeps a tenant and upstream on HTTP.

    With ``store``: how long after a response that was not stored all is sent as it came.
    """
    freeze: tuple[str, ...] = ()
    """JSON keys in which an old tool output may differ from the seen one (``engine.freezing``)."""
    visible_keys: tuple[str, ...] = ("_meta",)


@dataclass(slots=True)
class TurnFacts:
    """All that is known of one turn when it has ended; becomes one row of the ledger.

    Never changed once it is made. Not frozen: with so many fields that takes four times as long.

    Times are seconds since the Unix epoch; ``*_ms`` are milliseconds. ``None`` is unknown.
    Names and meanings are those of the ledger's columns (docs/ledger.md).
    """

    turn_id: str
    started_at: float
    ended_at: float
    kind: Kind
    status: Status
    session: str
    session_key: str
    tenant: str
    upstream: str
    client_transport: str
    """``http``, ``sse`` (HTTP, streamed), ``ws`` or ``embedded``."""
    source: str = "gateway"
    root_session: str | None = None
    turn_group: str | None = None
    chain: str | None = None
    epoch: int | None = None
    epoch_turn: int | None = None
    client: str | None = None
    client_version: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None
    service_tier: str | None = None
    mode: Mode | None = None
    reason: Reason | None = None
    epoch_reset_reason: str | None = None
    eligible: bool = False
    changed_fields: tuple[str, ...] = ()
    fallback_reason: str | None = None
    attempts: int = 0
    connection: str | None = None
    previous_response_id: str | None = None
    """As it was sent upstream by the attempt that answered."""
    response_id: str | None = None
    prompt_cache_key: str | None = None
    store: bool | None = None
    items_total: int | None = None
    items_sent: int | None = None
    baseline_items: int | None = None
    bytes_total: int | None = None
    """Bytes of the full request body."""
    bytes_sent: int | None = None
    """Bytes of the frame or body that went upstream, over all attempts."""
    frozen_items: int | None = None
    evidence: Evidence | None = None
    tools_digest: str | None = None
    instructions_digest: str | None = None
    prefix_digest: str | None = None
    baseline_digest: str | None = None
    usage: Usage = field(default_factory=Usage)
    ttft_ms: float | None = None
    first_event_ms: float | None = None
    queue_ms: float | None = None
    connect_ms: float | None = None
    duration_ms: float | None = None
    http_status: int | None = None
    error_code: str | None = None
    provider_miss_reason: str | None = None
    shadow_mode: Mode | None = None
    shadow_reason: Reason | None = None
