"""Three who tell of the prompt cache in one turn, and whether their stories fit together.

- The *client's* side, by the comparison of its requests (``reason``, ``shadow_reason``): it sent
  the same prefix, or a changed one.
- The *provider's* own diagnosis, where it was asked for one.
- The *tokens*: read, or missed (the verdict).

From what they say follows whose layer it was, as far as that can be told. Where the client proved
that its prefix is the same and the tokens were missed all the same, the prefix is *stable and yet
cold*: a case for the provider's support, with ids, digests, times and counts, and no content.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.analysis import testimony
from app.analysis.verdicts import LOSSES, Verdict
from app.ledger.rows import TurnRow, iso


class Says(StrEnum):
    SAME = "same"
    """The prefix is that of before (client); it was found (provider); it was read (tokens)."""
    CHANGED = "changed"
    """The prefix or the identity is another one (client, provider); tokens were missed."""
    NOTHING = "nothing"


class Accord(StrEnum):
    AGREE = "agree"
    CONTRADICT = "contradict"
    UNKNOWN = "unknown"
    """Fewer than two of them say anything."""


class Layer(StrEnum):
    CLIENT = "client"
    BETWEEN = "between"
    """The gateway, a proxy, the wire: what arrived is not what was sent."""
    PROVIDER = "provider"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Witnessed:
    client: Says
    provider: Says
    tokens: Says
    accord: Accord
    layer: Layer
    """Whose doing a miss was; unknown also where nothing was missed."""


def hear(row: TurnRow) -> Witnessed:
    """What the three say of a judged turn."""
    client, provider = _client(row), _provider(row)
    tokens = _tokens(row)
    said = {one for one in (client, provider, tokens) if one != Says.NOTHING}
    count = sum(one != Says.NOTHING for one in (client, provider, tokens))
    if count < 2:
        accord = Accord.UNKNOWN
    elif tokens == Says.SAME and provider != Says.CHANGED:
        # A change behind what was read is legal: the client's word is of the wire.
        accord = Accord.AGREE
    else:
        accord = Accord.AGREE if len(said) == 1 else Accord.CONTRADICT
    return Witnessed(client, provider, tokens, accord, _layer(row, client, provider, tokens))


def is_stable_but_cold(row: TurnRow) -> bool:
    """Whether a turn missed tokens although its prefix was proven to be the same, and no pause
    or change of identity accounts for it."""
    return (
        testimony.proven_same(row)
        and _tokens(row) == Says.CHANGED
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


def _tokens(row: TurnRow) -> Says:
    if row.cache_verdict in LOSSES and row.missed_tokens:
        return Says.CHANGED
    return Says.SAME if row.cache_verdict == Verdict.HIT else Says.NOTHING


def _layer(row: TurnRow, client: Says, provider: Says, tokens: Says) -> Layer:
    if tokens != Says.CHANGED:
        return Layer.UNKNOWN
    if client == Says.SAME:
        if provider == Says.CHANGED:
            return Layer.BETWEEN
        # A cache that ran out in a pause is nobody's fault but the pause's.
        return Layer.CLIENT if row.cache_verdict == Verdict.IDLE else Layer.PROVIDER
    if provider == Says.SAME:
        return Layer.UNKNOWN
    return Layer.CLIENT if Says.CHANGED in (client, provider) else Layer.UNKNOWN


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


DRIFTS = ("prompt_cache_key", "session", "service_tier", "connection")
"""What a cache, or the way to it, may depend on and a session should keep."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One of ``DRIFTS`` that changed within a session."""

    name: str
    changes: int
    """Turns at which it was another one than at the turn before in the chain."""
    cold: int
    """Those of them that missed tokens."""
    missed: int
    """The tokens. Where several changed at once, each of them has these."""


def drifts(rows: Iterable[TurnRow]) -> list[Drift]:
    """What changed within one session, whose rows come in their order; the dearest first.

    A turn is held against the one before it in its chain, and the first of a chain against the
    turn before it. What one of the two does not tell is no change.
    """
    last: TurnRow | None = None
    of_chain: dict[str, TurnRow] = {}
    found: dict[str, list[int]] = {}
    for row in rows:
        before = of_chain.get(row.chain, last) if row.chain is not None else last
        if before is not None:
            lost = (row.missed_tokens or 0) if _tokens(row) == Says.CHANGED else 0
            for name in DRIFTS:
                old, new = getattr(before, name), getattr(row, name)
                if old is not None and new is not None and old != new:
                    sums = found.setdefault(name, [0, 0, 0])
                    sums[0] += 1
                    sums[1] += lost > 0
                    sums[2] += lost
        last = row
        if row.chain is not None:
            of_chain[row.chain] = row
    made = [Drift(name, *sums) for name, sums in found.items()]
    return sorted(made, key=lambda drift: (-drift.missed, -drift.changes, drift.name))
