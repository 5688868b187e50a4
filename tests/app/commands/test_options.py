import importlib
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.commands.options import load_settings, open_ledger
from app.errors import LedgerError
from app.setting_table import SETTINGS
from tests.support.commands import run

importing = importlib.import_module("app.commands.importing")


def test_every_setting_has_a_flag_and_secrets_only_as_files():
    text = run("serve", "--help").output
    for setting in SETTINGS:
        flag = "--" + setting.name.replace("_", "-")
        if setting.secret and setting.name != "database":
            flag += "-file FILE"
        assert flag in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export",), "There is no ledger at"),
        (("export", "--from", "yesterday"), "Error: from is not a time: 'yesterday'."),
        (("export", "--where", "modell=a"), "Did you mean model?"),
        (("export", "--where", "model"), "--where takes NAME=VALUE"),
        (("export", "--where", "from=now"), "--where takes NAME=VALUE"),
        (("export", "--columns", "modell"), "Did you mean model?"),
        (("db", "upgrade", "--database", "mysql://h/n"), "--database on the command line must be"),
        (("serve", "--port", "x"), "--port on the command line must be a whole number"),
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


def test_a_zone_east_of_greenwich_does_not_begin_before_all_time(ledger):
    assert 0 == run("export", "--database", "ledger.sqlite3", "--tz", "Europe/Berlin").exit_code


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (sqlite3.OperationalError("database is locked"), "database is locked"),
        (
            DBAPIError.instance(
                "SELECT", (), sqlite3.OperationalError("disk I/O error"), sqlite3.Error
            ),
            "disk I/O error",
        ),
        (sqlite3.IntegrityError("a value of a row"), "IntegrityError"),
        (sqlite3.OperationalError(""), "OperationalError"),
        (PoolTimeout(), "TimeoutError"),
    ],
)
def test_a_database_that_fails_at_work_is_told_in_one_line(ledger, error, said: str):
    with (
        pytest.raises(LedgerError) as caught,
        open_ledger(load_settings(None, {"database": "ledger.sqlite3"})),
    ):
        raise error
    assert f"The database has failed: {said}." == caught.value.message
    assert "run the command again" in str(caught.value)


def test_a_locked_ledger_is_told_in_one_line(ledger, tmp_path: Path, monkeypatch):
    Path("turns.csv").write_bytes(b"turn_id\r\n")
    monkeypatch.setattr(importing, "run", locked)
    for arguments in (("import", "turns.csv"), ("import", "--undo", "1f0c92ab")):
        monkeypatch.setattr(importing.imports, "undo", locked)
        result = run(*arguments, "--database", "ledger.sqlite3")
        assert (1, True) == (result.exit_code, "database is locked" in result.output)


def locked(*_arguments: object, **_options: object) -> None:
    raise sqlite3.OperationalError("database is locked")
