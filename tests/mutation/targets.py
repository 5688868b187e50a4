"""What is mutated, and the tests that have to notice: the nearest and fastest first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Target:
    """A source file, or some functions of it, and the files or directories of tests for it."""

    file: str
    tests: tuple[str, ...]
    functions: tuple[str, ...] = ()
    """Only these, with what stands inside them; all if empty."""

    @property
    def module(self) -> str:
        return self.file.removesuffix(".py").replace("/", ".")

    @property
    def path(self) -> Path:
        return ROOT / self.file

    def holds(self, function: str) -> bool:
        return not self.functions or any(
            function == name or function.startswith(f"{name}.") for name in self.functions
        )


def _tests(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/engine/{name}" for name in names)


_BASELINE = _tests(
    "test_baseline.py", "test_matching.py", "test_growing.py", "test_condensed.py",
    "test_freeze_baseline.py", "test_decision.py", "test_echoes.py", "test_same_fields.py",
)  # fmt: skip

TARGETS = (
    Target("engine/items.py", _tests("test_items.py", "items", "test_decision.py")),
    Target("engine/decision.py", _tests("test_decision.py")),
    Target("engine/model.py", _tests("test_decision.py"), ("NOT_ELIGIBLE",)),
    Target("engine/kept.py", _tests("test_kept.py")),
    Target(
        "engine/request.py",
        _tests("test_request.py", "test_decision.py"),
        (
            "_NOT_COMPARED", "_CACHE_OPTIONS_NOT_COMPARED", "changed_fields", "_same_field",
            "_without_diagnostics", "own_copy",
        ),
    ),
    Target("engine/echoes.py", _tests("test_echoes.py", "test_condensed.py", "test_decision.py")),
    Target(
        "engine/held.py",
        _tests("test_held.py", "test_freeze_baseline.py", "test_same_fields.py", "test_condensed.py"),
    ),
    Target("engine/baseline.py", _BASELINE, ("Baseline.as_spelled", "digested")),
    Target("engine/matching.py", _BASELINE, ("_alike", "proven", "matched")),
    Target("engine/growing.py", _BASELINE, ("_oddities",)),
    Target("engine/reading.py", _tests("test_reading.py")),
    Target("engine/condensed.py", _tests("test_condensed_records.py", "test_held.py")),
    Target("engine/chain.py", _tests("test_chain.py", "test_chain_rules.py")),
)  # fmt: skip
