"""Random conversations against the oracle, for as long as it is told: ``make soak SECONDS=600``.

A run goes on where the last one ended and adds its turns to a state file. Every fault is printed with
its seed and the fewest steps that show it; ``make soak SEED=17`` runs that seed alone, and tells each
turn. Exits 1 if this run found a fault.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import time
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from tests.support.report import Report
from tests.support.soaking import class_of, run_seed, shortened
from tests.support.totals import Totals, engine_digest

ROOT = Path(__file__).resolve().parents[1]
STATE = ROOT / ".cache" / "soak.json"
SHORTENED_PER_CLASS = 3
COLLECTED_EVERY = 20
"""Seeds between two collections of garbage."""


def soak(seconds: float, jobs: int, path: Path, *, fresh: bool = False) -> int:
    """Run seeds until the time is over; returns the number of faults that were found."""
    ends = time.monotonic() + seconds
    totals = Totals() if fresh else Totals.read(path)
    engine = engine_digest(ROOT / "engine")
    before, began = totals.turns, time.monotonic()
    found: list[tuple[int, str]] = []
    again = totals.resume()
    with ProcessPoolExecutor(jobs, initializer=_quiet) as pool:
        running: dict[Future[Report], int] = {}
        try:
            while running or time.monotonic() < ends:
                while len(running) < jobs and time.monotonic() < ends:
                    seed = again.pop() if again else totals.take()
                    running[pool.submit(_run, seed)] = seed
                done, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
                for future in done:
                    seed = running.pop(future)
                    report = future.result()
                    totals.add(seed, report, engine)
                    for fault in report.faults:
                        _tell(seed, fault, found)
                if done:
                    totals.write(path)
        except KeyboardInterrupt:
            print("interrupted; the seeds that were running are run again next time")
    spent = time.monotonic() - began
    totals.seconds += spent
    totals.write(path)
    print(
        f"this run: {totals.turns - before} turns, {(totals.turns - before) / spent:.0f} a second"
    )
    _summary(totals, engine)
    return len(found)


def _quiet() -> None:
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)
    gc.freeze()
    gc.disable()  # a sixth of the time; a run leaves little behind


def _run(seed: int) -> Report:
    if seed % COLLECTED_EVERY == 0:
        gc.collect()
    return run_seed(seed)


def _tell(seed: int, fault: str, found: list[tuple[int, str]]) -> None:
    class_ = class_of(fault)
    print(f"seed {seed}, {fault}", flush=True)
    if (seed, class_) not in found and sum(c == class_ for _, c in found) < SHORTENED_PER_CLASS:
        steps = ",".join(map(str, shortened(seed, class_)))
        print(f"  python -m tests.soak --seed {seed} --steps {steps}", flush=True)
    found.append((seed, class_))


def _summary(totals: Totals, engine: str) -> None:
    print(
        f"in all: {totals.turns} turns of {totals.seeds} seeds, {totals.faults.total()} faults, "
        f"{totals.turns_of_engine[engine]} turns with this engine; next seed {totals.next_seed}"
    )
    counts = totals.counts
    checked = counts["checked"]
    print(
        f"transcripts: {checked['transcripts']} compared, "
        f"{checked['transcripts that differ']} differ"
    )
    print(
        f"extendable chains: {checked['extendable chains']}, of which {checked['extended']} were "
        f"extended, {checked['left aside']} left aside, "
        f"{checked['left aside without need']} of these without need"
    )
    clients = {
        name: f"{n} ({100 * counts['continued'][name] / n:.0f} % continued)"
        for name, n in counts["clients"].most_common()
    }
    _told("clients", clients)
    _told("faults that were planted", dict(counts["planted"].most_common()))
    _told("modes and reasons", dict(counts["outcomes"].most_common()))
    _told("left aside for a reason", dict(counts["excused"].most_common()))
    others = {name: n for name, n in checked.items() if name not in _TOLD}
    if others:
        _told("checked besides", others)
    if totals.faults:
        print("faults: " + "  ".join(f"{what} {n}" for what, n in totals.faults.most_common()))


_TOLD = frozenset(
    {
        "transcripts",
        "transcripts that differ",
        "extendable chains",
        "extended",
        "left aside",
        "left aside without need",
    }
)


def _told(what: str, counts: Mapping[str, object]) -> None:
    print(f"{what}:")
    for name, count in counts.items():
        print(f"  {name}: {count}")


def repeat(seed: int, steps: list[int] | None) -> int:
    """One seed, turn by turn."""
    report = run_seed(seed, steps=steps, trace=print)
    for fault in report.faults:
        print(fault)
    print(f"{report.turns} turns, {len(report.faults)} faults")
    return len(report.faults)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options.add_argument("--state", type=Path, default=STATE, help="where the totals are kept")
    options.add_argument("--fresh", action="store_true", help="begin anew at seed 0")
    options.add_argument("--seed", type=int, help="run this seed alone, and tell its turns")
    options.add_argument("--steps", help="with --seed: only these steps, as 3,7,12")
    given = options.parse_args()
    if given.seed is not None:
        steps = [int(step) for step in given.steps.split(",")] if given.steps else None
        return 1 if repeat(given.seed, steps) else 0
    for name in (signal.SIGINT, signal.SIGTERM):  # also in the background, where one is ignored
        signal.signal(name, signal.default_int_handler)
    return 1 if soak(given.seconds, given.jobs, given.state, fresh=given.fresh) else 0


if __name__ == "__main__":
    sys.exit(main())
