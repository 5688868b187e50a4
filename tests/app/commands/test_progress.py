from pathlib import Path

from tests.support.commands import run


def test_a_file_that_cannot_be_written_is_told(ledger):
    result = run("export", "--database", "ledger.sqlite3", "--output", str(Path("none") / "t.csv"))
    assert (1, True) == (result.exit_code, "cannot be written" in result.output)
