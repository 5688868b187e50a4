"""How late an event loop runs while a thousand turns a second are written, and while none is; in a
process of its own, whose threads share the interpreter as those of the service do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Coroutine
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

import uvloop

from app.analysis.latency import percentile
from app.clock import SystemClock
from app.ledger import database
from app.ledger.journal.journal import Journal
from app.ledger.rows import TurnRow
from app.ledger.writer import LedgerWriter
from app.server import share_interpreter
from benchmarks.ledgering.month import month
from benchmarks.ledgering.result import Result

RATIO = 1.5
RATE = 1_000
SECONDS = 5
ROUNDS = 3
_TICK = 0.005


def results() -> list[Result]:
    command = [sys.executable, "-m", "benchmarks.ledgering.lateness"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    usual, late = map(float, done.stdout.split())
    return [
        Result("event loop, lateness p99, idle", usual, "ms"),
        Result(f"event loop, lateness p99, {RATE:,} turns a second", late, "ms"),
        Result("event loop, lateness, ratio", late / usual, "x", RATIO),
    ]


def main() -> None:
    rows = list(islice(month(1_000_000, seed=2), RATE * SECONDS * ROUNDS))
    idle: list[float] = []
    busy: list[float] = []
    share_interpreter()
    with tempfile.TemporaryDirectory(prefix="warmline-lateness-") as folder:
        url = str(Path(folder) / "ledger.sqlite3")
        database.upgrade(url)
        engine = database.open_engine(url)
        writer = LedgerWriter(engine, SystemClock(), journal=Journal(Path(folder) / "journal"))
        for number in range(ROUNDS):
            # In turns: others may use the machine.
            idle += _run(_lateness(None, []))
            part = rows[number * RATE * SECONDS : (number + 1) * RATE * SECONDS]
            busy += _run(_lateness(writer, part))
        writer.close()
        engine.dispose()
    print(*map(_p99_ms, (idle, busy)))


def _run(ticks: Coroutine[Any, Any, list[float]]) -> list[float]:
    """On the event loop that the service has."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(ticks)


async def _lateness(writer: LedgerWriter | None, rows: list[TurnRow]) -> list[float]:
    """Seconds by which each tick came late."""
    late = []
    begin = monotonic()
    recorded = 0
    for number in range(1, int(SECONDS / _TICK) + 1):
        due = begin + number * _TICK
        await asyncio.sleep(due - monotonic())
        late.append(monotonic() - due)
        if writer is not None:
            upto = min(len(rows), int(number * _TICK * RATE))
            for row in rows[recorded:upto]:
                writer.record(row)
            recorded = upto
    return late


def _p99_ms(times: list[float]) -> float:
    p99 = percentile(sorted(times), 0.99)
    assert p99 is not None
    return p99 * 1_000


if __name__ == "__main__":
    main()
