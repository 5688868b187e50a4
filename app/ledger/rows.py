"""One turn as the rest of the service sees it: plain, never tied to a database session.

``COLUMNS`` is the contract: the names, in this order, are the header of the CSV, the fields of
the API and the columns of the table. New columns are added at the end. ``docs/ledger.md`` says
what each one means.

Times are integers: milliseconds since the Unix epoch, UTC. They sort, bucket and compare the
same way on every database, and no driver can attach a wrong time zone to them. ``iso`` renders
them. ``None`` is unknown, never zero.
"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, cast

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True, kw_only=True)
class TurnRow:
    """Nobody changes it but who has it from its maker and writes it: the writer, which sets
    ``recorded_at`` and the price, and an import. Not frozen, and not copied: with so many fields
    that takes four times as long, and one is made for every turn."""

    # The turn
    turn_id: str
    started_at: int
    """The client's request was received."""
    ended_at: int
    recorded_at: int
    """The row was written; set by the writer."""
    source: str
    kind: str
    status: str
    # Whose it is
    session: str | None
    session_key: str
    root_session: str | None
    turn_group: str | None
    tenant: str
    chain: str | None
    epoch: int | None
    epoch_turn: int | None
    client: str | None
    client_version: str | None
    client_transport: str | None
    gateway_version: str | None
    upstream: str
    # What was asked for
    model: str | None
    reasoning_effort: str | None
    service_tier: str | None
    # How it was sent, and why
    mode: str | None
    reason: str | None
    epoch_reset_reason: str | None
    eligible: bool
    changed_fields: str | None
    """Names joined by commas."""
    fallback_reason: str | None
    attempts: int | None
    connection: str | None
    previous_response_id: str | None
    response_id: str | None
    prompt_cache_key: str | None
    store: bool | None
    items_total: int | None
    items_sent: int | None
    baseline_items: int | None
    bytes_total: int | None
    bytes_sent: int | None
    frozen_items: int | None
    # Where two transcripts part
    diverged_at: int | None
    diverged_kind: str | None
    diverged_path: str | None
    diverged_class: str | None
    fingerprint: str | None
    evidence: str | None
    """A JSON object; ``evidence_object`` decodes it."""
    tools_digest: str | None
    instructions_digest: str | None
    prefix_digest: str | None
    baseline_digest: str | None
    # Tokens
    input_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    cache_write_long_tokens: int | None
    non_cached_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    total_tokens: int | None
    usage_state: str
    # Time
    ttft_ms: float | None
    first_event_ms: float | None
    queue_ms: float | None
    connect_ms: float | None
    duration_ms: float | None
    # The end
    http_status: int | None
    error_code: str | None
    # What is concluded later
    cache_verdict: str | None
    cache_grade: str | None
    missed_tokens: int | None
    provider_miss_reason: str | None
    shadow_mode: str | None
    shadow_reason: str | None
    cost_usd: Decimal | None
    price_note: str | None
    import_id: str | None

    @classmethod
    def of(cls, values: Iterable[Any]) -> TurnRow:
        """The row of the values in the order of ``COLUMNS``. Raises ``ValueError`` where one is
        missing, or too many."""
        return cls(**dict(zip(COLUMNS, values, strict=True)))

    @classmethod
    def of_some(cls, columns: Sequence[str], values: Sequence[Any], **more: Any) -> TurnRow:
        """A row of which only these columns are known."""
        return cls(**(_UNKNOWN | dict(zip(columns, values, strict=True)) | more))

    def values(self) -> tuple[Any, ...]:
        """The values in the order of ``COLUMNS``."""
        return tuple(getattr(self, name) for name in COLUMNS)

    @property
    def evidence_object(self) -> dict[str, Any] | None:
        return None if self.evidence is None else json.loads(self.evidence)

    @property
    def changed_field_names(self) -> tuple[str, ...]:
        return tuple(self.changed_fields.split(",")) if self.changed_fields else ()

    def as_dict(self) -> dict[str, Any]:
        """The row as the API and JSONL show it.

        Times as ISO 8601, ``evidence`` as an object, ``changed_fields`` as a list, money as a
        decimal string.
        """
        return as_json_object(COLUMNS, self.values())


COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(TurnRow))
_UNKNOWN: dict[str, Any] = dict.fromkeys(COLUMNS)
TIME_COLUMNS = frozenset({"started_at", "ended_at", "recorded_at"})
BOOL_COLUMNS = frozenset({"eligible", "store"})
DECIMAL_COLUMNS = frozenset({"cost_usd"})
FLOAT_COLUMNS = frozenset({"ttft_ms", "first_event_ms", "queue_ms", "connect_ms", "duration_ms"})
INT_COLUMNS = frozenset(
    {
        "epoch",
        "epoch_turn",
        "attempts",
        "items_total",
        "items_sent",
        "baseline_items",
        "bytes_total",
        "bytes_sent",
        "frozen_items",
        "diverged_at",
        "input_tokens",
        "cached_tokens",
        "cache_write_tokens",
        "cache_write_long_tokens",
        "non_cached_tokens",
        "output_tokens",
        "reasoning_tokens",
        "total_tokens",
        "http_status",
        "missed_tokens",
    }
)
TEXT_COLUMNS = (
    frozenset(COLUMNS) - TIME_COLUMNS - BOOL_COLUMNS - DECIMAL_COLUMNS - FLOAT_COLUMNS - INT_COLUMNS
)

CLIENT_NAMES = frozenset({"session", "root_session", "turn_group", "prompt_cache_key"})
"""The columns with names that clients chose: what the setting ``pseudonymize`` hashes."""


def to_ms(seconds: float) -> int:
    """Epoch seconds, as clocks give them, to epoch milliseconds, as rows hold them."""
    return round(seconds * 1000)


def iso(ms: int) -> str:
    """``2027-01-15T08:00:00.000Z``."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds")[:-6] + "Z"


def nano(value: Decimal) -> int:
    """Dollars to nano-dollars, as sums count them."""
    return int(value.scaleb(9).to_integral_value())


def money(value: Decimal) -> str:
    """A plain decimal number: no exponent, no trailing zeros."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def as_json_object(columns: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, Any]:
    """``TurnRow.as_dict`` for values that were never made a row, as a stream yields them."""
    shown: dict[str, Any] = dict(zip(columns, values, strict=True))
    for name, form in _JSON_FORMS.items():
        value = shown.get(name)
        if value is not None:
            shown[name] = form(value)
    return shown


_JSON_FORMS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(TIME_COLUMNS, iso),
    **dict.fromkeys(DECIMAL_COLUMNS, money),
    "evidence": json.loads,
    "changed_fields": lambda names: names.split(","),
}
"""The values that are not shown as they are."""


@cache
def light(columns: tuple[str, ...]) -> Callable[[Iterable[Any]], TurnRow]:
    """What makes rows of these columns that are only read: they have no others, not even as
    unknown. Ten times as fast as ``of_some``, where there are thousands."""
    lean = {
        "__slots__": (),
        "evidence_object": TurnRow.evidence_object,
        "changed_field_names": TurnRow.changed_field_names,
    }
    kind: Any = type("LightRow", (namedtuple("LightRow", columns),), lean)  # noqa: PYI024
    return cast("Callable[[Iterable[Any]], TurnRow]", kind._make)
