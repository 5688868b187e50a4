"""The documentation of settings and ledger says what the code does."""

import re
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from app.alerts.config import check_receivers, read
from app.alerts.guard import Guard
from app.alerts.receiver_file import parse_file
from app.ledger.conditions import COLUMN_OF, HIT_SHARE, SEARCHED, SUCCEEDED
from app.ledger.csv_export import CSV_TYPE, SCHEMA_VERSION, file_name
from app.ledger.facts import TEXT_LIMIT
from app.ledger.filters import CLOSED, DIMENSIONS, PARAMETERS, parse
from app.ledger.models import turns
from app.ledger.rows import (
    BOOL_COLUMNS,
    CLIENT_NAMES,
    COLUMNS,
    DECIMAL_COLUMNS,
    FLOAT_COLUMNS,
    INT_COLUMNS,
    TIME_COLUMNS,
)
from app.ledger.writer import LedgerWriter
from app.presets import PRESETS
from app.setting_table import SETTINGS, UPSTREAM_SETTINGS, Setting
from app.settings import load
from app.web.export import BOUNDS
from engine.model import Kind, Mode, Reason, Status, UsageState
from tests.support.clock import START
from tests.support.markdown import section, table


def shown(default: Any) -> str:
    """A default as it would be written in TOML."""
    if default is None:
        return "–"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return "`[" + ", ".join(f'"{word}"' for word in default) + "]`"
    if isinstance(default, str):
        return f'`"{default}"`'
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def documented(setting: Setting) -> list[str]:
    kind = setting.kind.name
    return [f"`{setting.name}`", kind, shown(setting.default), setting.help]


def kind_of(column: str) -> str:
    for name, columns in (
        ("time", TIME_COLUMNS),
        ("true/false", BOOL_COLUMNS),
        ("money", DECIMAL_COLUMNS),
        ("ms", FLOAT_COLUMNS),
        ("number", INT_COLUMNS),
    ):
        if column in columns:
            return name
    return "text"


@pytest.mark.parametrize(
    ("title", "settings"), [("All settings", SETTINGS), ("Upstreams", UPSTREAM_SETTINGS)]
)
def test_the_tables_of_settings_are_those_of_the_code(title: str, settings):
    assert [documented(setting) for setting in settings] == table(section("settings.md", title))


def test_the_table_of_presets_is_that_of_the_code():
    names = {
        preset.policy.get("models"): "OpenAI's models from GPT-5.4 on"
        for preset in PRESETS.values()
    }
    expected = []
    for preset in PRESETS.values():
        head = [f"`{preset.name}`", preset.upstream]
        if not preset.policy:
            expected.append([*head, "–", "–", "–"])
        for key, value in preset.policy.items():
            told = names[value] if key == "models" else shown(value)
            expected.append([*head, f"`{key}`", told, preset.sources[key]])
    assert expected == table(section("settings.md", "Presets"))


def test_the_example_of_a_preset_is_read_without_complaint(tmp_path: Path):
    (toml,) = re.findall(r"```toml\n(.*?)```", section("settings.md", "Presets"), re.DOTALL)
    (tmp_path / "warmline.toml").write_text(toml)
    found = load(config=tmp_path / "warmline.toml", environ={}).upstreams["vercel"]
    assert ("vercel", 600.0, True) == (
        found.preset,
        found.policy.max_connection_age,
        found.policy.one_model,
    )


def test_the_example_of_a_settings_file_is_read_without_complaint(tmp_path: Path):
    (toml,) = re.findall(
        r"```toml\n(.*?)```", section("settings.md", "Where settings come from"), re.DOTALL
    )
    (tmp_path / "warmline.toml").write_text(toml)
    found = load(config=tmp_path / "warmline.toml", environ={})
    assert {"default", "azure"} == set(found.upstreams)


