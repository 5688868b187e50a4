from dataclasses import fields

from app.setting_table import BY_NAME, SETTINGS, UPSTREAM_HELP, UPSTREAM_SETTINGS
from app.settings import Settings
from engine.model import Policy
from engine.sessions import Bounds


def test_the_fields_of_the_settings_are_those_of_the_table():
    extra = {"upstreams", "alerts", "sources"}
    assert {setting.name for setting in SETTINGS} == {f.name for f in fields(Settings)} - extra


def test_every_default_is_a_value_that_its_kind_takes():
    for setting in (*SETTINGS, *UPSTREAM_SETTINGS):
        if setting.default is not None:
            assert setting.default == setting.kind.check(setting.default), setting.name


def test_every_setting_says_what_it_does():
    for setting in (*SETTINGS, *UPSTREAM_SETTINGS):
        assert setting.help.endswith("."), setting.name


def test_an_upstreams_keys_are_its_address_its_preset_and_the_engines_policy():
    policy = [part.name for part in fields(Policy)]
    assert ["base_url", "preset", *policy] == [setting.name for setting in UPSTREAM_SETTINGS]
    assert sorted(UPSTREAM_HELP) == sorted(setting.name for setting in UPSTREAM_SETTINGS)


def test_defaults_of_the_policy_are_the_engines():
    for setting in UPSTREAM_SETTINGS[2:]:
        assert getattr(Policy(), setting.name) == setting.default


def test_bounds_are_the_engines_where_nothing_is_set():
    bounds = Bounds()
    assert (bounds.sessions, bounds.chains_per_session, bounds.connections, bounds.bytes) == tuple(
        BY_NAME[name].default
        for name in ("max_sessions", "chains_per_session", "max_connections", "baseline_bytes")
    )


def test_secrets_are_marked():
    assert {"token", "gateway_token", "database"} == {s.name for s in SETTINGS if s.secret}
