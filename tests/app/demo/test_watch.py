import pytest

from app.alerts.config import read
from app.demo.history import QUIET
from app.demo.receiver import Receiver
from app.demo.watch import DELAY, EVERY, WINDOW, tables, times
from app.settings import load
from tests.support.clock import ManualClock
from tests.support.rows import START_MS


@pytest.fixture
def receiver():
    made = Receiver(ManualClock())
    made.url = f"http://127.0.0.1:5{made.path}"
    return made


@pytest.fixture
def settings(receiver, tmp_path):
    config = tmp_path / "warmline.toml"
    config.write_text(tables(receiver, 1.0), "utf-8")
    return load(config=config, environ={})


def test_the_settings_file_takes_the_rules_and_the_receiver(settings, receiver):
    config = read(settings)
    assert config.receivers.receivers == {
        "demo": {"kind": "webhook", "url": receiver.url, "secrets": [receiver.secret]}
    }
    assert settings.webhook_private_hosts == ("127.0.0.1",)
    assert {rule.id: rule.receivers for rule in config.rules} == {
        "file-notes": ("demo",),
        "file-errors": ("demo",),
        "file-real": ("demo",),
    }


def test_samples_are_watched_because_the_rules_name_them(settings):
    watched = {
        rule.id: "sample" in rule.view(START_MS, START_MS + 1_000).include["source"]
        for rule in read(settings).rules
    }
    assert watched == {"file-notes": True, "file-errors": True, "file-real": False}


def test_the_short_rule_waits_for_one_round_of_the_agent(settings):
    rule = next(rule for rule in read(settings).rules if rule.id == "file-notes")
    assert (rule.window, rule.every, rule.delay) == (WINDOW, EVERY, DELAY)
    assert rule.min_turns == 5
    assert rule.pending_for == rule.keep_firing_for == 0


def test_the_made_up_history_lies_before_the_first_window():
    assert QUIET > WINDOW + DELAY + EVERY


@pytest.mark.parametrize("pace", [0, 0.01, 0.1, 0.3, 1, 2.5])
def test_a_window_is_a_multiple_of_its_step_at_any_pace(pace):
    window, every, delay = times(pace)
    assert window % every == 0
    assert min(window // every, every, delay) >= 1


def test_the_pace_scales_the_times():
    assert times(1) == (60, 5, 2)
    assert times(0.1) == (6, 1, 1)
    assert times(2) == (120, 10, 4)
