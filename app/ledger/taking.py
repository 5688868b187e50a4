"""Taking rows from elsewhere into the ledger (``app.ledger.imports``): one short transaction for
the rows of several files, with their keys and counts.

Rows of other tools' logs come with their prices, and with their verdicts where the ledger has
nothing of their sessions: so nothing has to be written twice. All else is concluded afterwards
(``app.judging``), to the same end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, Engine, select

from app.ledger import imports, merging, store
from app.ledger.database import WRITES
from app.ledger.imports import DELETED, PURGED, TOO_OLD, Counts, key_of
from app.ledger.joining import joined
from app.ledger.models import turns
from app.ledger.rollups import state as states
from app.ledger.rollups.among import among, listed, text
from app.ledger.rollups.state import RollupState
from app.ledger.rows import TurnRow
from app.ledger.store import Price, Verdict

_NEW, _KNOWN = "new", "known"
_LOCK = "SELECT pg_advisory_xact_lock(3306871180652418517)"

c = turns.c


class Concluding(NamedTuple):
    """What is concluded of rows; not known here how."""

    price: Callable[[TurnRow], Price]
    judge: Callable[[Iterable[TurnRow]], Mapping[str, Verdict]]
    """The verdicts on all rows of one session, by ``turn_id``."""


def take(
    engine: Engine,
    import_id: str,
    files: Sequence[Sequence[TurnRow]],
    so_far: Counts,
    *,
    again: bool = False,
    logged: bool = False,
    concluding: Concluding | None = None,
) -> list[Counts]:
    """Take those rows that are not known, as rows of the import; returns the counts of each file's.

    ``so_far`` are the counts of the import without them; ``again`` takes what was purged, too.
    ``logged`` are rows of another tool's log, which may have been written on since: a known row
    learns what this reading of its record tells beside. An undo does not take that back. New ones
    are concluded of.
    """
    keys = [[(key_of(row.turn_id), row) for row in rows] for rows in files]
    by_key = _by_key((one for some in keys for one in some), logged=logged)
    with engine.execution_options(**WRITES).begin() as connection:
        if connection.dialect.name == "postgresql":
            # One at a time: what was looked for, and was not there, must not come meanwhile.
            connection.exec_driver_sql(_LOCK)
        state = states.read(connection)
        fates, known = _sifted(connection, by_key, state, again=again)
        wanted = [key for key, fate in fates.items() if fate == _NEW]
        if wanted:
            taken = imports.put_keys(connection, wanted, import_id)
            mine = [by_key[key] for key in wanted if key in taken]
            for row in mine:
                row.import_id = import_id
            if logged and concluding is not None:
                _conclude(connection, mine, state, concluding)
            new = {row.turn_id for row in store.insert_rows(connection, mine)}
            fates |= {key: _KNOWN for key in wanted if by_key[key].turn_id not in new}
            merging.mark(connection, {row.session for row in mine})
        counts = [_counted((key for key, _ in some), fates) for some in keys]
        imports.note(connection, import_id, [so_far, *counts])
    if logged:
        # On their own: whoever changes sums twice in one transaction may wait in a circle.
        merging.learn(engine, known)
    return counts


def _by_key(keys: Iterable[tuple[bytes, TurnRow]], *, logged: bool) -> dict[bytes, TurnRow]:
    """Of equal ids the first counts; of ``logged`` ones with what the others tell beside."""
    by_key: dict[bytes, TurnRow] = {}
    for key, row in keys:
        before = by_key.get(key)
        if before is None:
            by_key[key] = row
        elif logged:
            by_key[key] = joined(before, row)
    return by_key


def _sifted(
    connection: Connection, by_key: Mapping[bytes, TurnRow], state: RollupState, *, again: bool
) -> tuple[dict[bytes, str], dict[str, TurnRow]]:
    """What becomes of each, as far as it can be told; and what is there already, by its id."""
    # Rows before their keys: of one that is purged meanwhile, either is found.
    there = _there(connection, by_key.values())
    taken = imports.keys_among(connection, by_key)
    # Another import may have taken them between the two looks: a row comes with its key.
    there |= _there(
        connection,
        [row for key, row in by_key.items() if row.turn_id not in there and taken.get(key)],
    )
    fates: dict[bytes, str] = {}
    known: dict[str, TurnRow] = {}
    for key, row in by_key.items():
        if row.turn_id in there:
            fates[key] = _KNOWN
            known[row.turn_id] = row
        elif key in taken and taken[key] is not None:
            fates[key] = DELETED
        elif key in taken and not again:
            fates[key] = PURGED
        elif state.rows_from is not None and row.started_at < state.rows_from:
            fates[key] = TOO_OLD
        else:
            fates[key] = _NEW
    return fates, known


def _there(connection: Connection, rows: Collection[TurnRow]) -> set[str]:
    if not rows:
        return set()
    ids = [row.turn_id for row in rows]
    query = select(c.turn_id).where(among(connection, c.turn_id, ids))
    return {*connection.execute(query).scalars(), *merging.ids_among(connection, ids)}


def _conclude(
    connection: Connection, rows: Sequence[TurnRow], state: RollupState, concluding: Concluding
) -> None:
    for row in rows:
        if row.price_note is None and row.cost_usd is None:
            row.cost_usd, row.price_note = concluding.price(row)
    if state.rows_from is not None:
        return  # a session may have had a beginning
    sessions: dict[str, list[TurnRow]] = defaultdict(list)
    for row in rows:
        sessions[row.session_key].append(row)
    for session in sessions.keys() - _known_sessions(connection, sessions):
        verdicts = concluding.judge(sessions[session])
        for row in sessions[session]:
            if row.turn_id in verdicts:
                row.cache_verdict, row.cache_grade, row.missed_tokens = verdicts[row.turn_id]


def _known_sessions(connection: Connection, sessions: Collection[str]) -> set[str]:
    """Those that the ledger has rows of."""
    source = "json_each(?)"
    if connection.dialect.name == "postgresql":
        source = "unnest(?::text[]) AS given (value)"
    query = (
        f"SELECT value FROM {source} "  # noqa: S608  (our own)
        "WHERE EXISTS (SELECT 1 FROM turns WHERE session_key = value)"
    )
    given = (listed(connection, sessions),)
    return set(connection.exec_driver_sql(text(connection, query), given).scalars())


def _counted(keys: Iterable[bytes], fates: dict[bytes, str]) -> Counts:
    """The counts of a file; what it has brought is known from here on."""
    counts = Counts()
    for key in keys:
        fate = fates[key]
        if fate == _NEW:
            counts.new += 1
        elif fate == _KNOWN:
            counts.known += 1
        else:
            counts.skipped[fate] += 1
        fates[key] = _KNOWN
    return counts
