import json
import sqlite3
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import Result

from app.importers import run as importing
from app.ledger.database import prepare
from app.ledger.writer import write_rows
from tests.support.commands import run
from tests.support.importing import as_csv
from tests.support.reported import SILENT, judged

PAST = 1_600_000_000_000


def turns(losses: int, of: int = 60, **more):
    rows = [judged("idle", "likely", 1_000, 0, started_at=PAST, **more) for _ in range(losses)]
    rest = [judged("hit", "proven", 0, 1_000, started_at=PAST, **more) for _ in range(of - losses)]
    return [*rows, *rest]


def checked(rows, *more: str) -> Result:
    Path("log.csv").write_bytes(as_csv(rows))
    return run("check", "log.csv", *more)


def test_what_is_warm_enough_holds():
    result = checked(turns(6))
    assert [
        "ok    60 generation turns, at least 50 are needed",
        "ok    mismatch rate: 0 % (0 of 60 eligible turns), at most 5 % is allowed",
        "ok    missed rate: 10 % (6,000 of 60,000 tokens to be read again), at most 10 % is allowed",
    ] == result.stdout.splitlines()
    assert (0, "") == (result.exit_code, result.stderr)


def test_what_is_too_cold_falls_short():
    result = checked(turns(7))
    assert (1, True) == (result.exit_code, "FAIL  missed rate: 11.7 %" in result.stdout)
    assert 0 == checked(turns(7), "--max-missed-rate", "0.2").exit_code
    assert 1 == checked(turns(0, reason="prefix_mismatch")).exit_code


def test_too_few_turns_decide_nothing():
    assert 2 == checked(turns(0, of=49)).exit_code
    assert 0 == checked(turns(0, of=49), "--min-requests", "49").exit_code
    assert 2 == checked(turns(0), "--where", "model=none").exit_code


def test_a_rate_that_no_log_tells_is_unusable_only_where_it_is_asked_for():
    rows = turns(0, **SILENT)
    assert 0 == checked(rows).exit_code
    result = checked(rows, "--max-mismatch-rate", "0.05")
    assert (2, True) == (result.exit_code, "?     mismatch rate: not recorded" in result.stdout)


def test_the_ledger_of_the_settings_is_checked_without_a_path():
    engine = prepare("ledger.sqlite3")
    write_rows(engine, turns(0))
    engine.dispose()
    assert 0 == run("check", "--database", "ledger.sqlite3").exit_code


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "There is no file nowhere."),
        (["empty"], "There is no log in what was given."),
        (["--database", "none.sqlite3"], "There is no ledger"),
        (["log.csv", "torn.csv"], "torn.csv was not read whole. It is empty."),
        (["log.csv", "--from", "soon"], "from is not a time"),
        (["log.csv", "--max-missed-rate", "5"], "is not in the range"),
        (["log.csv", "--min-requests", "0"], "is not in the range"),
        (["log.csv", "--max-mised-rate", "0.1"], "No such option"),
        (["log.csv", "--where", "x"], "--where takes NAME=VALUE"),
        (["log.csv", "--config", "none.toml"], "none.toml"),
        (["log.csv", "--junit", "nowhere/x.xml"], "nowhere/x.xml cannot be written"),
    ],
)
def test_input_that_is_of_no_use_exits_with_2(arguments, said):
    Path("empty").mkdir()
    Path("torn.csv").write_text("")
    Path("log.csv").write_bytes(as_csv(turns(0)))
    result = run("check", *arguments)
    assert (2, True) == (result.exit_code, said in result.stderr), result.output


def test_a_database_that_fails_while_logs_are_read_exits_with_2(monkeypatch):
    def full(*_args, **_more):
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr(importing, "run", full)
    result = checked(turns(0))
    assert (2, True) == (
        result.exit_code,
        "The database has failed: disk full." in result.stderr,
    ), result.output


def test_the_outcome_as_json_is_that_of_the_exit_code():
    told = json.loads(checked(turns(7), "--json").stdout)
    assert ("falls_short", 1, 3) == (told["outcome"], told["exit_code"], len(told["conditions"]))
    told = json.loads(run("check", "nowhere", "--json").stdout)
    assert ("undecided", 2, "no_file") == (
        told["outcome"],
        told["exit_code"],
        told["error"]["code"],
    )


def test_junit_is_written_whatever_came_of_it():
    checked(turns(7), "--junit", "found.xml")
    (suite,) = ET.parse("found.xml").getroot()
    assert ("3", "1", "0") == tuple(suite.get(name) for name in ("tests", "failures", "errors"))
    run("check", "nowhere", "--junit", "found.xml")
    (suite,) = ET.parse("found.xml").getroot()
    assert ("1", "0", "1") == tuple(suite.get(name) for name in ("tests", "failures", "errors"))
