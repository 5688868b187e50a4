"""Rows a second: with rollups beside ``sqlite3``'s bare ``executemany`` without, and PostgreSQL's
COPY beside SQLAlchemy's ``executemany``."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, insert

from app.ledger import database
from app.ledger.inserting import insert_new
from app.ledger.models import turns
from app.ledger.rollups.contribution import DAY
from app.ledger.rows import COLUMNS, TurnRow
from app.ledger.store import insert_rows
from benchmarks.ledgering.ledgers import INSERT
from benchmarks.ledgering.month import DAYS, month
from benchmarks.ledgering.result import Result

SQLITE, COPY = 0.5, 2.0
LEDGER = 1_000_000
"""Rows of the ledger that SQLite goes on from; more would have to be copied."""
MEASURED = {1: 300, 10: 3_000, 100: 10_000, 1_000: 20_000}
"""Rows that are written by the size of a batch; the targets are for 100 and more."""


def on_sqlite(ledger: Path, folder: Path) -> list[Result]:
    """Both go on from copies of one ledger, batch by batch in turns, at a million rows a month."""
    fast, raw = folder / "ingest.sqlite3", folder / "raw.sqlite3"
    found = []
    try:
        for copy in (fast, raw):
            shutil.copy(ledger, copy)
        engine = database.open_engine(str(fast)).execution_options(**database.WRITES)
        with closing(sqlite3.connect(raw, isolation_level=None)) as bare:
            bare.execute("PRAGMA journal_mode = WAL")
            bare.execute("PRAGMA synchronous = NORMAL")

            def plain(rows: Sequence[TurnRow]) -> None:
                values = [row.values() for row in rows]
                bare.execute("BEGIN IMMEDIATE")
                bare.executemany(INSERT, values)
                bare.execute("COMMIT")

            for at, (size, amount) in enumerate(MEASURED.items()):
                rows = _later(amount, at)
                slow, ours = _taken(rows, size, plain, lambda rows: _insert(engine, rows))
                found += _compared(
                    f"sqlite, batches of {size:,}",
                    ("bare executemany without rollups", amount / slow),
                    ("with rollups", amount / ours),
                    SQLITE if size >= 100 else None,
                )
        engine.dispose()
    finally:
        for copy in (fast, raw):
            for part in ("", "-wal", "-shm"):
                Path(f"{copy}{part}").unlink(missing_ok=True)
    return found


def on_postgresql(url: str) -> list[Result]:
    """Into an empty ledger."""
    database.upgrade(url)
    engine = database.open_engine(url)
    found = []
    for at, (size, amount) in enumerate(MEASURED.items()):
        parts = [_later(amount, 3 * at + number) for number in range(3)]
        slow, copied = _taken_of(parts[:2], size, (_executemany, insert_new), engine)
        begin = time.perf_counter()
        for batch in _batches(parts[2], size):
            _insert(engine, batch)
        ours = time.perf_counter() - begin
        found += _compared(
            f"postgresql, batches of {size:,}",
            ("SQLAlchemy's executemany", amount / slow),
            ("COPY", amount / copied),
            COPY if size >= 100 else None,
        )
        found.append(
            Result(f"postgresql, batches of {size:,}, with rollups", amount / ours, "rows/s")
        )
    engine.dispose()
    return found


def _executemany(connection: Connection, rows: Sequence[TurnRow]) -> None:
    values = [dict(zip(COLUMNS, row.values(), strict=True)) for row in rows]
    connection.execute(insert(turns), values)


def _insert(engine: Engine, rows: Sequence[TurnRow]) -> None:
    with engine.begin() as connection:
        insert_rows(connection, rows)


def _taken(
    rows: Sequence[TurnRow], size: int, *ways: Callable[[Sequence[TurnRow]], None]
) -> list[float]:
    """Seconds that each way takes for the same rows."""
    taken = [0.0 for _ in ways]
    for batch in _batches(rows, size):
        for place, way in enumerate(ways):
            begin = time.perf_counter()
            way(batch)
            taken[place] += time.perf_counter() - begin
    return taken


def _taken_of(
    parts: Sequence[Sequence[TurnRow]],
    size: int,
    ways: Sequence[Callable[[Connection, Sequence[TurnRow]], Any]],
    engine: Engine,
) -> list[float]:
    """Seconds that each way takes for rows of its own, which go into one database."""
    taken = [0.0 for _ in ways]
    for batches in zip(*(_batches(rows, size) for rows in parts), strict=True):
        for place, (way, batch) in enumerate(zip(ways, batches, strict=True)):
            begin = time.perf_counter()
            with engine.begin() as connection:
                way(connection, batch)
            taken[place] += time.perf_counter() - begin
    return taken


def _compared(
    title: str, plain: tuple[str, float], ours: tuple[str, float], target: float | None
) -> list[Result]:
    return [
        Result(f"{title}, {plain[0]}", plain[1], "rows/s"),
        Result(f"{title}, {ours[0]}", ours[1], "rows/s"),
        Result(f"{title}, ratio", ours[1] / plain[1], "x", target, at_least=True),
    ]


def _batches(rows: Sequence[TurnRow], size: int) -> Iterator[list[TurnRow]]:
    source = iter(rows)
    while batch := list(islice(source, size)):
        yield batch


def _later(amount: int, at: int) -> list[TurnRow]:
    """After the month, at a rate of a million rows a month; each time under new names."""
    shift = DAYS * DAY + at * DAY
    return [
        replace(
            row,
            turn_id=f"{at}-{row.turn_id}",
            started_at=row.started_at + shift,
            ended_at=row.ended_at + shift,
            recorded_at=row.recorded_at + shift,
        )
        for row in islice(month(1_000_000, seed=1), amount)
    ]
