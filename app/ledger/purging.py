"""Deleting a session or a tenant, as if it had never been.

Its rows go from the table and from every sum; keys stay, of which nothing can be read, so that no
import brings them back by accident. What rows had added that retention has deleted already goes
too, as far as it is known: all of a tenant, of a session only its own sums.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Engine, and_, func, or_, select, update

from app.errors import LedgerError
from app.ledger import imports, merging, store
from app.ledger.database import WRITES
from app.ledger.models import imports as imports_table
from app.ledger.models import merged_records, turns
from app.ledger.rollups import forget, tables
from app.ledger.rollups import state as states
from app.ledger.rollups.contribution import DAY, start_of
from app.ledger.rollups.state import RollupState

_NAME = 8
"""Characters from which on a session's name is looked for in names of imported files."""
_PURGED = "(purged)"
c, s, m = turns.c, tables.sessions.c, merged_records.c


@dataclass(frozen=True, slots=True)
class Target:
    """Exactly one of ``session`` (its name or key) and ``tenant``."""

    session: str | None = None
    tenant: str | None = None
    before: int | None = None
    """Only what started before (epoch ms)."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a purge would delete."""

    rows: int
    sessions: int
    first_at: int | None
    last_at: int | None
    tenants: int
    summed: int
    """Turns that only the sums of sessions still count, as their rows were deleted as too old."""

    @property
    def nothing(self) -> bool:
        return not self.rows and not self.summed


def look(engine: Engine, target: Target) -> Found:
    """What there is of a target."""
    with engine.connect() as connection:
        query = select(
            func.count(),
            func.count(c.session_key.distinct()),
            func.min(c.started_at),
            func.max(c.started_at),
            func.count(c.tenant.distinct()),
        ).where(_rows(connection, target))
        rows, sessions, first_at, last_at, tenants = connection.execute(query).one()
        until = _pruned_until(states.read(connection), target)
        merged = select(func.count()).where(_merged(target))
        rows += connection.execute(merged).scalar_one()
        summed = 0
        if until is not None:
            summed = forget.turns_of(connection, _sums(connection, target), until)
            waiting = select(func.count()).where(_rows(connection, target), c.started_at < until)
            summed -= connection.execute(waiting).scalar_one()
    return Found(rows, sessions, first_at, last_at, tenants, max(summed, 0))


def purge(
    engine: Engine, target: Target, progress: Callable[[int, int], None] = lambda _done, _of: None
) -> int:
    """Delete a target; returns how many rows. May be broken off and repeated.

    Turns that end meanwhile are written all the same: another call finds them. Raises
    ``LedgerError`` where the sums do not count all rows yet.
    """
    writing = engine.execution_options(**WRITES)
    total = look(engine, target).rows
    with engine.connect() as connection:
        # Settled first: later nobody knows any more which names its rows had.
        rows, sums = _rows(connection, target), _sums(connection, target)
        names = _names(connection, rows) if target.tenant is None else set()
    deleted = last = 0
    progress(0, total)
    while True:
        with writing.begin() as connection:
            _overwrite(connection)
            ids = merging.part(connection, _merged(target), keep=False)
            imports.bury(connection, ids)
        if not ids:
            break
        deleted += len(ids)
    while True:
        with writing.begin() as connection:
            _overwrite(connection)
            gone, last = _delete(connection, and_(rows, c.id > last), limit=store.AT_ONCE)
        if not last:
            break
        deleted += gone
        progress(min(deleted, total), total)
    with writing.begin() as connection:
        _overwrite(connection)
        state = states.hold(connection, change=True)
        until = _pruned_until(state, target)
        if until is not None:
            # Old turns may have ended meanwhile: none may outlive the sums that count it.
            deleted += _delete(connection, and_(rows, c.started_at < until))[0]
        if until is not None and target.tenant is not None:
            forget.tenant(connection, target.tenant, until, state)
        elif until is not None:
            forget.sessions(connection, sums, until, state)
        forget.unused_keys(connection)
        _forget_names(connection, names)
        merging.forget_names(connection)
    progress(total, total)
    return deleted


