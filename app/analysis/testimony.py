"""What client and provider say of a turn's prefix, apart from what was read of it.

The client's word is the comparison of its requests (``reason``; ``shadow_reason`` where nothing was
to come of it); the provider's is its own diagnosis, where it was asked for one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from app.ledger.rows import TurnRow
from engine.model import Reason


class Change(StrEnum):
    PREFIX = "prefix"
    IDENTITY = "identity"
    """Another cache was asked."""
    OTHER = "other"
    """A word of the provider's that this version does not know."""


_PREFIX_FIELDS = frozenset({"tools", "instructions", "input"})
_IDENTITY_FIELDS = frozenset({"model", "service_tier", "prompt_cache_key", "reasoning"})
_REPORTED = {
    **dict.fromkeys(
        (
            "tools_changed",
            "input_changed",
            "instructions_changed",
            "system_changed",
            "messages_changed",
        ),
        Change.PREFIX,
    ),
    **dict.fromkeys(
        ("model_changed", "prompt_cache_key_changed", "service_tier_changed"), Change.IDENTITY
    ),
}
_HIT = "cache_hit"
_NO_DIAGNOSIS = frozenset(
    {_HIT, "comparison_response_not_found", "previous_message_not_found", "unavailable"}
)


def reported_change(row: TurnRow) -> Change | None:
    """The change that the provider names as the reason of a miss."""
    word = row.provider_miss_reason
    if word is None or word in _NO_DIAGNOSIS:
        return None
    return _REPORTED.get(word, Change.OTHER)


def reported_hit(row: TurnRow) -> bool:
    return row.provider_miss_reason == _HIT


def proven_change(row: TurnRow) -> Change | None:
    """The change that the client has proven, if it is one that a cache depends on."""
    reason = compared(row)
    if reason == Reason.PREFIX_MISMATCH:
        return Change.PREFIX
    if reason == Reason.NON_INPUT_FIELDS_CHANGED:
        names = set(row.changed_field_names)
        if names & _PREFIX_FIELDS:
            return Change.PREFIX
        if names & _IDENTITY_FIELDS:
            return Change.IDENTITY
    return None


def proven_same(row: TurnRow) -> bool:
    """Whether the client proved that it sent the same prefix, however the turn went."""
    return compared(row) == Reason.OK


class Told(Protocol):
    """What is read of a row for it."""

    @property
    def reason(self) -> str | None: ...
    @property
    def shadow_reason(self) -> str | None: ...


def compared(row: Told) -> str | None:
    """What came of comparing a turn with the one before, also where nothing was to follow of it."""
    return row.shadow_reason if row.reason == Reason.CONTINUATION_OFF else row.reason
