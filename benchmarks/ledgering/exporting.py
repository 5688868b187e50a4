"""Rows a second of an export beside Python's ``csv`` module over the driver's bare cursor, how soon
its first row is there, and what it adds to the memory of a process.

What it is compared with writes the values as they are: times as numbers, no guard. On PostgreSQL
it reads a cursor of the server, because another one would hold all rows in memory at once.
"""

from __future__ import annotations

import csv
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg

from app.ledger import database
from app.ledger.exporting import Wanted, export
from app.ledger.filters import Filter
from app.ledger.rows import COLUMNS
from benchmarks.ledgering.result import Result, peak_mib

TARGETS = {"sqlite": 0.9, "postgresql": 3.0}
FIRST_MS = 1_000.0
MIB = 30.0
ROUNDS = 2
_WAYS: dict[str, Wanted | None] = {
    "csv module": None,
    "csv": Wanted(),
    "csv, names hashed": Wanted(pseudonym=lambda name: f"{hash(name):x}"),
    "jsonl": Wanted(form="jsonl"),
}
_ALL = Filter(start=0, end=2**50)
_QUERY = f"SELECT {', '.join(COLUMNS)} FROM turns ORDER BY started_at, id"
_CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class _Taken:
    seconds: float
    first_ms: float
    """Until the first piece with rows, the process's own start aside."""
    mib: float
    """What the process's memory grew by at most."""
    rows: int


def results(url: str) -> Iterator[Result]:
    """Each way in processes of its own, by turns; the best of each counts."""
    name = database.read_url(url).get_backend_name()
    found: dict[str, list[_Taken]] = {way: [] for way in _WAYS}
    for _ in range(ROUNDS):
        for way, taken in found.items():
            taken.append(_run(way, url))
    best = {way: min(taken, key=lambda one: one.seconds) for way, taken in found.items()}
    bare = best.pop("csv module")
    title = f"{name}, export of {bare.rows:,} rows"
    yield Result(f"{title}, csv module over a cursor", bare.rows / bare.seconds, "rows/s")
    for way, one in best.items():
        target = TARGETS[name] if way == "csv" else None
        yield Result(f"{title}, {way}", one.rows / one.seconds, "rows/s")
        yield Result(
            f"{title}, {way}, ratio", bare.seconds / one.seconds, "x", target, at_least=True
        )
        yield Result(f"{title}, {way}, first row", one.first_ms, "ms", FIRST_MS)
        yield Result(f"{title}, {way}, memory", one.mib, "MiB", MIB)


def _run(way: str, url: str) -> _Taken:
    command = [sys.executable, "-m", "benchmarks.ledgering.exporting", way, url]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, first, mib, rows = done.stdout.split()
    return _Taken(float(seconds), float(first), float(mib), int(rows))


def main(way: str, url: str) -> None:
    wanted = _WAYS[way]
    rows = 0

    def progress(done: int) -> None:
        nonlocal rows
        rows = done

    engine = database.open_engine(url)
    with engine.connect():
        pass
    before = peak_mib()
    begin = time.perf_counter()
    first = 0.0
    if wanted is None:
        for read in _bare(url):
            first = first or time.perf_counter() - begin
            rows += read
    else:
        pieces = export(engine, _ALL, wanted, progress=progress)
        next(pieces)
        for _piece in pieces:
            first = first or time.perf_counter() - begin
    seconds = time.perf_counter() - begin
    print(seconds, first * 1_000, peak_mib() - before, rows)


def _bare(url: str) -> Iterator[int]:
    """Rows of each step."""
    writer = csv.writer(_Nowhere())
    place = database.read_url(url)
    if place.get_backend_name() == "sqlite":
        with closing(sqlite3.connect(place.database or "")) as bare:
            yield from _written(writer, bare.execute(_QUERY))
        return
    plain = place.set(drivername="postgresql")
    with (
        psycopg.connect(plain.render_as_string(hide_password=False)) as connection,
        connection.cursor("bare") as cursor,
    ):
        yield from _written(writer, cursor.execute(_QUERY))


def _written(writer: Any, cursor: Any) -> Iterator[int]:
    while rows := cursor.fetchmany(_CHUNK):
        writer.writerows(rows)
        yield len(rows)


class _Nowhere:
    def write(self, text: str) -> int:
        return len(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
