import json
from pathlib import Path

import pytest
from click.testing import Result

from app.alerts.store import create_rule
from app.ledger.database import prepare
from tests.support.alerts import make_rule, write
from tests.support.commands import run
from tests.support.databases import migrated
from tests.support.rows import START_MS

RULE = """
signal = "mismatch_rate"
confidence = "raw"
threshold = 0.2
window = "1m"
delay = 0
min_turns = 1
"""
AN_HOUR = ("--from", "2027-01-15T08:00", "--to", "2027-01-15T09:00")


@pytest.fixture
def faults(monkeypatch) -> None:
    """A ledger with three mismatches in one minute; the present is two hours later."""
    engine = prepare(migrated("ledger.sqlite3"))
    write(engine, START_MS + 90_000, bad=3, good=1)
    write(engine, START_MS + 150_000, good=2)
    engine.dispose()
    monkeypatch.setattr("app.commands.backtest.time.time", lambda: START_MS / 1_000 + 7_200)


def backtested(rule: str, *more: str) -> Result:
    return run("backtest", rule, "--database", "ledger.sqlite3", *AN_HOUR, *more)


def test_a_backtest_tells_when_a_rule_would_have_fired(faults):
    Path("mine.toml").write_text(RULE)
    result = backtested("mine.toml")
    assert 0 == result.exit_code, result.output
    lines = result.output.splitlines()
    assert "mine: mismatch rate above 20 %, over 1m every 1m, from 1 turn on" == lines[0]
    assert "Would have fired once in 1 h 1 min (61 evaluations)." == lines[3]
    assert [
        "2027-01-15",
        "08:02:00",
        "UTC",
        "2027-01-15",
        "08:03:00",
        "UTC",
        "1",
        "min",
        "75",
        "%",
    ] == lines[6].split()


def test_a_backtest_as_json_is_what_the_api_says(faults):
    Path("mine.toml").write_text(RULE)
    told = json.loads(backtested("mine.toml", "--format", "json").output)
    assert (61, 1) == (told["evaluations"], len(told["firings"]))
    assert ["firing", "inactive"] == [
        each["after"] for each in told["transitions"] if each["after"] != "no_data"
    ][:2]
    assert "mine" == told["rule"]["definition"]["name"]


def test_a_backtest_finds_rules_of_the_settings_file_and_of_the_page(faults):
    Path("warmline.toml").write_text("[alerts.rules.written]" + RULE)
    engine = prepare("ledger.sqlite3")
    create_rule(engine, make_rule(id="rule_1", name="On the page"), START_MS)
    engine.dispose()
    for name in ("written", "file-written", "On the page", "rule_1"):
        assert "Would have fired once" in backtested(name).output
    assert "There are: On the page, written." in backtested("nothing").output


def test_a_backtest_says_what_is_wrong_with_a_rule_and_with_a_time(faults):
    Path("mine.toml").write_text(RULE + "thresh = 1")
    assert (
        "There is no field thresh in mine.toml. Did you mean threshold?"
        in backtested("mine.toml").output
    )
    Path("mine.toml").write_text(RULE)
    assert 1 == backtested("mine.toml", "--from", "soon").exit_code
    assert "to is not a time" in backtested("mine.toml", "--to", "soon").output


def test_a_backtest_makes_no_ledger_where_there_is_none():
    Path("mine.toml").write_text(RULE)
    assert "There is no ledger" in backtested("mine.toml").output
    assert not Path("ledger.sqlite3").exists()


def test_a_backtest_does_not_look_into_the_future(faults):
    Path("mine.toml").write_text(RULE)
    told = json.loads(
        run("backtest", "mine.toml", "--database", "ledger.sqlite3", "--from", "now-1h",
            "--to", "2030-01-01", "--format", "json").output
    )  # fmt: skip
    assert 61 == told["evaluations"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_name_of_a_client_commands_the_terminal(faults, form):
    """``\x9b2J`` clears the screen of many; ``\u202e`` turns the line round."""
    name = "a\x9b2J\u202eb"
    engine = prepare("ledger.sqlite3")
    write(engine, START_MS + 90_000, bad=9, model=name)
    engine.dispose()
    Path("mine.toml").write_text(RULE + "group_by = ['model']\nname = 'n\u202em'")
    said = backtested("mine.toml", "--format", form).output
    assert "2J" in said
    assert not {"\x9b", "\u202e"} & set(said)
    if form == "json":
        assert name in [each["group"]["model"] for each in json.loads(said)["firings"]]
