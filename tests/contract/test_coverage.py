"""What `make coverage` passes over in the engine says why, where it stands."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MARK = re.compile(r"#.*\bpragma\b", re.IGNORECASE)
WITH_REASON = re.compile(r"  # pragma: no (cover|branch) - \w.{11,}$")


def unexplained(source: str) -> list[str]:
    return [
        line.strip()
        for line in source.splitlines()
        if MARK.search(line) and not WITH_REASON.search(line)
    ]


@pytest.mark.parametrize(
    ("line", "is_explained"),
    [
        ("return None  # pragma: no cover - only a fault of the interpreter", True),
        ("while True:  # pragma: no branch - left by its return alone", True),
        ("return None  # pragma: no cover", False),
        ("return None  # pragma: no cover - never", False),
        ("return None  # pragma: no covering - only a fault of the interpreter", False),
        ("return None  # pragma: exclude - only a fault of the interpreter", False),
        ("return None  # PRAGMA: NO COVER", False),
    ],
)
def test_a_mark_is_a_known_one_with_words_behind_it(line: str, is_explained: bool) -> None:
    assert is_explained == (unexplained(line) == [])


def test_every_mark_in_the_engine_has_its_reason_in_its_line() -> None:
    sources = sorted((ROOT / "engine").rglob("*.py"))
    assert sources
    found = {str(p.relative_to(ROOT)): unexplained(p.read_text("utf-8")) for p in sources}
    assert {} == {name: lines for name, lines in found.items() if lines}


def test_nothing_is_passed_over_by_a_pattern_or_by_its_file() -> None:
    """A pattern in the settings would have no reason, and would hide what is written later."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["coverage"]
    assert (True, ["app", "engine"]) == (settings["run"]["branch"], settings["run"]["source"])
    passing_over = {"omit", "exclude_also", "exclude_lines", "partial_branches", "partial_also"}
    assert set() == passing_over & {*settings["run"], *settings["report"]}
