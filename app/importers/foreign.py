"""A row of the ledger from what another tool's log tells of a call; all else stays unknown."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from app.importers.identity import UNPLACED
from app.importers.own_row import BadCell, time_of
from app.ledger.facts import clean, diverged_kind, evidence_json, split
from app.ledger.rows import CLIENT_NAMES, COLUMNS, FLOAT_COLUMNS, TEXT_COLUMNS, TurnRow
from engine.model import NOT_ELIGIBLE, Evidence, Kind, Reason, Status, Usage

UNKNOWN_UPSTREAM = "unknown"
_UNKNOWN: dict[str, Any] = dict.fromkeys(COLUMNS)
_CLEANED = TEXT_COLUMNS - CLIENT_NAMES - {"evidence"}
"""Names of clients the run cleans itself: it may have to hash them, which needs them whole."""
_REASONS = frozenset(Reason)
_NOT_ELIGIBLE = frozenset(str(reason) for reason in NOT_ELIGIBLE)


def turn_id(name: str, *parts: str | int | None) -> str:
    """The id of a record of the format ``name``, by what makes it this record and no other."""
    whole = [name.encode()]
    for part in parts:
        if part is None:
            whole.append(b"-")
        else:
            data = str(part).encode("utf-8", "surrogatepass")
            whole += (len(data).to_bytes(8, "big"), data)
    return f"imported_{blake2b(b''.join(whole), digest_size=16).hexdigest()}"


def chain_of(name: str, *parts: str | int | None) -> str:
    """A conversation's name, short and the same in each file that tells of it."""
    return turn_id(name, "chain", *parts)[-16:]


@dataclass(slots=True)
class Epochs:
    """The epochs of one conversation."""

    _epoch: int = 1
    _turn: int = 0

    def next(self, reset: str | None) -> dict[str, Any]:
        """The columns of its next request; ``reset`` is what lies before it, if anything does.
        Nothing can be reset before the first one."""
        if reset is not None and self._turn:
            self._epoch, self._turn = self._epoch + 1, 0
        self._turn += 1
        return {
            "epoch": self._epoch,
            "epoch_turn": self._turn,
            "epoch_reset_reason": reset,
        }


def row_of(
    name: str,
    identity: tuple[str | int | None, ...],
    *,
    started_at: int,
    usage: Usage,
    ended_at: int | None = None,
    evidence: Evidence | None = None,
    **known: Any,
) -> TurnRow:
    """The row of a call that the format ``name`` tells of, its times in epoch milliseconds.

    ``known`` are other columns; ``duration_ms`` makes the end where that is not given. A row keeps
    the ``recorded_at`` that it had first: where its end moves as the log grows, that is to be told.
    """
    tokens = split(usage)
    start, end = started_at, ended_at
    if end is None:
        end = start + round(known.get("duration_ms") or 0)
    values = {
        **_UNKNOWN,
        "kind": Kind.GENERATION.value,
        "status": Status.COMPLETED.value,
        "upstream": UNKNOWN_UPSTREAM,
        "eligible": eligible(known.get("mode"), known.get("reason")),
        "recorded_at": max(start, end),
        **_checked(known),
        "turn_id": turn_id(name, *identity),
        "source": f"import:{name}",
        "started_at": start,
        "ended_at": max(start, end),
        "tenant": UNPLACED,
        "session_key": UNPLACED,
        "input_tokens": tokens.input,
        "cached_tokens": tokens.cached,
        "cache_write_tokens": tokens.cache_write,
        "cache_write_long_tokens": tokens.cache_write_long,
        "non_cached_tokens": tokens.non_cached,
        "output_tokens": tokens.output,
        "reasoning_tokens": tokens.reasoning,
        "total_tokens": tokens.total,
        "usage_state": tokens.state,
        "evidence": evidence_json(evidence, tokens.reported),
    }
    if evidence is not None:
        values["diverged_at"] = evidence.index
        values["diverged_kind"] = diverged_kind(evidence)
        values["diverged_class"] = evidence.klass and evidence.klass.value
    return TurnRow(**values)


def _checked(known: dict[str, Any]) -> dict[str, Any]:
    """What is known, as every database takes it."""
    values: dict[str, Any] = {}
    for column, value in known.items():
        if value is None:
            continue
        if column in _CLEANED:
            values[column] = clean(value)
        elif column in FLOAT_COLUMNS:
            values[column] = round(float(value), 3)
        else:
            values[column] = value
    return values


def eligible(mode: str | None, reason: str | None) -> bool:
    """Whether a call could have been continued, as far as its reason is a word that we know."""
    return mode is not None and reason in _REASONS and reason not in _NOT_ELIGIBLE


def milliseconds(value: Any) -> int | None:
    """A time in ISO 8601 with an offset as epoch milliseconds; None where it is none."""
    try:
        return time_of("", value)
    except BadCell:
        return None


def host_of(address: Any) -> str | None:
    """The host of an address: whatever else it holds may be secret."""
    try:
        return urlsplit(address).hostname if isinstance(address, str) else None
    except ValueError:
        return None
