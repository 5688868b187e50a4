"""A row of the ledger from the values of its own export, checked before it is believed.

A file may have been edited, cut or made by somebody else: what comes in is held to what
``app.ledger.facts`` lets into the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from app.ledger.facts import (
    BIG_LIMIT,
    EVIDENCE_LIMIT,
    INTEGER_LIMIT,
    NAMES_LIMIT,
    PATH_LIMIT,
    TEXT_LIMIT,
    TOKENS_LIMIT,
)
from app.ledger.rows import (
    BOOL_COLUMNS,
    COLUMNS,
    DECIMAL_COLUMNS,
    FLOAT_COLUMNS,
    INT_COLUMNS,
    TIME_COLUMNS,
    TurnRow,
)
from engine.model import Kind, Mode, Status, UsageState

REQUIRED = (
    "turn_id",
    "started_at",
    "source",
    "kind",
    "status",
    "session_key",
    "tenant",
    "upstream",
    "eligible",
    "usage_state",
)
"""Columns without which a turn is not known, or would be counted as what it was not."""
IDENTIFYING = frozenset({"turn_id", "started_at"})
"""Columns by which a file of ours is told from others."""
NO_TIME = "is no time in ISO 8601 with Z or an offset"

_WORDS = {
    "kind": frozenset(Kind),
    "status": frozenset(Status),
    "mode": frozenset(Mode),
    "usage_state": frozenset(UsageState),
}
_LIMITS = {
    "evidence": EVIDENCE_LIMIT + 1_024,
    "diverged_path": PATH_LIMIT,
    "changed_fields": NAMES_LIMIT * (3 * TEXT_LIMIT + 1),
    "price_note": PATH_LIMIT,
}
_DEPTH = 8
"""Levels of evidence; ours has four."""
_HIGHEST = {
    **dict.fromkeys(("bytes_total", "bytes_sent"), BIG_LIMIT),
    **dict.fromkeys(("input_tokens", "output_tokens"), TOKENS_LIMIT),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_UNKNOWN: dict[str, Any] = dict.fromkeys(COLUMNS)
_object = msgspec.json.Decoder(dict[str, Any]).decode


class BadCell(Exception):
    """A value that cannot be: which column's, and why, without the value."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(column, reason)
        self.column = column
        self.reason = reason


def missing_columns(names: Iterable[str]) -> list[str]:
    """The required columns that are not among these."""
    given = frozenset(names)
    return [name for name in REQUIRED if name not in given]


def row_of(values: Mapping[str, Any]) -> TurnRow:
    """The row with these values, which are of their columns' types. Raises ``BadCell``.

    ``import_id`` is another ledger's and is left out. Where the end, the time of recording, or a
    figure that follows from two others is not there, it is worked out.
    """
    row = {**_UNKNOWN, **values, "import_id": None}
    for name in REQUIRED:
        if row[name] is None or row[name] == "":
            raise BadCell(name, "is empty")
    for name, words in _WORDS.items():
        if row[name] is not None and row[name] not in words:
            raise BadCell(name, "is none of the words that this version knows")
    started_at, duration = row["started_at"], row["duration_ms"]
    if row["ended_at"] is None:
        row["ended_at"] = started_at + round(duration or 0)
    if row["recorded_at"] is None:
        row["recorded_at"] = row["ended_at"]
    if row["ended_at"] < started_at:
        raise BadCell("ended_at", "is before started_at")
    _add_up(row)
    return TurnRow(**row)


def _add_up(row: dict[str, Any]) -> None:
    given, cached, out = row["input_tokens"], row["cached_tokens"], row["output_tokens"]
    if given is not None and cached is not None:
        if cached > given:
            raise BadCell("cached_tokens", "is more than input_tokens")
        _follows(row, "non_cached_tokens", given - cached)
    if given is not None and out is not None:
        _follows(row, "total_tokens", given + out)


def _follows(row: dict[str, Any], name: str, value: int) -> None:
    if row[name] is None:
        row[name] = value
    elif row[name] != value:
        raise BadCell(name, "does not agree with the other tokens")


# Values as they are in JSON; CSV has texts only, and makes these of them.


def time_of(name: str, text: Any) -> int:
    try:
        moment = datetime.fromisoformat(text)
        ms = (moment - _EPOCH) // _MILLISECOND
    except (ValueError, TypeError, OverflowError):
        raise BadCell(name, NO_TIME) from None
    if ms < 0:
        raise BadCell(name, "is before 1970")
    return ms


def count_of(name: str, value: Any) -> int:
    limit = _HIGHEST.get(name, INTEGER_LIMIT)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadCell(name, "is no whole number")
    if not 0 <= value <= limit:
        raise BadCell(name, "is below 0 or too great")
    return value


def milliseconds_of(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadCell(name, "is no number")
    if not math.isfinite(value) or value < 0:
        raise BadCell(name, "is below 0 or too great")
    return float(value)


def money_of(name: str, value: Any) -> Decimal:
    try:
        amount = Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        raise BadCell(name, "is no decimal number") from None
    if not amount.is_finite() or not 0 <= amount < 10**9:
        raise BadCell(name, "is below 0 or too great")
    return round(amount, 9)


def flag_of(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadCell(name, "is neither true nor false")
    return value


def text_of(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadCell(name, "is no text")
    limit = _LIMITS.get(name, TEXT_LIMIT)
    if len(value) > limit:
        raise BadCell(name, f"is longer than {limit} characters")
    if "\x00" in value:
        raise BadCell(name, "holds a NUL")
    return value


def evidence_of(name: str, text: str) -> str:
    """Evidence as the text of a JSON object, which stays as it is."""
    text = text_of(name, text)
    try:
        found = _object(text)
    except (msgspec.DecodeError, RecursionError):
        raise BadCell(name, "is no JSON object") from None
    if _deeper(found, _DEPTH):
        raise BadCell(name, "is nested too deeply")
    return text


def _deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper(part, levels - 1) for part in inner)


Value = Callable[[str, Any], Any]


def kinds(**by_kind: Value) -> dict[str, Value]:
    """For each column the function of its kind: ``time``, ``count``, ``milliseconds``, ``money``,
    ``flag`` or ``text``."""
    of: dict[str, Value] = dict.fromkeys(COLUMNS, by_kind["text"])
    for names, kind in (
        (TIME_COLUMNS, "time"),
        (INT_COLUMNS, "count"),
        (FLOAT_COLUMNS, "milliseconds"),
        (DECIMAL_COLUMNS, "money"),
        (BOOL_COLUMNS, "flag"),
    ):
        of |= dict.fromkeys(names, by_kind[kind])
    return of
