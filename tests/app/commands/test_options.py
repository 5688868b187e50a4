from pathlib import Path

import pytest

from app.setting_table import SETTINGS
from tests.support.commands import run


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


def test_a_zone_east_of_greenwich_does_not_begin_before_all_time(ledger):
    assert 0 == run("export", "--database", "ledger.sqlite3", "--tz", "Europe/Berlin").exit_code
