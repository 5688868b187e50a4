from pathlib import Path

import pytest

from app.errors import SettingsError
from app.settings import MASK, Settings, is_loopback, load, without_password
from engine.model import Policy

HOME = {"XDG_DATA_HOME": "/data"}


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(toml: str | None = None, environ=None, **flags: str) -> Settings:
    if toml is not None:
        Path("warmline.toml").write_text(toml)
    return load(environ=HOME | (environ or {}), flags=flags)


def refused(*args, **flags) -> str:
    with pytest.raises(SettingsError) as caught:
        read(*args, **flags)
    return str(caught.value)


def test_without_any_source_the_defaults_hold():
    found = read()
    assert ("127.0.0.1", 8787, "https://api.openai.com/v1") == (
        found.host,
        found.port,
        found.upstream,
    )
    assert ("/data/warmline/ledger.sqlite3", Path("/data/warmline/ledger.sqlite3.key")) == (
        found.database,
        found.key_file,
    )
    assert {"default"} == set(found.upstreams)
    assert (found.upstream, Policy()) == (
        found.upstreams["default"].base_url,
        found.upstreams["default"].policy,
    )
    assert {"default"} == set(found.sources.values())


def test_without_xdg_data_home_the_ledger_is_in_the_home_directory(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    for environ in ({}, {"XDG_DATA_HOME": ""}, {"XDG_DATA_HOME": "relative/is/invalid"}):
        assert (
            "/home/somebody/.local/share/warmline/ledger.sqlite3" == load(environ=environ).database
        )


def test_flags_beat_the_environment_and_the_environment_beats_the_file():
    toml, environ = (
        "port = 1\nhost = '127.0.0.2'\nlog_level = 'error'",
        {
            "WARMLINE_PORT": "2",
            "WARMLINE_HOST": "127.0.0.3",
        },
    )
    found = read(toml, environ, port="3")
    assert (3, "127.0.0.3", "error") == (found.port, found.host, found.log_level)
    assert ("the command line", "the environment", "warmline.toml", "default") == tuple(
        found.sources[name] for name in ("port", "host", "log_level", "upstream")
    )


def test_a_flag_that_was_not_given_changes_nothing():
    assert 8787 == load(environ=HOME, flags={"port": None}).port


def test_a_blank_variable_is_as_good_as_none():
    assert 8787 == read(environ={"WARMLINE_PORT": " "}).port


def test_other_variables_are_none_of_our_business():
    assert 8787 == read(environ={"PORT": "1", "OTHER_WARMLINE_PORT": "2"}).port


def test_the_file_may_be_named_by_flag_or_variable(tmp_path: Path):
    (tmp_path / "a.toml").write_text("port = 1")
    (tmp_path / "b.toml").write_text("port = 2")
    variable = HOME | {"WARMLINE_CONFIG": str(tmp_path / "b.toml")}
    assert 2 == load(environ=variable).port
    assert 1 == load(config=tmp_path / "a.toml", environ=variable).port


def test_a_named_file_that_is_not_there_is_an_error():
    with pytest.raises(SettingsError, match=r"nowhere\.toml cannot be read"):
        load(config="nowhere.toml", environ=HOME)


def test_a_broken_file_is_told_with_the_line():
    assert "warmline.toml is not valid TOML" in refused("port = ")
    assert "line 2" in refused("port = 1\nhost = x\n")


@pytest.mark.parametrize(
    ("toml", "environ", "flags", "message"),
    [
        (
            "prot = 1",
            {},
            {},
            "There is no setting prot (in warmline.toml). The nearest one is port.",
        ),
        (
            None,
            {"WARMLINE_PROT": "1"},
            {},
            (
                "There is no setting WARMLINE_PROT (in the environment). The nearest one is "
                "WARMLINE_PORT."
            ),
        ),
        ("zzz = 1", {}, {}, "The nearest one is"),
        ("[upstreams.a]\nbase_ulr = 'x'", {}, {}, "in [upstreams.a] in warmline.toml"),
        ("[upstreams.a]\nbase_ulr = 'x'", {}, {}, "The nearest one is base_url."),
        ("port = '1'", {}, {}, "port in warmline.toml must be a whole number from 0 to 65535."),
        (
            None,
            {"WARMLINE_PORT": "x"},
            {},
            "WARMLINE_PORT in the environment must be a whole number",
        ),
        (None, {}, {"port": "x"}, "--port on the command line must be a whole number"),
        ("pseudonymize = 1", {}, {}, "pseudonymize in warmline.toml must be true or false"),
        ("allowed_hosts = 'a'", {}, {}, "must be a list of host names"),
        ("key_file_file = 'x'", {}, {}, "There is no setting key_file_file"),
        ("upstreams = 3", {}, {}, "must be tables"),
        ("[upstreams]\na = 3", {}, {}, "must be tables"),
        ("[upstreams.Azure]\nbase_url = 'https://a'", {}, {}, "cannot stand in a URL"),
        (
            "[upstreams.a]\ntools = 'strict'",
            {},
            {},
            "[upstreams.a] in warmline.toml has no base_url",
        ),
        ("[upstreams.a]\nbase_url = 'a'", {}, {}, "must be a URL with http:// or https://"),
        (
            "[upstreams.a]\nbase_url = 'https://a'\ncontinuation = 'on'",
            {},
            {},
            (
                "continuation in [upstreams.a] in warmline.toml must be one of websocket, store, observe, off."
            ),
        ),
        (
            "upstream = 'https://a'\n[upstreams.default]\nbase_url = 'https://a'",
            {},
            {},
            "sets both upstream and base_url",
        ),
        ("token = 'abcdefgh'\ntoken_file = 'x'", {}, {}, "sets both token and token_file"),
        (None, {"WARMLINE_TOKEN_FILE": "nowhere"}, {}, "WARMLINE_TOKEN_FILE"),
        ("token_file = 3", {}, {}, "cannot be read"),
        ("database = 'mysql://h/n'", {}, {}, "postgresql://"),
        ("database = 'postgresql://h/n'", {}, {}, "key_file is required"),
    ],
)
def test_a_setting_that_cannot_be_right_is_told_by_key_place_and_remedy(
    toml, environ, flags, message
):
    assert message in refused(toml, environ, **flags)


def test_variables_that_kubernetes_makes_are_explained():
    for name, value in (
        ("WARMLINE_PORT", "tcp://10.0.0.1:8787"),
        ("WARMLINE_SERVICE_HOST", "10.0.0.1"),
        ("WARMLINE_PORT_8787_TCP", "tcp://10.0.0.1:8787"),
    ):
        assert "enableServiceLinks: false" in refused(None, {name: value})


def test_a_secret_may_come_from_a_file_whatever_the_source(tmp_path: Path):
    (tmp_path / "secret").write_text("from-a-file\n")
    path = str(tmp_path / "secret")
    assert "from-a-file" == read(f"token_file = '{path}'").token
    assert "from-a-file" == read("", {"WARMLINE_TOKEN_FILE": path}).token
    assert "from-a-file" == read("token = 'in-the-toml'", token_file=path).token


def test_secrets_are_shown_nowhere():
    found = read(
        "token = 'hunter2-token'\ngateway_token = 'hunter2-gateway'\n"
        "database = 'postgresql://user:hunter2@host/name'\nkey_file = 'k'"
    )
    for text in (repr(found), str(found), repr(found.shown())):
        assert "hunter2" not in text
    assert (MASK, f"postgresql://user:{MASK}@host/name") == (
        found.shown()["token"],
        found.shown()["database"],
    )
    assert read("").shown()["token"] is None
    assert "hunter2" not in refused("token = 'hunter2 hunter2'")
    assert "hunter2" not in refused("database = 'mysql://u:hunter2@h/n'")


def test_the_key_lies_beside_an_sqlite_ledger():
    for database, expected in (
        ("a/b.sqlite3", "a/b.sqlite3.key"),
        ("sqlite:////var/b.sqlite3?timeout=3", "/var/b.sqlite3.key"),
    ):
        assert Path(expected) == read(database=database).key_file
    assert Path("/k") == read(database="a/b.sqlite3", key_file="/k").key_file


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "warm.example"])
def test_what_other_machines_can_reach_needs_both_tokens(host: str):
    token, gateway = "token = 'abcdefgh'\n", "gateway_token = 'ijklmnop'\n"
    message = refused("", host=host)
    assert f"Other machines can reach {host}, but token and gateway_token are not set." in message
    assert "but gateway_token is not set" in refused(token, host=host)
    assert "but token is not set" in refused(gateway, host=host)
    assert host == read(token + gateway, host=host).host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
