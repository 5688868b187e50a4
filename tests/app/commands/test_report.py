import importlib
import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.ledger.database import prepare
from app.ledger.writer import write_rows
from tests.support.commands import run
from tests.support.importing import as_csv
from tests.support.reported import some_turns
from tests.support.rows import make_row

wants_colours = importlib.import_module("app.commands.report").wants_colours
PAST = 1_600_000_000_000


@pytest.fixture
def log() -> str:
    Path("log.csv").write_bytes(as_csv(some_turns(started_at=PAST)) + b"x\r\n")
    return "log.csv"


def test_a_log_is_told_without_a_ledger(log):
    result = run("report", log)
    assert 0 == result.exit_code, result.output
    lines = result.output.splitlines()
    assert "Warmline report: 1 file (csv), 8 requests of 2 sessions" == lines[0]
    assert "Missed       25 %: 10,000 of 40,000 tokens to be read again" in lines
    assert [log] == [path.name for path in Path().iterdir()]


def test_a_log_without_verdicts_is_judged():
    rows = [
        make_row(started_at=PAST + at * 60_000, input_tokens=10_000, cached_tokens=cached)
        for at, cached in enumerate((0, 9_984, 9_984))
    ]
    Path("log.csv").write_bytes(as_csv(rows))
    told = json.loads(run("report", "log.csv", "--json").stdout)
    assert {"cold_start": 1, "hit": 2} == {
        one["verdict"]: one["turns"] for one in told["cache"]["verdicts"]
    }


def test_without_a_path_the_ledger_of_the_settings_is_told():
    engine = prepare("ledger.sqlite3")
    write_rows(engine, some_turns(started_at=PAST))
    engine.dispose()
    assert "the ledger, 8 requests" in run("report", "--database", "ledger.sqlite3").output
    assert "There is no ledger" in run("report", "--database", "none.sqlite3").output


def test_files_are_told_as_the_ledger_that_they_are_imported_into():
    """Other tools' logs too: only the hashes differ, which are made with the ledger's key."""
    Path("logs").mkdir()
    turns = [
        json.dumps({"t": PAST // 1_000 + at * 60, "chain": "c", "input": given, "cached": cached})
        for at, (given, cached) in enumerate(
            [(9_000, 0), (12_000, 2_048), (15_000, 0), (18_000, 14_976)]
        )
    ]
    Path("logs/other.ndjson").write_text("\n".join(turns) + "\n")
    Path("logs/own.csv").write_bytes(as_csv(some_turns(started_at=PAST)))
    named = ("--database", "ledger.sqlite3", "--key-file", "ledger.key")
    from_files = json.loads(run("report", "logs", "--json").stdout)
    assert 0 == run("import", "logs", *named).exit_code
    from_ledger = json.loads(run("report", "--json", *named).stdout)
    assert 3 == len(from_files["worst_sessions"])
    for told in (from_files, from_ledger):
        del told["read"]
        for session in told["worst_sessions"]:
            del session["session_key"]
    assert from_files == from_ledger


def test_the_values_are_those_of_the_filter(log):
    told = json.loads(run("report", log, "--json", "--where", "session=session-b").stdout)
    assert (2, 8_000) == (told["turns"]["total"], told["cache"]["missed_tokens"])
    told = json.loads(run("report", log, "--json", "--to", "2020-01-01").stdout)
    assert (0, None) == (told["turns"]["total"], told["cache"]["missed_rate"])


def test_a_page_appears_when_it_is_complete(log):
    result = run("report", log, "--html", "page.html")
    assert 0 == result.exit_code, result.output
    assert Path("page.html").read_text("utf-8").startswith("<!doctype html>")
    assert ["log.csv", "page.html"] == sorted(path.name for path in Path().iterdir())
    result = run("report", log, "--html", "nowhere/page.html")
    assert (1, True) == (result.exit_code, "nowhere/page.html cannot be written" in result.output)


def test_what_is_no_log_is_told_and_fails():
    result = run("report", "nowhere")
    assert (1, "Error: There is no file nowhere. Check how it is spelt.\n") == (
        result.exit_code,
        result.output,
    )


def in_a_terminal(*arguments: str) -> str:
    """What a person sees who runs it."""
    outer, inner = pty.openpty()
    root = str(Path(__file__).resolve().parents[3])
    variables = {**os.environ, "PYTHONPATH": root, "TERM": "xterm", "NO_COLOR": ""}
    with subprocess.Popen(
        [sys.executable, "-c", "from app.cli import main; main()", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=inner,
        stderr=inner,
        env=variables,
    ) as process:
        os.close(inner)
        seen = b"".join(iter(lambda: _read(outer), b""))
        assert 0 == process.wait(60), seen
    os.close(outer)
    return seen.decode("utf-8", "replace").replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other side is closed
        return b""


def test_a_terminal_gets_bars_and_colours_and_one_screen_of_lines(log):
    seen = in_a_terminal("report", "log.csv")
    assert "\x1b[1mWarmline report\x1b[0m" in seen
    assert "Reading" in seen
    assert "Judging" in seen
    assert "Adding up" in seen
    told = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen[seen.index("\x1b[1mWarmline report") :])
    assert 23 >= len(told.splitlines())


class Stream(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("terminal", "environ", "wanted"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": ""}, True),
        (True, {"NO_COLOR": "1"}, False),
        (False, {}, False),
    ],
)
def test_colours_are_for_terminals_whose_owner_wants_them(terminal, environ, wanted):
    assert wanted == wants_colours(Stream(terminal=terminal), environ)