def test_the_example_of_alerts_is_read_without_complaint(tmp_path: Path):
    (toml,) = re.findall(r"```toml\n(.*?)```", section("settings.md", "Alerts"), re.DOTALL)
    (tmp_path / "warmline.toml").write_text(toml)
    settings = load(config=tmp_path / "warmline.toml", environ={})
    found = read(settings)
    secret = "whsec_" + "c2VjcmV0" * 6
    variables = {"OPS_WEBHOOK_URL": "https://ops.example/x", "OPS_WEBHOOK_SECRET": secret}
    parsed = parse_file(found.receivers.receivers, variables, Guard())
    check_receivers(found.rules, {receiver.name for receiver in parsed}, "the example")
    assert (["mismatch"], ["ops"]) == (
        [rule.name for rule in found.rules],
        [receiver.name for receiver in parsed],
    )


def test_secrets_are_named():
    text = section("settings.md", "Secrets")
    for setting in (*SETTINGS, *UPSTREAM_SETTINGS):
        assert setting.secret == (f"`{setting.name}_file`" in text), setting.name


def test_every_column_is_documented_in_its_order_with_its_type():
    rows = table(section("ledger.md", "Columns"))
    assert [(f"`{name}`", kind_of(name)) for name in COLUMNS] == [(row[0], row[1]) for row in rows]
    assert all(len(row) == 3 and row[2].endswith(".") for row in rows)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("mode", Mode),
        ("reason", Reason),
        ("kind", Kind),
        ("status", Status),
        ("usage_state", UsageState),
    ],
)
def test_every_word_of_a_column_is_documented(column: str, words):
    meaning = {row[0]: row[2] for row in table(section("ledger.md", "Columns"))}[f"`{column}`"]
    text = meaning + section("ledger.md", "Reasons") if column == "reason" else meaning
    for word in words:
        assert f"`{word}`" in text, word


def test_the_columns_that_may_not_be_empty_are_named():
    (line,) = re.findall(r"^Never empty: (.*)\.$", section("ledger.md", "Columns"), re.MULTILINE)
    never = [name for name in COLUMNS if not turns.c[name].nullable]
    assert never == re.findall(r"`(\w+)`", line)


def test_every_filter_is_documented():
    rows = {row[0]: row[1] for row in table(section("ledger.md", "Filters"))}
    named = [name for cell in rows for name in re.findall(r"`(\w+)`", cell)]
    assert list(PARAMETERS) == named
    for name, column in COLUMN_OF.items():
        assert f"`{column}`" in rows[f"`{name}`"]
    for name, words in CLOSED.items():
        if name in ("cache", "eligible"):
            assert all(f"`{word}`" in rows[f"`{name}`"] for word in words)
    for column in SEARCHED:
        assert f"`{column}`" in rows["`q`"]


def test_the_examples_of_filters_can_be_read():
    text = section("ledger.md", "Filters")
    examples = re.findall(r"^    (\S+=\S+)$", text, re.MULTILINE)
    assert len(examples) >= 3
    for example in examples:
        pairs = [tuple(part.split("=", 1)) for part in example.split("&")]
        assert parse(pairs, now=START).to_pairs() == pairs


def test_the_rates_are_defined_as_they_are_computed():
    text = section("ledger.md", "Rates")
    for status in SUCCEEDED:
        assert f"`{status}`" in text
    assert f"{HIT_SHARE[0] * 100 // HIT_SHARE[1]} %" in text


def test_the_facts_of_the_export_are_those_of_the_code():
    text = section("ledger.md", "Export")
    for fact in (CSV_TYPE, f"X-Ledger-Schema: {SCHEMA_VERSION}"):
        assert f"`{fact}`" in text
    assert f"`{file_name(1_793_491_200_000, 1_793_577_600_000, 'csv')}`" in text
    for column in CLIENT_NAMES:
        assert f"`{column}`" in text
    assert (8, 60, 3_600) == (BOUNDS.at_once, BOUNDS.patience, BOUNDS.whole)
    assert "60 seconds for a piece" in text
    assert "one hour for the whole file, eight files at once" in text


def test_the_limit_of_names_is_the_codes():
    assert f"{TEXT_LIMIT} characters" in section("ledger.md", "What is never in it")


def test_the_numbers_in_the_text_are_those_of_the_code():
    assert f"{len(COLUMNS)} columns" in section("ledger.md", "Columns")
    assert f"{len(DIMENSIONS)} dimensions" in section("ledger.md", "Filters")
    capacity = signature(LedgerWriter).parameters["capacity"].default
    assert f"up to {capacity:,} of them" in section("ledger.md", "Writing")
