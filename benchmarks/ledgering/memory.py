"""What a process takes that reads all panels of a ledger and writes to one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

from app.ledger import database
from app.ledger.writer import write_rows
from benchmarks.ledgering.month import month
from benchmarks.ledgering.reading import panels
from benchmarks.ledgering.result import Result, peak_mib

MIB = 120.0
WRITTEN = 20_000


def results(name: str, url: str, rows: int) -> list[Result]:
    """In a process of its own."""
    command = [sys.executable, "-m", "benchmarks.ledgering.memory", url]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    before, after = map(float, done.stdout.split())
    title = f"{name}, {rows:,} rows, memory"
    return [
        Result(f"{title} before anything is read", before, "MiB"),
        Result(f"{title} after all panels and {WRITTEN:,} rows written", after, "MiB", MIB),
    ]


def main(url: str) -> None:
    engine = database.open_engine(url)
    print(peak_mib())
    for panel in panels(engine).values():
        panel()
    with tempfile.TemporaryDirectory(prefix="warmline-memory-") as folder:
        other = str(Path(folder) / "ledger.sqlite3")
        database.upgrade(other)
        write_rows(database.open_engine(other), islice(month(1_000_000), WRITTEN))
    print(peak_mib())


if __name__ == "__main__":
    main(sys.argv[1])
