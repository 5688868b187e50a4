"""Three who tell of the prompt cache in one turn, and whose layer a miss was by what they say.

- The *client's* side, by the comparison of its requests (``reason``, ``shadow_reason``): it sent
  the same prefix, or a changed one.
- The *provider's* own diagnosis, where it was asked for one.
- The *tokens*: read, or missed (the verdict).

From what they say follows whose layer it was, as far as that can be told. Where the client proved
that its prefix is the same and the tokens were missed all the same, the prefix is *stable and yet
cold*: a case for the provider's support, with ids, digests, times and counts, and no content.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from app.analysis import testimony
from app.analysis.verdicts import LOSSES, Verdict
from app.ledger.rows import TurnRow, iso


class Says(StrEnum):
    SAME = "same"
    """The prefix is that of before (client); it was found (provider)."""
    CHANGED = "changed"
    """The prefix or the identity is another one."""
    NOTHING = "nothing"


class Layer(StrEnum):
    CLIENT = "client"
    BETWEEN = "between"
    """The gateway, a proxy, the wire: what arrived is not what was sent."""
    PROVIDER = "provider"
    UNKNOWN = "unknown"


def layer_of(row: TurnRow) -> Layer:
    """Whose doing the miss of a judged turn was; unknown also where nothing was missed."""
    if not _missed(row):
        return Layer.UNKNOWN
    client, provider = _client(row), _provider(row)
    if client == Says.SAME:
        if provider == Says.CHANGED:
            return Layer.BETWEEN
        # A cache that ran out in a pause is nobody's fault but the pause's.
        return Layer.CLIENT if row.cache_verdict == Verdict.IDLE else Layer.PROVIDER
    if provider == Says.SAME:
        return Layer.UNKNOWN
    return Layer.CLIENT if Says.CHANGED in (client, provider) else Layer.UNKNOWN


def is_stable_but_cold(row: TurnRow) -> bool:
    """Whether a turn missed tokens although its prefix was proven to be the same, and no pause
    or change of identity accounts for it."""
    return (
        testimony.proven_same(row)
        and _missed(row)
        and row.cache_verdict not in (Verdict.IDLE, Verdict.IDENTITY_CHANGE)
    )


def _client(row: TurnRow) -> Says:
    if testimony.proven_same(row):
        return Says.SAME
    return Says.NOTHING if testimony.proven_change(row) is None else Says.CHANGED


def _provider(row: TurnRow) -> Says:
    if testimony.reported_hit(row):
        return Says.SAME
    return Says.NOTHING if testimony.reported_change(row) is None else Says.CHANGED


def _missed(row: TurnRow) -> bool:
    return row.cache_verdict in LOSSES and bool(row.missed_tokens)


_EVIDENCE = (
    "turn_id", "response_id", "previous_response_id", "connection", "upstream", "model",
    "service_tier", "reasoning_effort", "mode", "reason", "prefix_digest", "baseline_digest",
    "tools_digest", "instructions_digest", "items_total", "items_sent", "input_tokens",
    "cached_tokens", "cache_write_tokens", "missed_tokens", "cache_verdict", "cache_grade",
    "provider_miss_reason", "http_status",
)  # fmt: skip


def evidence(row: TurnRow) -> dict[str, Any]:
    """One turn for a support ticket: ids, digests, times and counts; no content, and no names that
    a client chose."""
    told = {name: getattr(row, name) for name in _EVIDENCE}
    times = {"started_at": iso(row.started_at), "ended_at": iso(row.ended_at)}
    return times | {name: value for name, value in told.items() if value is not None}
