"""Files that need not be read again: of each that an import has read to its end, two digests.

``place`` stands for where a file lies, and ``seen`` for how it was found there and for what has
read it (``app.importers.unchanged`` makes them). Nothing can be read from them.

What was taken may be given back (``imports.undo``), and then must be taken again. So each giving
back begins another ``age``, which is a part of every digest: those that were made before it, also
by an import that is under way, fit no file any more.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from sqlalchemy import Connection, Engine, select

from app.ledger.database import WRITES
from app.ledger.models import import_files, ledger_facts
from app.ledger.rollups import state
from app.ledger.rollups.among import text

_AGE = "import_files_age"
_AT_ONCE = 1_000

f = import_files.c


def age(engine: Engine) -> str:
    """Which age it is."""
    query = select(ledger_facts.c.value).where(ledger_facts.c.name == _AGE)
    with engine.connect() as connection:
        return connection.execute(query).scalar_one_or_none() or ""


def forget(connection: Connection) -> None:
    """Let all files be read again, from the end of this transaction on."""
    state.put(connection, _AGE, secrets.token_hex(8))


def seen(engine: Engine, places: Sequence[bytes]) -> dict[bytes, bytes]:
    """How the files of these places were found when they were last read to their ends."""
    found: dict[bytes, bytes] = {}
    with engine.connect() as connection:
        for at in range(0, len(places), _AT_ONCE):
            query = select(f.place, f.seen).where(f.place.in_(places[at : at + _AT_ONCE]))
            found |= {bytes(row.place): bytes(row.seen) for row in connection.execute(query)}
    return found


def remember(engine: Engine, marks: Sequence[tuple[bytes, bytes]]) -> None:
    """Files were read to their ends: each one's place, and how it was found when it was looked
    at."""
    statement = (
        "INSERT INTO import_files (place, seen) VALUES (?, ?) "
        "ON CONFLICT (place) DO UPDATE SET seen = excluded.seen"
    )
    with engine.execution_options(**WRITES).begin() as connection:
        connection.exec_driver_sql(text(connection, statement), sorted(marks))
