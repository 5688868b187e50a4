import io
import sys
from pathlib import Path

import pytest

from app.commands.progress import count
from tests.support.commands import run


def test_a_file_that_cannot_be_written_is_told(ledger):
    result = run("export", "--database", "ledger.sqlite3", "--output", str(Path("none") / "t.csv"))
    assert (1, True) == (result.exit_code, "cannot be written" in result.output)


def seen(monkeypatch, output: str) -> tuple[list[int], str]:
    """How often the length was asked for, and what a person saw on the way to five of ten."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    asked = []
    with count(output, lambda: asked.append(10) or 10) as progress:
        progress(2)
        progress(5)
    return asked, terminal.getvalue()


def test_a_person_sees_how_much_is_written(monkeypatch):
    asked, told = seen(monkeypatch, "turns.csv")
    assert [10] == asked
    assert "Writing" in told
    assert " 50%" in told


def test_nothing_is_counted_where_nobody_looks(monkeypatch):
    assert ([], "") == seen(monkeypatch, "-")
    monkeypatch.undo()
    with count("turns.csv", lambda: pytest.fail("nobody looks")) as progress:
        progress(1)
