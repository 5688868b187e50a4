"""Mutants tried for real: a run in a process of its own, which forks one for each mutant."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.__main__ import main
from tests.mutation.targets import ROOT


def run(state: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.mutation", "--state", str(state), "--jobs", "2"]
    return subprocess.run(
        [*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def outcomes(state: Path) -> dict[str, str]:
    kept = json.loads((state / "engine.model.json").read_text())
    return {name: one["word"] for name, one in kept["outcomes"].items()}


def test_a_mutant_is_killed_by_the_test_of_its_rule_and_not_tried_twice(tmp_path: Path):
    removed = "NOT_ELIGIBLE #1: Reason.CLIENT_ANCHORED -> (removed)"
    first = run(tmp_path, "engine/model.py", "--only", removed)
    assert (first.returncode, first.stderr) == (0, "")
    assert "1 to try" in first.stdout
    assert outcomes(tmp_path) == {removed: "killed"}
    kept = json.loads((tmp_path / "engine.model.json").read_text())["outcomes"][removed]
    assert "test_only_what_was_compared_was_eligible" in kept["by"]
    assert "0 to try" in run(tmp_path, "engine/model.py", "--only", removed).stdout


def test_what_is_no_target_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "argv", ["mutants", "engine/errors.py"])
    with pytest.raises(SystemExit, match="2"):
        main()
