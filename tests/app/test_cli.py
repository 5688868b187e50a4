import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import delete, func, select

from app.alerts.store import create_rule
from app.cli import main
from app.ledger import retention
from app.ledger.database import prepare
from app.ledger.rollups import tables
from app.ledger.rollups.contribution import QUARTER
from app.ledger.writer import write_rows
from app.setting_table import SETTINGS
from app.version import VERSION
from tests.support.alerts import make_rule, write
from tests.support.rows import START_MS, make_row

HOUR = 3_600_000


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch):
    """An empty directory and home, and no settings from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[list]:
    rows = [
        make_row(started_at=START_MS, model="a"),
        make_row(started_at=START_MS + HOUR, model="b"),
        make_row(started_at=START_MS + 2 * HOUR, model="=a"),
    ]
    engine = prepare("ledger.sqlite3")
    write_rows(engine, rows)
    engine.dispose()
    return rows


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def exported(*arguments: str) -> list[dict[str, str]]:
    result = run("export", "--database", "ledger.sqlite3", "--to", "2028-01-01", *arguments)
    assert 0 == result.exit_code, result.output
    return list(csv.DictReader(io.StringIO(result.stdout_bytes.decode("utf-8-sig"), newline="")))


def test_every_command_has_help():
    for command in (
        (),
        ("serve",),
        ("export",),
        ("audit",),
        ("backtest",),
        ("db", "upgrade"),
        ("db", "rollup"),
    ):
        result = run(*command, "--help")
        assert (0, True) == (result.exit_code, result.output.startswith("Usage:"))


def test_the_version_is_that_of_the_package():
    assert f"warmline, version {VERSION}\n" == run("--version").output


def test_every_setting_has_a_flag_and_secrets_only_as_files():
    text = run("serve", "--help").output
    for setting in SETTINGS:
        flag = "--" + setting.name.replace("_", "-")
        if setting.secret and setting.name != "database":
            flag += "-file FILE"
        assert flag in text


def test_export_writes_all_turns_oldest_first(ledger):
    assert [row.turn_id for row in ledger] == [line["turn_id"] for line in exported()]


def test_export_writes_the_turns_of_a_filter(ledger):
    assert ["b"] == [line["model"] for line in exported("--where", "model=b")]
    assert ["a", "'=a"] == [line["model"] for line in exported("--where", "model=!b")]
    window = ("--from", "2027-01-15T09:00", "--tz", "UTC", "--by", "started")
    assert ["b", "'=a"] == [line["model"] for line in exported(*window)]


def test_export_takes_columns_raw_text_and_a_byte_order_mark(ledger):
    lines = exported("--columns", "model,turn_id", "--raw", "--bom")
    assert ["model", "turn_id"] == list(lines[0])
    assert "=a" == lines[2]["model"]
    result = run("export", "--database", "ledger.sqlite3", "--bom", "--columns", "model")
    assert result.stdout_bytes.startswith(b"\xef\xbb\xbfmodel\r\n")


def test_export_writes_json_lines(ledger):
    result = run(
        "export", "--database", "ledger.sqlite3", "--to", "2028-01-01", "--format", "jsonl"
    )
    assert 0 == result.exit_code, result.output
    assert [row.as_dict() for row in ledger] == [
        json.loads(line) for line in result.stdout_bytes.splitlines()
    ]


def test_export_into_a_file_leaves_just_that_file(ledger, tmp_path: Path):
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "turns.csv"
    assert [] == exported("--output", str(target))
    assert 4 == target.read_bytes().count(b"\r\n")
    assert ["turns.csv"] == [path.name for path in target.parent.iterdir()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export",), "There is no ledger at"),
        (("export", "--from", "yesterday"), "Error: from is not a time: 'yesterday'."),
        (("export", "--where", "modell=a"), "Did you mean model?"),
        (("export", "--where", "model"), "--where takes NAME=VALUE"),
        (("export", "--where", "from=now"), "--where takes NAME=VALUE"),
        (("export", "--columns", "modell"), "Did you mean model?"),
        (("db", "upgrade", "--database", "mysql://h/n"), "--database in the command line must be"),
        (("serve", "--port", "x"), "--port in the command line must be a whole number"),
        (("serve", "--host", "0.0.0.0"), "token and gateway_token are not set"),
        (("serve", "--config", "nowhere.toml"), "nowhere.toml cannot be read"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(arguments, message: str):
    result = run(*arguments)
    assert 0 != result.exit_code
    assert message in result.output
    assert "Traceback" not in result.output


def test_reading_makes_no_empty_ledger(tmp_path: Path):
    run("export", "--database", "ledger.sqlite3")
    assert [] == list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_told(ledger):
    result = run("export", "--database", "ledger.sqlite3", "--output", str(Path("none") / "t.csv"))
    assert (1, True) == (result.exit_code, "cannot be written" in result.output)


def test_db_upgrade_makes_the_ledger_and_says_where_it_stands(tmp_path: Path):
    result = run("db", "upgrade", "--database", "new.sqlite3")
    assert (0, "new.sqlite3 is at schema 0004.\n") == (result.exit_code, result.output)
    assert (tmp_path / "new.sqlite3").is_file()


def test_db_rollup_counts_the_rows_anew(ledger):
    engine = prepare("ledger.sqlite3")
    with engine.begin() as connection:
        connection.execute(delete(tables.cells))
    result = run("db", "rollup", "--database", "ledger.sqlite3")
    assert (0, "3 rows counted.\n") == (result.exit_code, result.output)
    counted = select(func.sum(tables.cells.c.turns)).where(
        tables.cells.c.level == QUARTER, tables.cells.c.detail == 0
    )
    with engine.connect() as connection:
        assert 3 == connection.execute(counted).scalar_one()
    engine.dispose()


def test_db_rollup_says_what_it_leaves_alone(ledger):
    engine = prepare("ledger.sqlite3")
    retention.prune(engine, START_MS, row_days=1, rollup_days=0)
    engine.dispose()
    result = run("db", "rollup", "--database", "ledger.sqlite3")
    assert result.output == (
        "3 rows counted. Sums of time before 2027-01-14T00:00:00.000Z are left as they are.\n"
    )


def test_serve_runs_the_application_with_the_settings(monkeypatch):
    seen = {}
    monkeypatch.setattr("app.main.create_app", lambda settings: "the application")
    monkeypatch.setattr("app.server.configure_logging", lambda level: seen.update(level=level))
    monkeypatch.setattr(
        "app.server.run", lambda app, settings: seen.update(app=app, settings=settings)
    )
    result = run("serve", "--port", "8799", "--pseudonymize", "--log-level", "error")
    assert (0, "error") == (result.exit_code, seen["level"]), result.output
    assert ("the application", True, 8799) == (
        seen["app"],
        seen["settings"].pseudonymize,
        seen["settings"].port,
    )


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
    engine = prepare("ledger.sqlite3")
    write(engine, START_MS + 90_000, bad=3, good=1)
    write(engine, START_MS + 150_000, good=2)
    engine.dispose()
    monkeypatch.setattr("app.cli.time.time", lambda: START_MS / 1_000 + 7_200)


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


# --- warmline audit ----------------------------------------------------------------------------


def continued(tmp_path: Path, **changes) -> None:
    """A ledger of two turns, of which the second continues the first."""
    engine = prepare(str(tmp_path / "ledger.sqlite3"))
    before = make_row(turn_id="one", mode="ws_full", response_id="r1", baseline_digest="d1")
    given = {"previous_response_id": "r1", "prefix_digest": "d1", "mode": "ws_incremental"}
    write_rows(engine, [before, make_row(turn_id="two", **(given | changes))])
    engine.dispose()


def audited(*more: str) -> Result:
    return run("audit", "--database", "ledger.sqlite3", "--to", "2028-01-01", *more)


def test_an_audit_of_a_sound_ledger_says_so_and_exits_with_0(tmp_path: Path):
    continued(tmp_path)
    result = audited()
    assert 0 == result.exit_code, result.output
    assert result.stdout == (
        "2 turns read, 1 of them incremental: 1 verified, 0 wrong, 0 unknown\n"
    )


def test_an_audit_names_each_turn_that_breaks_the_chain_and_exits_with_1(tmp_path: Path):
    continued(tmp_path, prefix_digest="d9")
    result = audited()
    assert 1 == result.exit_code
    assert result.stdout.startswith("wrong: turn two of session session-a continues another")
    told = [json.loads(line) for line in audited("--format", "jsonl").stdout.splitlines()]
    assert [("two", "prefix_differs")] == [(t["turn_id"], t["verdict"]) for t in told[:-1]]
    assert (1, 0) == (told[-1]["wrong"], told[-1]["unknown"])


def test_an_audit_lists_what_cannot_be_checked_only_where_it_is_asked_to(tmp_path: Path):
    continued(tmp_path, previous_response_id="pruned")
    quiet, told = audited(), audited("--unknown")
    assert (0, 0) == (quiet.exit_code, told.exit_code)
    assert 1 == len(quiet.stdout.splitlines())
    assert told.stdout.startswith("unknown: turn two of session session-a continues a response")


def test_an_audit_takes_the_filters_of_an_export(tmp_path: Path):
    continued(tmp_path, prefix_digest="d9")
    assert 0 == audited("--where", "mode=ws_full").exit_code
    assert 1 == audited("--where", "session=session-a").exit_code
    assert 1 == audited("--from", "2027-01-15", "--tz", "UTC", "--by", "started").exit_code
