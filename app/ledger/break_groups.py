"""What breaks have in common, twice: as SQL for rows in the database, and in Python. A property
test holds the two together.

A break is a turn that could have been continued and was not. Where nothing was decided about
continuing (a log without reasons, a turn that was only observed) it is one that missed tokens.
Breaks of one cause are a group: by their fingerprint; without one by their reason and what is
behind it; without a reason by their verdict.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, literal_column, text

from app.ledger.models import BROKEN, LOSSES, Words, turns
from app.ledger.rows import TurnRow
from engine.model import Kind, Mode, Reason, Status

c = turns.c
_ENDED = frozenset({Status.COMPLETED.value, Status.INCOMPLETE.value})
_INCREMENTAL = frozenset(mode.value for mode in Mode if mode.incremental)
_UNDECIDED = frozenset({None, Reason.CONTINUATION_OFF, Reason.CLIENT_ANCHORED})
"""Reasons with which nothing was decided about continuing."""
_NAMED = ("reason:", "verdict:")
"""What the names of groups without a fingerprint begin with."""

broken: ColumnElement[bool] = text(BROKEN)  # type: ignore[assignment]
group: ColumnElement[str] = literal_column(
    "coalesce(turns.fingerprint, CASE WHEN turns.eligible THEN 'reason:' || "
    "coalesce(turns.reason, 'unknown') || coalesce(':' || nullif(turns.fallback_reason, ''), "
    "':' || nullif(turns.changed_fields, ''), '') ELSE 'verdict:' || turns.cache_verdict END)",
    Words,
)


def group_of(row: TurnRow) -> str | None:
    """The group of a row; None where it is no break."""
    if row.kind != Kind.GENERATION or row.status not in _ENDED:
        return None
    if row.eligible:
        if row.mode is None or row.mode in _INCREMENTAL:
            return None
        behind = row.fallback_reason or row.changed_fields
        name = f"reason:{row.reason or 'unknown'}" + (f":{behind}" if behind else "")
    elif row.reason in _UNDECIDED and row.cache_verdict in LOSSES:
        name = f"verdict:{row.cache_verdict}"
    else:
        return None
    return name if row.fingerprint is None else row.fingerprint


def of(name: str | None) -> ColumnElement[bool]:
    """Breaks, or those of a group."""
    if name is None:
        return and_(broken)
    return and_(broken, told_by(name) == name)


def told_by(name: str) -> ColumnElement[str]:
    """What the rows of a group have in common: a column with an index where it has one."""
    return group if name.startswith(_NAMED) else c.fingerprint
