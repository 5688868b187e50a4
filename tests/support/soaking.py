"""One seed of the soak, and the shortest run that still shows what was found in it."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Collection, Container, Iterator
from contextlib import contextmanager
from typing import Protocol

from tests.support import virtual_time
from tests.support.conversations import Conversations
from tests.support.other_runs import Kept, Loop
from tests.support.report import Report

_LENGTHS = (20, 30, 45, 60)


class Run(Protocol):
    """What a seed stands for: so many steps, each of which can be left out."""

    report: Report

    async def step(self) -> None: ...

    def finish(self) -> None: ...

    async def aclose(self) -> None: ...


def steps_of(seed: int) -> int:
    """Short runs are many for the time, long ones have long histories."""
    return _LENGTHS[seed // 3 % len(_LENGTHS)]


def begun(seed: int, left_out: Container[int], trace: Callable[[str], None]) -> Run:
    """Now and then a loop of an embedded agent, or a run over kept responses."""
    if seed % 24 == 7:
        return Loop(seed, left_out)
    if seed % 48 == 13:
        return Kept(seed, left_out)
    return Conversations(seed, left_out=left_out, trace=trace)


def run_seed(
    seed: int,
    *,
    steps: Collection[int] | None = None,
    trace: Callable[[str], None] = lambda _line: None,
    until_fault: bool = False,
) -> Report:
    """Run a seed; with ``steps`` only these. What goes wrong inside is a fault of the class crash.

    ``until_fault``: end with the first step that has one.
    """
    left_out = frozenset() if steps is None else set(range(1, steps_of(seed) + 1)) - set(steps)
    run = begun(seed, left_out, trace)

    async def go() -> None:
        try:
            for number in range(1, steps_of(seed) + 1):
                await run.step()
                run.report.steps = number
                if until_fault and run.report.faults:
                    return
            run.finish()
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = f"crash: {type(error).__name__} in {where.name}, line {where.lineno}"
            run.report.faults.append(what)
        finally:
            await run.aclose()

    with _silent():
        virtual_time.run(go())
    return run.report


@contextmanager
def _silent() -> Iterator[None]:
    """Faults are planted by the thousand; what the engine says of them is not looked at here."""
    logger = logging.getLogger("warmline.engine")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def class_of(fault: str) -> str:
    """``transcript: turn_3: …`` is of the class transcript."""
    return fault.partition(":")[0]


def shortened(seed: int, class_: str, *, tries: int = 150) -> list[int]:
    """The numbers of as few steps as show a fault of this class: no step can be left out.

    Halves first, then single steps; ``tries`` bounds the runs.
    """

    def shows(steps: Collection[int]) -> int | None:
        report = run_seed(seed, steps=steps, until_fault=class_ != "rows")
        found = any(class_of(fault) == class_ for fault in report.faults)
        return report.steps if found else None

    kept = list(range(1, steps_of(seed) + 1))
    last = shows(kept)
    if last is None:
        return kept
    kept = [step for step in kept if step <= last]
    size = len(kept) // 2
    while size >= 1 and tries > 0:
        start = 0
        while start < len(kept) and tries > 0:
            fewer = kept[:start] + kept[start + size :]
            tries -= 1
            if fewer and shows(fewer) is not None:
                kept = fewer
            else:
                start += size
        size //= 2
    return kept