def scrub(engine: Engine) -> bool:
    """Leave nothing of what was deleted in an SQLite file; False while others keep it in use.

    Writes the file anew, for which it needs as much room again. On PostgreSQL that is the
    server's business (``VACUUM FULL``), and nothing is done. Raises ``LedgerError`` where the file
    cannot be written for another reason.
    """
    if engine.dialect.name != "sqlite":
        return True
    raw = engine.raw_connection()
    try:
        cursor = raw.cursor()
        cursor.execute("PRAGMA temp_store = FILE")  # memory may be smaller than the ledger
        cursor.execute("VACUUM")
        busy, _, _ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        cursor.close()
        return not busy
    except sqlite3.OperationalError as error:
        # Extended codes say more in their upper bytes.
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return False
        raise LedgerError(
            "not_scrubbed",
            f"What was to be deleted is, but its file could not be written anew ({error}).",
            "That needs as much free room as the ledger has. Make room and purge again.",
        ) from None
    finally:
        raw.close()


def _delete(
    connection: Connection, condition: ColumnElement[bool], limit: int | None = None
) -> tuple[int, int]:
    """Delete rows, oldest written first; how many, and the number of the last one, 0 for none."""
    query = select(c.id, c.turn_id).where(condition).order_by(c.id).limit(limit)
    found = connection.execute(query).all()
    if not found:
        return 0, 0
    gone = store.delete_rows(connection, c.id.in_([row.id for row in found]))
    ids = [row.turn_id for row in found]
    imports.bury(connection, [*ids, *merging.forget(connection, ids)])
    return gone, found[-1].id


def _overwrite(connection: Connection) -> None:
    """What this transaction deletes is written over."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA secure_delete = ON")


def _rows(connection: Connection, target: Target) -> ColumnElement[bool]:
    if target.tenant is not None:
        whose: ColumnElement[bool] = c.tenant == target.tenant
    else:
        whose = _of_session(connection, target.session or "")
    return whose if target.before is None else and_(whose, c.started_at < target.before)


def _merged(target: Target) -> ColumnElement[bool]:
    """Records that have no rows of their own; by its name a session's gateways' rows have them."""
    whose = m.session_key == target.session if target.tenant is None else m.tenant == target.tenant
    return whose if target.before is None else and_(whose, m.started_at < target.before)


def _of_session(connection: Connection, name: str) -> ColumnElement[bool]:
    """The rows of a session, and those of sub-agents that name it as theirs."""
    own = or_(c.session == name, c.session_key == name)
    query = select(c.tenant, c.upstream, c.session).where(c.session_key == name).distinct()
    of_agents = [
        and_(c.tenant == tenant, c.upstream == upstream, c.root_session == session)
        for tenant, upstream, session in connection.execute(query)
        if session is not None
    ]
    return or_(own, c.root_session == name, *of_agents)


def _sums(connection: Connection, target: Target) -> ColumnElement[bool]:
    """The sums of sessions: of those that have rows, and of those that have none any more."""
    if target.tenant is not None:
        return forget.of_tenant(target.tenant)
    query = select(c.session_key).where(_rows(connection, target)).distinct()
    known = connection.execute(query).scalars().all()
    name = target.session
    return or_(s.session == name, s.session_key == name, s.session_key.in_(known))


def _pruned_until(state: RollupState, target: Target) -> int | None:
    """Up to where sums are to be forgotten without their rows; a whole day."""
    if state.rows_from is None or target.before is None:
        return state.rows_from
    return min(state.rows_from, start_of(DAY, target.before))


def _names(connection: Connection, rows: ColumnElement[bool]) -> set[str]:
    found = connection.execute(select(c.session).where(rows).distinct()).scalars()
    return {name for name in found if name is not None and len(name) >= _NAME}


def _forget_names(connection: Connection, names: set[str]) -> None:
    """Files are often called after their session."""
    table = imports_table
    for name in sorted(names):
        named = table.c.names.contains(name, autoescape=True)
        connection.execute(update(table).where(named).values(names=_PURGED))
