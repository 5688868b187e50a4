from dataclasses import fields, replace

import pytest

from app.presets import DEFAULT, PRESETS
from app.setting_table import UPSTREAM_SETTINGS
from engine.kept import covers
from engine.model import Policy


def test_every_preset_is_a_policy_that_its_keys_take():
    kinds = {setting.name: setting.kind for setting in UPSTREAM_SETTINGS}
    for preset in PRESETS.values():
        policy = replace(Policy(), **preset.policy)
        for name, value in preset.policy.items():
            assert getattr(policy, name) == kinds[name].check(value), (preset.name, name)


def test_a_preset_sets_nothing_that_is_so_anyway():
    defaults = {part.name: part.default for part in fields(Policy)}
    for preset in PRESETS.values():
        assert all(defaults[name] != value for name, value in preset.policy.items()), preset.name


def test_every_number_has_its_source():
    for preset in PRESETS.values():
        assert list(preset.policy) == list(preset.sources), preset.name
        assert all(source.endswith((".", ")")) for source in preset.sources.values())


def test_the_default_preset_changes_nothing():
    assert {} == PRESETS[DEFAULT].policy


@pytest.mark.parametrize(
    ("model", "covered"),
    [
        ("openai/gpt-5.4", True),
        ("gpt-5.9-x", True),
        ("openai/gpt-6.1-sol", True),
        ("gpt-5", False),
        ("openai/gpt-5.3-codex", False),
        ("anthropic/claude-sonnet", False),
    ],
)
def test_vercel_continues_openais_models_from_5_4_on(model, covered):
    assert covered == covers(PRESETS["vercel"].policy["models"], model)
