"""What a soak adds up over its runs, and where it goes on: a small JSON file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tests.support.report import Report

COUNTED = (
    "modes", "reasons", "outcomes", "clients", "continued", "checked", "planted", "excused",
)  # fmt: skip
KEPT_FAULTS = 200


@dataclass
class Totals:
    """Seeds that were given out and have not come back are given out again."""

    next_seed: int = 0
    open_seeds: list[int] = field(default_factory=list)
    seeds: int = 0
    turns: int = 0
    seconds: float = 0.0
    counts: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in COUNTED}
    )
    turns_of_engine: Counter[str] = field(default_factory=Counter)
    """Turns by the engine's sources: which of the turns count for the present one."""
    faults: Counter[str] = field(default_factory=Counter)
    found: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Totals:
        if not path.is_file():
            return cls()
        given = json.loads(path.read_text())
        return cls(
            next_seed=given["next_seed"],
            open_seeds=given["open_seeds"],
            seeds=given["seeds"],
            turns=given["turns"],
            seconds=given["seconds"],
            counts={name: Counter(given["counts"].get(name)) for name in COUNTED},
            turns_of_engine=Counter(given["turns_of_engine"]),
            faults=Counter(given["faults"]),
            found=given["found"],
        )

    def write(self, path: Path) -> None:
        """Whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps(vars(self), indent=1))
        draft.replace(path)

    def take(self) -> int:
        """The next seed to run."""
        seed, self.next_seed = self.next_seed, self.next_seed + 1
        self.open_seeds.append(seed)
        return seed

    def resume(self) -> list[int]:
        """Seeds that an interrupted run had begun."""
        return list(self.open_seeds)

    def add(self, seed: int, report: Report, engine: str) -> None:
        self.open_seeds.remove(seed)
        self.seeds += 1
        self.turns += report.turns
        self.turns_of_engine[engine] += report.turns
        for name in COUNTED:
            self.counts[name].update(+getattr(report, name))
        for fault in report.faults:
            self.faults[fault.partition(":")[0]] += 1
            if len(self.found) < KEPT_FAULTS:
                self.found.append({"seed": seed, "fault": fault, "engine": engine})


def engine_digest(root: Path) -> str:
    """Twelve digits that change with any source of the engine."""
    state = blake2b(digest_size=6)
    for path in sorted(root.rglob("*.py")):
        state.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return state.hexdigest()