def test_on_loopback_no_token_is_needed(host: str):
    assert is_loopback(host)
    assert read(host=host).is_loopback


def test_a_password_is_masked_and_nothing_else():
    assert "ledger:x@y.sqlite3" == without_password("ledger:x@y.sqlite3")
    assert "sqlite:///a" == without_password("sqlite:///a")
    assert "postgresql://u@h/n" == without_password("postgresql://u@h/n")
    assert f"postgresql://u:{MASK}@h/n" == without_password("postgresql://u:p@h/n")
    assert MASK == without_password("postgresql://u:p@[h/n")


def test_messages_link_to_the_public_url_or_to_where_the_server_listens():
    assert "https://warm.example" == read("public_url = 'https://warm.example/'").base_url
    assert "http://127.0.0.1:8787" == read("").base_url
    assert "http://[::1]:1" == read(host="::1", port="1").base_url


ALERTS = """
[alerts.rules.mismatch]
signal = "mismatch_rate"
[alerts.receivers.ops]
url = "https://host/hunter2"
secrets = ["whsec_hunter2"]
"""


def test_the_tables_of_alerts_are_kept_as_they_are_written():
    found = read(ALERTS).alerts
    assert ({"mismatch": {"signal": "mismatch_rate"}}, "warmline.toml") == (
        found.rules,
        found.place,
    )
    assert ["whsec_hunter2"] == found.receivers["ops"]["secrets"]
    assert ({}, {}) == (read("").alerts.rules, read("").alerts.receivers)


def test_of_a_receiver_only_the_name_is_shown():
    found = read(ALERTS)
    assert {"rules": ["mismatch"], "receivers": ["ops"]} == found.shown()["alerts"]
    for text in (repr(found), str(found), repr(found.shown()), repr(found.alerts)):
        assert "hunter2" not in text


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("alerts = 3", "alerts in warmline.toml must be a table."),
        ("[alerts]\nrules = 3", "alerts.rules in warmline.toml must be tables"),
        ("[alerts.receivers]\nops = 3", "alerts.receivers in warmline.toml must be tables"),
        ("[alerts.rule.a]\nx = 1", "There is no table [alerts.rule] (in warmline.toml)."),
        ("[alerts]\nevery = 3", "There is no table [alerts.every] (in warmline.toml)."),
        ("[alerts.rules.Big]\nx = 1", "[alerts.rules.Big] in warmline.toml has a name"),
    ],
)
def test_other_tables_of_alerts_are_refused(toml: str, message: str):
    assert message in refused(toml)


def test_alerts_stand_in_the_file_only():
    assert "no setting WARMLINE_ALERTS" in refused(None, {"WARMLINE_ALERTS": "x"})
