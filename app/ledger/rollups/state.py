"""How far the rollups go: facts about the ledger as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from app.ledger.models import ledger_facts
from app.ledger.rollups.contribution import start_of

COARSE_UNTIL = "rollups_coarse_until"
MISSING = "rollups_missing"
"""Only there while rows exist that no rollup counts yet: from an upgrade to the first build."""
BREAKS_MISSING = "break_sums_missing"
"""Likewise, of breaks and their sums."""
ROWS_FROM = "rows_kept_from"
ROLLUPS_FROM = "rollups_kept_from"
_NAMES = ", ".join(
    f"'{name}'" for name in (COARSE_UNTIL, MISSING, BREAKS_MISSING, ROWS_FROM, ROLLUPS_FROM)
)
_FACTS = f"SELECT name, value FROM ledger_facts WHERE name IN ({_NAMES})"  # noqa: S608  (our own)


@dataclass(frozen=True, slots=True)
class RollupState:
    """Instants are milliseconds since 1970."""

    coarse_until: int = 0
    """Coarser stretches than the finest are there up to here, as far as they are whole."""
    missing: bool = False
    rows_from: int | None = None
    """Rows that started before were deleted as too old. A whole day; None: none were."""
    rollups_from: int | None = None
    breaks_missing: bool = False

    def whole_until(self, level: int) -> int:
        """Up to where there are stretches of a level that is not the finest."""
        return start_of(level, self.coarse_until)


def read(connection: Connection) -> RollupState:
    # With every batch of rows and every figure: the driver's own SQL is the quickest.
    return _state({row.name: row.value for row in connection.exec_driver_sql(_FACTS)})


def hold(connection: Connection, *, change: bool) -> RollupState:
    """Read it, and let nobody change it before this transaction ends.

    With ``change`` nobody else may rely on it either: on PostgreSQL, the others wait.
    """
    if connection.dialect.name == "postgresql":
        lock = _LOCK_TO_CHANGE if change else _LOCK
        if connection.exec_driver_sql(lock).first() is None:
            insert(connection, COARSE_UNTIL, "0")
            connection.exec_driver_sql(lock)
    return read(connection)


_LOCK = f"SELECT 1 FROM ledger_facts WHERE name = '{COARSE_UNTIL}' FOR SHARE"  # noqa: S608
_LOCK_TO_CHANGE = f"SELECT 1 FROM ledger_facts WHERE name = '{COARSE_UNTIL}' FOR UPDATE"  # noqa: S608


def insert(connection: Connection, name: str, value: str) -> None:
    """Set a fact unless it is there."""
    connection.execute(_insert(connection, name, value).on_conflict_do_nothing())


def put(connection: Connection, name: str, value: int | str) -> None:
    statement = _insert(connection, name, str(value))
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=["name"], set_={"value": statement.excluded.value}
        )
    )


def raise_to(connection: Connection, name: str, value: int) -> None:
    """Set a fact that only grows."""
    known = _state_value(connection, name)
    if known is None or known < value:
        put(connection, name, value)


def _state_value(connection: Connection, name: str) -> int | None:
    found = connection.execute(
        select(ledger_facts.c.value).where(ledger_facts.c.name == name)
    ).scalar_one_or_none()
    return None if found is None else int(found)


def remove(connection: Connection, name: str) -> None:
    connection.execute(ledger_facts.delete().where(ledger_facts.c.name == name))


def _insert(connection: Connection, name: str, value: str) -> sqlite.Insert | postgresql.Insert:
    make = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return make(ledger_facts).values(name=name, value=value)


def _state(facts: Mapping[str, str]) -> RollupState:
    rows_from, rollups_from = facts.get(ROWS_FROM), facts.get(ROLLUPS_FROM)
    return RollupState(
        coarse_until=int(facts.get(COARSE_UNTIL, 0)),
        missing=MISSING in facts,
        rows_from=None if rows_from is None else int(rows_from),
        rollups_from=None if rollups_from is None else int(rollups_from),
        breaks_missing=BREAKS_MISSING in facts,
    )
