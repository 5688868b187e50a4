"""The tables ``[upstreams.NAME]``."""

from pathlib import Path

import pytest

from app.errors import SettingsError
from app.settings import Settings, load
from app.upstream_settings import check_name
from engine.model import Policy

HOME = {"XDG_DATA_HOME": "/data"}


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(toml: str, **flags: str) -> Settings:
    Path("warmline.toml").write_text(toml)
    return load(environ=HOME, flags=flags)


def refused(toml: str) -> tuple[str, str | None]:
    with pytest.raises(SettingsError) as caught:
        read(toml)
    return caught.value.message, caught.value.hint


def test_an_upstream_has_the_engines_policy_with_what_its_table_changes():
    found = read(
        "visible_keys = ['_meta', 'trace']\n"
        "[upstreams.azure]\nbase_url = 'https://azure.example/v1/'\ncontinuation = 'off'\n"
        "idle_timeout = 12\nretry_ambiguous = true\nepoch_turns = 20\n"
        "[upstreams.other]\nbase_url = 'http://other'\nvisible_keys = []\n"
        "[upstreams.default]\ntools = 'relaxed'\n"
    )
    azure = found.upstreams["azure"]
    assert "https://azure.example/v1" == azure.base_url
    assert (
        Policy(
            continuation="off",
            idle_timeout=12.0,
            retry_ambiguous=True,
            epoch_turns=20,
            visible_keys=("_meta", "trace"),
        )
        == azure.policy
    )
    assert () == found.upstreams["other"].policy.visible_keys
    assert ("relaxed", found.upstream) == (
        found.upstreams["default"].policy.tools,
        found.upstreams["default"].base_url,
    )


def test_the_default_upstreams_address_may_stand_in_its_table_and_a_flag_beats_it():
    toml = "[upstreams.default]\nbase_url = 'https://file/v1'"
    assert "https://file/v1" == read(toml).upstreams["default"].base_url
    found = read(toml, upstream="https://flag/v1/")
    assert ("https://flag/v1", "https://flag/v1") == (
        found.upstream,
        found.upstreams["default"].base_url,
    )


VERCEL = "[upstreams.v]\nbase_url = 'https://v.example/v1'\npreset = 'vercel'\n"


def test_a_preset_sets_what_its_table_does_not_say():
    found = read(VERCEL + "max_frame_bytes = 5\n").upstreams["v"]
    assert ("vercel", 5, 660.0, True) == (
        found.preset,
        found.policy.max_frame_bytes,
        found.policy.max_connection_age,
        found.policy.one_model,
    )


def test_each_key_of_an_upstream_says_where_it_comes_from():
    found = read("visible_keys = ['x']\n" + VERCEL + "max_frame_bytes = 5\n").upstreams["v"]
    assert ("warmline.toml", "warmline.toml", "preset", "default", "warmline.toml") == tuple(
        found.sources[name]
        for name in ("preset", "max_frame_bytes", "one_model", "tools", "visible_keys")
    )


def test_the_default_upstream_takes_a_preset_and_its_address_from_where_it_was_set():
    found = read("[upstreams.default]\npreset = 'xai'", upstream="https://api.x.ai/v1")
    default = found.upstreams["default"]
    assert ("xai", 1320.0, "https://api.x.ai/v1", "the command line") == (
        default.preset,
        default.policy.max_connection_age,
        default.base_url,
        default.sources["base_url"],
    )


def test_without_a_preset_all_is_as_the_engine_has_it():
    found = read("")
    assert ("openai", Policy()) == (
        found.upstreams["default"].preset,
        found.upstreams["default"].policy,
    )


def test_an_unknown_preset_is_told_with_the_known_ones():
    message, _ = refused("[upstreams.default]\npreset = 'mistral'")
    assert (
        "preset in [upstreams.default] in warmline.toml must be one of openai, codex, azure, xai, "
        "vercel, litellm, openrouter, vllm, ollama, http." == message
    )


def test_an_unknown_key_of_an_upstream_is_told_with_the_nearest():
    message, hint = refused("[upstreams.default]\npresets = 'xai'")
    assert ("There is no setting presets (in [upstreams.default] in warmline.toml).", True) == (
        message,
        hint is not None and "preset" in hint,
    )


@pytest.mark.parametrize("name", ["A", "", "a b", "-a", "a/b", "a" * 65])
def test_a_name_stands_in_a_url(name):
    with pytest.raises(SettingsError, match="a name that cannot stand in a URL"):
        check_name("[x]", name)
