"""A figure beside its target, and how times are taken."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

_ENOUGH_MS = 2_000.0
"""What takes as long is not measured again."""


@dataclass(frozen=True)
class Result:
    name: str
    figure: float
    unit: str
    target: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool:
        if self.target is None:
            return True
        return self.figure >= self.target if self.at_least else self.figure <= self.target

    def line(self) -> str:
        told = f"{self.name:66}{self.figure:12,.2f} {self.unit:6}"
        if self.target is None:
            return told.rstrip()
        sign = ">=" if self.at_least else "<="
        return f"{told} target {sign} {self.target:g}: {'reached' if self.met else 'MISSED'}"


def best_ms(work: Callable[[], object], rounds: int) -> float:
    taken: list[float] = []
    while len(taken) < rounds and sum(taken) < _ENOUGH_MS:
        begin = time.perf_counter()
        work()
        taken.append((time.perf_counter() - begin) * 1_000)
    # The best one: others may use the machine, and only add to it.
    return min(taken)


def peak_mib() -> float:
    """The most memory that this process has taken so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
