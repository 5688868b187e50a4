"""Three who tell of the prompt cache in one turn: whether they agree, and whose layer a miss was.

- The *client's* side, by the comparison of its requests (``reason``, ``shadow_reason``), or by what
  a log says of them: it sent the same prefix, or a changed one.
- The *provider's* own diagnosis, where it was asked for one.
- The *tokens*: read, or missed (the verdict).

``TABLE`` has a line for all that they can say together; docs/verdicts.md shows the same. Where the
client proved that its prefix is the same and the tokens were missed all the same, the prefix is
*stable and yet cold*: a case for the provider's support, with ids, digests, times and counts, and
no content.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.analysis import testimony
from app.analysis.verdicts import LOSSES, Grade, Verdict
from app.ledger.rows import TurnRow, iso

COLUMNS = (
    "reason",
    "shadow_reason",
    "changed_fields",
    "provider_miss_reason",
    "cache_verdict",
    "cache_grade",
    "missed_tokens",
)
"""All that is asked of a row; of ``missed_tokens`` only whether there are any."""


class Says(StrEnum):
    SAME = "same"
    """The prefix is that of before (client); it was found (provider)."""
    CHANGED = "changed"
    """The prefix or the identity is another one."""
    NOTHING = "nothing"


class Tokens(StrEnum):
    READ = "read"
    """What could be read again was."""
    MISSED = "missed"
    PAUSE = "missed_after_pause"
    """Missed, and the pause before accounts for it, or may."""
    UNKNOWN = "unknown"
    """Nothing to read again, or not judged."""


class Accord(StrEnum):
    AGREE = "agree"
    CONTRADICT = "contradict"
    UNKNOWN = "unknown"
    """Fewer than two of them tell anything that could be held against each other."""


class Layer(StrEnum):
    CLIENT = "client"
    BETWEEN = "between"
    """The gateway, a proxy, a router, the wire: what arrived is not what was sent, or where."""
    PROVIDER = "provider"
    UNKNOWN = "unknown"
    """Also where nothing was missed."""


@dataclass(frozen=True, slots=True)
class Witnessed:
    accord: Accord
    layer: Layer
    sentence: str


_SAME, _CHANGED, _NOTHING = Says.SAME, Says.CHANGED, Says.NOTHING
_ANY = (_NOTHING, _SAME, _CHANGED)
_LINES: tuple[tuple[tuple[Says, ...], tuple[Says, ...], Tokens, Accord, Layer, str], ...] = (
    # client, provider, tokens
    ((_SAME,), (_NOTHING, _SAME), Tokens.READ, Accord.AGREE, Layer.UNKNOWN,
     "The prefix was the same, and it was read."),
    ((_SAME,), (_CHANGED,), Tokens.READ, Accord.CONTRADICT, Layer.UNKNOWN,
     "The provider names a change, though the prefix was the same and was read."),
    ((_CHANGED,), _ANY, Tokens.READ, Accord.AGREE, Layer.UNKNOWN,
     "What changed lies behind what could be read: nothing was lost."),
    ((_NOTHING,), (_NOTHING,), Tokens.READ, Accord.UNKNOWN, Layer.UNKNOWN,
     "Only the tokens tell: what could be read was."),
    ((_NOTHING,), (_SAME,), Tokens.READ, Accord.AGREE, Layer.UNKNOWN,
     "The provider found the prefix, and it was read."),
    ((_NOTHING,), (_CHANGED,), Tokens.READ, Accord.UNKNOWN, Layer.UNKNOWN,
     "The provider names a change, and yet what could be read was."),
    ((_SAME,), (_NOTHING, _SAME), Tokens.MISSED, Accord.CONTRADICT, Layer.PROVIDER,
     "The prefix was proven to be the same, and yet it was not read: the provider lost it."),
    ((_SAME,), (_CHANGED,), Tokens.MISSED, Accord.CONTRADICT, Layer.BETWEEN,
     "The prefix left unchanged and arrived changed: something between changed it."),
    ((_CHANGED,), (_NOTHING, _CHANGED), Tokens.MISSED, Accord.AGREE, Layer.CLIENT,
     "The request changed, and what had been cached was not read."),
    ((_CHANGED,), (_SAME,), Tokens.MISSED, Accord.CONTRADICT, Layer.UNKNOWN,
     "The request changed and tokens were missed, and yet the provider says that it found them."),
    ((_NOTHING,), (_NOTHING,), Tokens.MISSED, Accord.UNKNOWN, Layer.UNKNOWN,
     "Only the tokens tell: some were missed, and nobody says why."),
    ((_NOTHING,), (_SAME,), Tokens.MISSED, Accord.CONTRADICT, Layer.UNKNOWN,
     "The provider says that it found the prefix, and yet tokens were missed."),
    ((_NOTHING,), (_CHANGED,), Tokens.MISSED, Accord.AGREE, Layer.CLIENT,
     "The provider names what changed, and tokens were missed."),
    ((_SAME,), (_NOTHING, _SAME), Tokens.PAUSE, Accord.AGREE, Layer.CLIENT,
     "The prefix was the same, and the cache ran out in the pause before."),
    ((_SAME,), (_CHANGED,), Tokens.PAUSE, Accord.CONTRADICT, Layer.BETWEEN,
     "The prefix left unchanged and arrived changed, after a long pause."),
    ((_SAME,), (_NOTHING,), Tokens.UNKNOWN, Accord.UNKNOWN, Layer.UNKNOWN,
     "The prefix was the same; the tokens tell nothing."),
    ((_SAME,), (_SAME,), Tokens.UNKNOWN, Accord.AGREE, Layer.UNKNOWN,
     "The prefix was the same, and the provider found it."),
    ((_SAME,), (_CHANGED,), Tokens.UNKNOWN, Accord.CONTRADICT, Layer.UNKNOWN,
     "The provider names a change, though the prefix was the same; the tokens tell nothing."),
    ((_CHANGED,), (_NOTHING,), Tokens.UNKNOWN, Accord.UNKNOWN, Layer.UNKNOWN,
     "The request changed; the tokens tell nothing."),
    ((_CHANGED,), (_SAME,), Tokens.UNKNOWN, Accord.UNKNOWN, Layer.UNKNOWN,
     "The request changed, and the provider found what comes before the change."),
    ((_CHANGED,), (_CHANGED,), Tokens.UNKNOWN, Accord.AGREE, Layer.UNKNOWN,
     "The request changed, and the provider says so; the tokens tell nothing."),
    ((_NOTHING,), (_NOTHING,), Tokens.UNKNOWN, Accord.UNKNOWN, Layer.UNKNOWN,
     "Nobody tells anything."),
    ((_NOTHING,), (_SAME,), Tokens.UNKNOWN, Accord.UNKNOWN, Layer.UNKNOWN,
     "Only the provider tells: it found the prefix."),
    ((_NOTHING,), (_CHANGED,), Tokens.UNKNOWN, Accord.UNKNOWN, Layer.UNKNOWN,
     "Only the provider tells: it names a change."),
)  # fmt: skip
TABLE: dict[tuple[Says, Says, Tokens], Witnessed] = {
    (client, provider, tokens): Witnessed(accord, layer, sentence)
    for clients, providers, tokens, accord, layer, sentence in _LINES
    for client in clients
    for provider in providers
}
"""What follows of all that client, provider and tokens may say. A pause accounts for a miss only
where the prefix is known to be the same."""
OTHER_KEY = Witnessed(
    Accord.UNKNOWN,
    Layer.UNKNOWN,
    "The provider names another cache key, and yet what could be read was: this happens, and "
    "nothing is lost.",
)
"""No contradiction, though the prefix was the same: the key only steers where a cache is looked
for."""
ROUTED = Witnessed(
    Accord.AGREE,
    Layer.BETWEEN,
    "The prefix was the same, and went to another account, upstream or model, which has a cache of "
    "its own.",
)
PERHAPS_A_PAUSE = Witnessed(
    Accord.UNKNOWN,
    Layer.UNKNOWN,
    "The prefix was the same, and the cache may have run out in the pause before; the provider may "
    "as well have lost it sooner.",
)


def witnessed(row: TurnRow) -> Witnessed:
    """What the three say of a turn together."""
    client, provider, tokens = said = says(row)
    if said == (Says.SAME, Says.CHANGED, Tokens.READ) and (
        row.provider_miss_reason == _KEY_CHANGED
    ):
        return OTHER_KEY
    unchanged = client == Says.SAME and provider != Says.CHANGED
    if unchanged and tokens == Tokens.MISSED and row.cache_verdict == Verdict.IDENTITY_CHANGE:
        return ROUTED
    if unchanged and tokens == Tokens.PAUSE and row.cache_grade == Grade.POSSIBLE:
        return PERHAPS_A_PAUSE
    return TABLE[said]


_KEY_CHANGED = "prompt_cache_key_changed"


def says(row: TurnRow) -> tuple[Says, Says, Tokens]:
    """What client, provider and tokens say, each by itself."""
    client = _client(row)
    return client, _provider(row), _tokens(row, client)


def layer_of(row: TurnRow) -> Layer:
    """Whose doing the miss of a judged turn was; unknown also where nothing was missed."""
    return witnessed(row).layer


def is_stable_but_cold(row: TurnRow) -> bool:
    """Whether a turn missed tokens although its prefix was proven to be the same, and no pause,
    change of identity or word of the provider accounts for it.

    Where the provider names a change, the pause is not looked at: such a turn is none.
    """
    return (
        testimony.proven_same(row)
        and _missed(row)
        and row.cache_verdict not in (Verdict.IDLE, Verdict.IDENTITY_CHANGE)
        and testimony.reported_change(row) is None
    )


def _client(row: TurnRow) -> Says:
    if testimony.proven_same(row):
        return Says.SAME
    if testimony.proven_change(row) is not None:
        return Says.CHANGED
    # Told from the columns of two requests, which hold what was asked for.
    by_columns = row.cache_verdict == Verdict.IDENTITY_CHANGE and row.cache_grade == Grade.LIKELY
    return Says.CHANGED if by_columns else Says.NOTHING


def _provider(row: TurnRow) -> Says:
    if testimony.reported_hit(row):
        return Says.SAME
    return Says.NOTHING if testimony.reported_change(row) is None else Says.CHANGED


def _tokens(row: TurnRow, client: Says) -> Tokens:
    if _missed(row):
        pause = client == Says.SAME and row.cache_verdict == Verdict.IDLE
        return Tokens.PAUSE if pause else Tokens.MISSED
    read = row.cache_verdict in (Verdict.HIT, Verdict.SHORTFALL)
    return Tokens.READ if read else Tokens.UNKNOWN


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
