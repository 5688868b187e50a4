from pathlib import Path

import pytest

from app.alerts.config import check_receivers, read
from app.errors import SettingsError
from app.settings import Settings, load

SECRET = "whsec_bm90LWEtcmVhbC1zZWNyZXQtYnV0LWxvbmc="
RULE = "[alerts.rules.mismatch]\nsignal = 'mismatch_rate'\nthreshold = 0.2\n"


def settings(tmp_path: Path, toml: str) -> Settings:
    (tmp_path / "w.toml").write_text(toml)
    return load(config=tmp_path / "w.toml", environ={"XDG_DATA_HOME": "/data"})


def refused(tmp_path: Path, toml: str) -> str:
    with pytest.raises(SettingsError) as caught:
        read(settings(tmp_path, toml))
    return str(caught.value)


def test_without_tables_there_are_no_rules(tmp_path: Path):
    assert () == read(settings(tmp_path, "")).rules


def test_a_rule_is_named_like_its_table_and_its_id_says_that_it_is_in_the_file(tmp_path: Path):
    (rule,) = read(settings(tmp_path, RULE)).rules
    assert ("file-mismatch", "mismatch", 0.2) == (rule.id, rule.name, rule.threshold)


def test_a_rule_may_have_a_name_of_its_own(tmp_path: Path):
    (rule,) = read(settings(tmp_path, RULE + "name = 'Breaks of agents'")).rules
    assert ("file-mismatch", "Breaks of agents") == (rule.id, rule.name)


def test_receivers_are_handed_on_as_they_are_written(tmp_path: Path):
    toml = f"[alerts.receivers.ops]\nurl = 'https://h/x'\nsecrets = ['{SECRET}']\n"
    found = read(settings(tmp_path, toml)).receivers
    assert {"ops": {"url": "https://h/x", "secrets": [SECRET]}} == found.receivers


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("thresh = 1", "There is no field thresh in [alerts.rules.mismatch] in "),
        ("window = 'soon'", "window in [alerts.rules.mismatch] in "),
        ("recover = 0.3", "recover in [alerts.rules.mismatch] in "),
        ("filter = 'mod=x'", "filter in [alerts.rules.mismatch] in "),
    ],
)
def test_a_rule_that_cannot_be_read_is_told_by_table_key_and_file(tmp_path: Path, more, message):
    said = refused(tmp_path, RULE + more)
    assert said.startswith(message)
    assert "w.toml" in said


def test_two_rules_of_one_name_are_refused(tmp_path: Path):
    said = refused(tmp_path, RULE + RULE.replace("rules.mismatch", "rules.b") + "name = 'mismatch'")
    assert "[alerts.rules.mismatch] and [alerts.rules.b] in " in said


def test_a_receiver_that_is_not_there_is_told_with_those_that_are(tmp_path: Path):
    rules = read(settings(tmp_path, RULE + "receivers = ['ops', 'opps']")).rules
    check_receivers(rules, {"ops", "opps"}, "w.toml")
    with pytest.raises(SettingsError) as caught:
        check_receivers(rules, {"ops", "dev"}, "w.toml")
    assert (
        "receivers in [alerts.rules.mismatch] in w.toml names opps, which is no receiver. "
        "Add [alerts.receivers.opps], or take it out. There are: dev, ops." == str(caught.value)
    )


def test_an_address_in_the_place_of_a_receivers_name_is_not_told(tmp_path: Path):
    rules = read(settings(tmp_path, RULE + "receivers = ['https://hooks.example/canary']")).rules
    with pytest.raises(SettingsError, match="names https://…, which is no receiver") as caught:
        check_receivers(rules, {"ops"}, "w.toml")
    assert "canary" not in str(caught.value)
