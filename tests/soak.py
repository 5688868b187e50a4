"""Random conversations against the oracle for as long as it is told: ``make soak SECONDS=600``.

Prints the turns, modes and reasons of the run, and every fault with the seed that shows it again.
Exits 1 if there was one.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter

from tests.support.conversations import Conversations

TURNS_PER_SEED = 60


async def soak(seconds: float, seed: int) -> int:
    """Run seeds from ``seed`` on until the time is over; returns the number of faults."""
    ends = time.monotonic() + seconds
    modes: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    faults = 0
    while time.monotonic() < ends:
        run = Conversations(seed)
        for _ in range(TURNS_PER_SEED):
            await run.step()
        modes += run.report.modes
        reasons += run.report.reasons
        for fault in run.report.faults:
            faults += 1
            print(f"seed {seed}, {fault}")
        seed += 1
    print(f"{modes.total()} turns, {faults} faults, next seed {seed}")
    print("  ".join(f"{name} {count}" for name, count in modes.most_common()))
    print("  ".join(f"{name} {count}" for name, count in reasons.most_common()))
    return faults


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--seed", type=int, default=0, help="the first seed")
    given = options.parse_args()
    return 1 if asyncio.run(soak(given.seconds, given.seed)) else 0


if __name__ == "__main__":
    sys.exit(main())
