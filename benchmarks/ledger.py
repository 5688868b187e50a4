"""What the ledger costs when rows are written, and what its rollups save when pages are read.

A made-up ledger of thirty days, on SQLite and on a PostgreSQL that is started for it: agents'
sessions of about sixty turns. Prints each figure with its target, and the ratios to doing it in
another way in the same run, which are what carries over to other machines.

    python -m benchmarks.ledger [--rows 1000000] [--folder DIR] [--only read,page,…]

With ``--folder`` the ledgers stay there and the next run uses them again. From ten million rows on,
a ledger with a tenth of them is made beside, to see what grows.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from app.ledger import database
from benchmarks.ledgering import (
    exporting,
    ingesting,
    lateness,
    ledgers,
    memory,
    paging,
    percentiles,
    reading,
)
from benchmarks.ledgering.result import Result
from tests.support.postgres import Server

ENGINES = ("sqlite", "postgresql")


class Ledgers:
    """Those of one run, made when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._servers: dict[int, Server] = {}

    def url(self, engine: str, rows: int) -> str:
        if engine == "sqlite":
            return str(ledgers.sqlite_ledger(self._place(rows), rows))
        return ledgers.postgres_ledger(self.server(rows), rows)

    def server(self, rows: int) -> Server:
        if rows not in self._servers:
            self._servers[rows] = ledgers.postgres_server(self._place(rows))
        return self._servers[rows]

    def _place(self, rows: int) -> Path:
        place = self._folder / f"{rows}"
        place.mkdir(parents=True, exist_ok=True)
        return place

    def close(self) -> None:
        for server in self._servers.values():
            server.stop(signal.SIGINT)


def read(made: Ledgers, engine: str, rows: int) -> Iterator[Result]:
    tenth = None
    if rows >= reading.FULL:
        smaller = database.open_engine(made.url(engine, rows // 10))
        tenth = reading.from_rollups(smaller)
        smaller.dispose()
    opened = database.open_engine(made.url(engine, rows))
    taken = reading.from_rollups(opened)
    yield from reading.results(opened, rows, taken, tenth, beside_rows=True)
    opened.dispose()


def page(made: Ledgers, engine: str, rows: int) -> Iterator[Result]:
    opened = database.open_engine(made.url(engine, rows))
    yield from paging.results(opened, rows)
    opened.dispose()


def within(made: Ledgers, engine: str, rows: int) -> Iterator[Result]:
    opened = database.open_engine(made.url(engine, rows))
    yield from percentiles.results(opened)
    opened.dispose()


def ingest(made: Ledgers, engine: str, rows: int) -> Iterator[Result]:
    fewer = min(rows, ingesting.LEDGER)
    if engine == "sqlite":
        with tempfile.TemporaryDirectory(prefix="warmline-ingest-") as folder:
            yield from ingesting.on_sqlite(Path(made.url(engine, fewer)), Path(folder))
        return
    server = made.server(fewer)
    name = server.create()
    try:
        yield from ingesting.on_postgresql(server.url(name))
    finally:
        server.drop(name)


def take(made: Ledgers, engine: str, rows: int) -> Iterator[Result]:
    yield from memory.results(engine, made.url(engine, rows), rows)


def late(_made: Ledgers, engine: str, _rows: int) -> Iterator[Result]:
    if engine == "sqlite":
        yield from lateness.results()


def csv(made: Ledgers, engine: str, rows: int) -> Iterator[Result]:
    yield from exporting.results(made.url(engine, min(rows, ingesting.LEDGER)))


PARTS: dict[str, Callable[[Ledgers, str, int], Iterable[Result]]] = {
    "read": read,
    "percentiles": within,
    "page": page,
    "ingest": ingest,
    "lateness": late,
    "memory": take,
    "csv": csv,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", help="where the ledgers are kept; by default they are not")
    parser.add_argument("--only", default=",".join(PARTS), help=", ".join(PARTS))
    parser.add_argument("--engines", default=",".join(ENGINES), help=", ".join(ENGINES))
    given = parser.parse_args()
    parts, engines = given.only.split(","), given.engines.split(",")
    for name in {*parts, *engines} - {*PARTS, *ENGINES}:
        parser.error(
            f"there is no {name!r}: --only {','.join(PARTS)}, --engines {','.join(ENGINES)}"
        )
    # A PostgreSQL that root starts is not root's, and has to reach its folder.
    folder = Path(given.folder or tempfile.mkdtemp(prefix="warmline-ledger-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    made = Ledgers(folder)
    begin = time.perf_counter()
    missed = []
    try:
        for part in parts:
            for engine in engines:
                for result in PARTS[part](made, engine, given.rows):
                    print(result.line(), flush=True)
                    if not result.met:
                        missed.append(result)
    finally:
        made.close()
        if not given.folder:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{time.perf_counter() - begin:.0f} s")
    print(
        "\n".join(["missed:", *(result.line() for result in missed)]) if missed else "all reached"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
