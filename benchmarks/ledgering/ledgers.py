"""The ledgers that are measured, made once in a folder and used again by later runs."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from app.ledger import database
from app.ledger.models import turns
from app.ledger.rollups import state as states
from app.ledger.rollups.contribution import DAY
from app.ledger.rows import COLUMNS, TurnRow
from benchmarks.ledgering.month import DAYS, month
from tests.support.postgres import Server

NAMES = ", ".join(COLUMNS)
INSERT = (
    f"INSERT INTO turns ({NAMES}) VALUES ({', '.join('?' * len(COLUMNS))}) "
    "ON CONFLICT (turn_id) DO NOTHING"
)
LIKE_A_USERS = {
    "shared_buffers": "2GB",
    "max_wal_size": "4GB",
    "listen_addresses": "",
    # What is measured is reading and ratios, and the machine is shared.
    "fsync": "off",
}
"""A server that has the memory its manual recommends."""
COPIES = 10
_BATCH = 5_000


def sqlite_ledger(folder: Path, rows: int) -> Path:
    """An SQLite ledger of a month with so many rows, with its rollups."""
    path = folder / "ledger.sqlite3"
    database.upgrade(str(path))
    engine = database.open_engine(str(path))
    with _missing(engine, rows) as fresh:
        if fresh:
            fill_sqlite(engine, path, rows)
    engine.dispose()
    database.upgrade(str(path))
    return path


def postgres_server(folder: Path) -> Server:
    """A server whose data stays in the folder."""
    server = Server(folder / "postgres", LIKE_A_USERS)
    server.start()
    return server


def postgres_ledger(server: Server, rows: int) -> str:
    """The URL of a PostgreSQL ledger of a month with so many rows, with its rollups."""
    if not server.ask("SELECT 1 FROM pg_database WHERE datname = 'ledger'"):
        server.ask("CREATE DATABASE ledger TEMPLATE template0")
    url = server.url("ledger")
    database.upgrade(url)
    engine = database.open_engine(url)
    with _missing(engine, rows) as fresh:
        if fresh:
            fill_postgres(engine, rows)
    engine.dispose()
    database.upgrade(url)
    return url


@contextlib.contextmanager
def _missing(engine: Engine, rows: int) -> Iterator[bool]:
    """Whether the rows have to be made; afterwards they count as made."""
    with engine.begin() as connection:
        known = connection.exec_driver_sql(
            "SELECT value FROM ledger_facts WHERE name = 'benchmark_rows'"
        ).scalar_one_or_none()
    if known not in (None, str(rows)):
        raise SystemExit(f"{engine.url.database} holds {known} rows, not {rows}: another --folder")
    begin = time.perf_counter()
    if known is None:
        with engine.begin() as connection:
            connection.execute(turns.delete())
    yield known is None
    if known is None:
        with engine.begin() as connection:
            states.put(connection, states.MISSING, 1)
            states.put(connection, "benchmark_rows", rows)
        taken = time.perf_counter() - begin
        print(f"{rows:,} rows made for {engine.dialect.name} in {taken:.0f} s", flush=True)


def fill_sqlite(engine: Engine, path: Path, rows: int) -> None:
    """Indices come after the rows: that is many times as fast as keeping them up."""
    with engine.begin() as connection:
        for index in turns.indexes:
            index.drop(connection, checkfirst=True)
    engine.dispose()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as bare:
        bare.execute("PRAGMA journal_mode = OFF")
        bare.execute("PRAGMA synchronous = OFF")
        bare.execute("PRAGMA temp_store = FILE")
        bare.execute(f"CREATE TEMPORARY TABLE agents AS SELECT {NAMES} FROM turns LIMIT 0")
        insert = INSERT.split(" ON CONFLICT", maxsplit=1)[0].replace("INTO turns", "INTO agents")
        bare.execute("BEGIN")
        for values in _values(month(rows // COPIES)):
            bare.executemany(insert, values)
        bare.execute(_multiply("agents.rowid", rows))
        bare.execute("COMMIT")
    with engine.begin() as connection:
        for index in turns.indexes:
            index.create(connection)


def fill_postgres(engine: Engine, rows: int) -> None:
    with engine.begin() as connection:
        for index in turns.indexes:
            index.drop(connection, checkfirst=True)
        cursor: Any = connection.connection.cursor()
        cursor.execute(
            f"CREATE TEMPORARY TABLE agents ON COMMIT DROP AS SELECT {NAMES} FROM turns LIMIT 0"
        )
        cursor.execute("ALTER TABLE agents ADD COLUMN place BIGSERIAL PRIMARY KEY")
        with cursor.copy(f"COPY agents ({NAMES}) FROM STDIN") as copy:
            for values in _values(month(rows // COPIES)):
                for one in values:
                    copy.write_row(one)
        cursor.execute(_multiply("agents.place", rows))
        connection.exec_driver_sql("SET LOCAL maintenance_work_mem = '1GB'")
        for index in turns.indexes:
            index.create(connection)
    # As PostgreSQL does by itself after a while.
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE turns")


def _multiply(order: str, rows: int) -> str:
    """Each agent ten times, under other names, a few moments later, with times of its own: making
    rows in Python takes ten times as long."""
    changed = {
        **dict.fromkeys(
            ("turn_id", "session", "session_key", "root_session", "response_id"),
            "{0} || '-' || copy",
        ),
        **dict.fromkeys(
            ("started_at", "ended_at", "recorded_at"), f"{{0}} + copy * {DAYS * DAY // rows}"
        ),
        **dict.fromkeys(("input_tokens", "non_cached_tokens", "total_tokens"), "{0} + copy"),
        "ttft_ms": "{0} * (1 + copy * 0.013)",
    }
    selected = ", ".join(changed.get(name, "{0}").format(name) for name in COLUMNS)
    copies = " UNION ALL ".join(f"SELECT {number} AS copy" for number in range(COPIES))
    return (
        f"INSERT INTO turns ({NAMES}) SELECT {selected} "
        f"FROM agents CROSS JOIN ({copies}) AS copies ORDER BY {order}"
    )


def _values(rows: Iterable[TurnRow]) -> Iterator[list[tuple[Any, ...]]]:
    source = iter(rows)
    while some := list(islice(source, _BATCH)):
        yield [row.values() for row in some]
