"""The one module that writes to ``turns``. Each change takes the rollups along in its transaction.

All functions are called within a transaction that writes (``database.WRITES``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlalchemy import ColumnElement, Connection, bindparam, delete, select, update

from app.errors import LedgerError
from app.ledger.inserting import insert_new
from app.ledger.models import turns
from app.ledger.rollups import apply, lives, session_ends
from app.ledger.rollups.contribution import Contributions
from app.ledger.rows import COLUMNS, TurnRow

c = turns.c
_columns = [c[name] for name in COLUMNS]
NOT_BUILT = LedgerError(
    "rollups_missing",
    "The ledger has rows that its rollups do not count yet.",
    "Count them with: warmline db rollup",
)
AT_ONCE = 500
"""Rows that are read before they are changed: values of a list in one statement.

Who shares PostgreSQL with others that write changes no more in one transaction: sums are locked in
the order of their keys within each of these parts only, and two that go on to another part may
wait for each other in a circle."""


def insert_rows(connection: Connection, rows: Sequence[TurnRow]) -> list[TurnRow]:
    """Insert rows; one whose ``turn_id`` is there already is left alone. Returns the new ones."""
    new = insert_new(connection, rows)
    if new:
        made = Contributions()
        made.add(new)
        _count(connection, made, new)
    return new


def update_rows(connection: Connection, rows: Sequence[TurnRow]) -> int:
    """Give rows other values, by ``turn_id``; returns how many of them there are."""
    changed = 0
    for some in _parts(rows):
        new = {row.turn_id: row for row in some}
        old = [row for row in _locked(connection, c.turn_id.in_(new)) if row != new[row.turn_id]]
        changed += len(old)
        if not old:
            continue
        after = [new[row.turn_id] for row in old]
        connection.execute(
            update(turns).where(c.turn_id == bindparam("of_turn")),
            [
                dict(zip(COLUMNS, row.values(), strict=True)) | {"of_turn": row.turn_id}
                for row in after
            ],
        )
        made = Contributions()
        made.add(old, -1)
        made.add(after)
        _count(connection, made, after, taken=True)
    return changed


def delete_rows(
    connection: Connection,
    condition: ColumnElement[bool],
    *,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Delete rows as if they had never been, also from the rollups; returns how many."""
    deleted = 0
    while old := _locked(connection, condition, limit=AT_ONCE):
        connection.execute(delete(turns).where(c.turn_id.in_([row.turn_id for row in old])))
        made = Contributions()
        made.add(old, -1)
        _count(connection, made, old, taken=True)
        deleted += len(old)
        if progress is not None:
            progress(deleted)
    return deleted


def prune_rows(connection: Connection, before: int, *, limit: int) -> int:
    """Delete up to ``limit`` rows that started before an instant; the rollups keep them."""
    old = select(c.id).where(c.started_at < before).order_by(c.started_at).limit(limit)
    return connection.execute(delete(turns).where(c.id.in_(old))).rowcount


def _count(
    connection: Connection, made: Contributions, rows: Sequence[TurnRow], *, taken: bool = False
) -> None:
    newest = min(max(row.started_at for row in rows), max(row.recorded_at for row in rows))
    state = apply.advance(connection, newest)
    if state.missing and taken:
        raise NOT_BUILT
    late = {key for start, key, _ in made.sessions if start < state.coarse_until}
    if late:
        lives.hold(connection)
    apply.add(connection, made, state)
    if taken:
        apply.tidy(connection, made, state)
        session_ends.correct(connection, made, state)
    if late:
        lives.refresh(connection, late, state)


def _locked(
    connection: Connection, condition: ColumnElement[bool], limit: int | None = None
) -> list[TurnRow]:
    query = select(*_columns).where(condition).order_by(c.id).limit(limit).with_for_update()
    found = connection.execute(query)
    return [TurnRow(**dict(zip(COLUMNS, values, strict=True))) for values in found]


def _parts(rows: Sequence[TurnRow]) -> Iterator[Sequence[TurnRow]]:
    for first in range(0, len(rows), AT_ONCE):
        yield rows[first : first + AT_ONCE]
