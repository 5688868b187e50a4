"""Faults put into the engine one by one, each of which a test has to notice: ``make mutants``.

Outcomes are kept in .cache/mutants and a run goes on where the last one ended, until the code or
the tests are changed. Exits 1 if a mutant survives that docs/mutants.toml does not list, or if one that
it lists is killed.
"""

from __future__ import annotations

import argparse
import ast
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from tests.mutation.mutants import Mutant
from tests.mutation.results import STATE, Results, as_toml, listed, mutants
from tests.mutation.targets import TARGETS, Target
from tests.mutation.trial import Outcome, prepare, trials, unmutated

SLOWEST = 5
"""A trial may take this many times what the tests need without a fault, and …"""
GRACE = 5
"""… so many seconds more, of processor time."""


def run(target: Target, results: Results, *, jobs: int, only: str) -> int:
    """Tries what is not known yet, tells what survived; returns how many outcomes are amiss."""
    source = target.path.read_text()
    tree = ast.parse(source)
    every = mutants(target, source)
    todo = [one for one in every if one.name not in results.outcomes and only in one.name]
    outcome = unmutated(target, tree) if todo else Outcome("survived")
    if outcome.word != "survived":
        print(f"{target.file}: its tests fail without any fault: {outcome.by}", file=sys.stderr)
        return 1
    print(
        f"{target.file}: {len(every)} mutants, {len(todo)} to try; "
        f"the tests take {outcome.seconds:.1f} s",
        flush=True,
    )
    given = ((one, one.applied(tree)) for one in todo)
    limit = int(outcome.seconds * SLOWEST) + GRACE
    began = written = time.monotonic()
    try:
        for tried, (mutant, outcome, _) in enumerate(
            trials(target, given, jobs=jobs, limit=limit), 1
        ):
            results.outcomes[mutant.name] = outcome
            if outcome.word == "survived":
                print(f"  line {mutant.line}, survived: {mutant.name}", flush=True)
            if time.monotonic() - written > 10:
                written = time.monotonic()
                results.write()
                if sys.stderr.isatty():
                    pace = (written - began) / tried
                    print(f"  {tried}/{len(todo)}, {pace:.2f} s each", file=sys.stderr)
    finally:
        results.write()
    return _summary(target, [one for one in every if only in one.name], results)


def _summary(target: Target, tried: list[Mutant], results: Results) -> int:
    every = {one.name: one for one in tried}
    words = Counter(results.outcomes[name].word for name in every)
    survived = {name for name in every if results.outcomes[name].word == "survived"}
    known = {one.name for one in listed() if one.file == target.file}
    unlisted, killed = survived - known, (known & every.keys()) - survived
    print(
        f"{target.file}: " + ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
    )
    for name in sorted(unlisted):
        print(
            f"\nsurvived and is not listed (line {every[name].line}):\n{as_toml(target, every[name])}"
        )
    for name in sorted(killed):
        print(f"\nis listed, but killed: {name}")
    return len(unlisted) + len(killed)


def main() -> int:
    options = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    options.add_argument("files", nargs="*", help="sources to mutate, such as engine/items.py")
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options.add_argument("--fresh", action="store_true", help="forget all outcomes first")
    options.add_argument(
        "--again",
        action="store_true",
        help="for work on the tests: try only what survived last time, and what is new",
    )
    options.add_argument("--state", type=Path, default=STATE, help="where the outcomes are kept")
    options.add_argument("--only", default="", help="mutants whose name has these words in it")
    given = options.parse_args()
    unknown = set(given.files) - {target.file for target in TARGETS}
    if unknown:
        options.error(f"no target: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no trial is left behind
    prepare()
    amiss = sum(
        run(
            target,
            Results(target, given.state, fresh=given.fresh, again=given.again),
            jobs=given.jobs,
            only=given.only,
        )
        for target in TARGETS
        if not given.files or target.file in given.files
    )
    print("all as listed" if not amiss else f"{amiss} not as listed")
    return 1 if amiss else 0


if __name__ == "__main__":
    sys.exit(main())
