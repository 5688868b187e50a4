"""``GET /api/settings``: what is in force, where it comes from, and no secret."""

import json

import pytest

from app.settings import MASK, load
from app.web.settings import shown, upstream
from tests.support.rows import make_row
from tests.support.site import open_site

CANARY = "canary-5d1f"
TOML = """
log_level = "error"

[upstreams.default]
tools = "relaxed"

[upstreams.edge]
base_url = "https://ai-gateway.vercel.sh/v1"
preset = "vercel"
max_frame_bytes = 5

[alerts.rules.nightly]
signal = "cached_ratio"
threshold = 0.5
"""


@pytest.fixture
def told(tmp_path):
    site = open_site(tmp_path, toml=TOML)
    yield lambda: site.get("/api/settings")
    site.close()


def by_name(entries):
    return {entry["name"]: entry for entry in entries}


def test_every_setting_says_its_value_and_where_it_comes_from(told, tmp_path):
    found = by_name(told()["settings"])
    file = str(tmp_path / "warmline.toml")
    assert ("error", file, "info") == tuple(
        found["log_level"][key] for key in ("value", "source", "default")
    )
    assert (8787, "default") == (found["port"]["value"], found["port"]["source"])
    assert str(tmp_path / "ledger.db") + ".key" == found["key_file"]["value"]


def test_flags_and_the_environment_are_told_apart(tmp_path):
    settings = load(
        environ={"WARMLINE_PORT": "1", "WARMLINE_DATABASE": str(tmp_path / "l.sqlite3")},
        flags={"host": "127.0.0.2"},
    )
    found = by_name(shown(settings)["settings"])
    assert ("the environment", "the command line") == (
        found["port"]["source"],
        found["host"]["source"],
    )


def test_no_secret_is_in_the_answer_and_one_that_is_set_shows_that_it_is(tmp_path):
    settings = load(
        environ={
            "WARMLINE_TOKEN": CANARY,
            "WARMLINE_GATEWAY_TOKEN": CANARY,
            "WARMLINE_DATABASE": f"postgresql://user:{CANARY}@db/warmline",
            "WARMLINE_KEY_FILE": str(tmp_path / "key"),
        }
    )
    answer = shown(settings)
    assert CANARY not in json.dumps(answer)
    found = by_name(answer["settings"])
    assert (MASK, MASK, f"postgresql://user:{MASK}@db/warmline") == tuple(
        found[name]["value"] for name in ("token", "gateway_token", "database")
    )


def test_an_upstream_shows_its_preset_and_what_of_its_policy_comes_from_it(told, tmp_path):
    default, edge = told()["upstreams"]
    policy = by_name(edge["policy"])
    file = str(tmp_path / "warmline.toml")
    assert ("edge", "vercel", file) == (edge["name"], edge["preset"], edge["preset_source"])
    assert (True, "preset") == (policy["one_model"]["value"], policy["one_model"]["source"])
    assert "1008" in policy["one_model"]["because"]
    assert (5, file) == (policy["max_frame_bytes"]["value"], policy["max_frame_bytes"]["source"])
    assert ("strict", "default") == (policy["tools"]["value"], policy["tools"]["source"])
    assert ("openai", "relaxed") == (
        default["preset"],
        by_name(default["policy"])["tools"]["value"],
    )


def test_of_alerts_only_names_are_shown(told):
    assert {"rules": ["nightly"], "receivers": []} == told()["alerts"]


def test_the_counters_are_those_of_the_metrics(tmp_path):
    site = open_site(tmp_path, toml=TOML)
    try:
        site.web.telemetry.watch_continuation(lambda: [("default", 0, 3)])
        site.write(
            [
                make_row(mode="ws_incremental", reason="ok", items_sent=2, items_total=9),
                make_row(mode="ws_full", reason="no_baseline", items_sent=5, items_total=5),
            ]
        )
        default, edge = site.get("/api/settings")["upstreams"]
        assert {
            "requests": 2,
            "continuations": 1,
            "delta_items": 2,
            "full_items": 9,
            "fallbacks": 0,
            "errors": 0,
            "unsupported_bases": 0,
            "chains": 3,
        } == default["figures"]
        # Nothing is known of an upstream that the gateway does not serve.
        assert (0, None, None) == tuple(
            edge["figures"][name] for name in ("requests", "unsupported_bases", "chains")
        )
    finally:
        site.close()


def test_a_part_of_the_service_without_settings_says_that_it_is_not_ready(tmp_path):
    site = open_site(tmp_path)
    try:
        site.web.settings = None
        assert 503 == site.client.get("/api/settings").status_code
    finally:
        site.close()


def test_lists_and_paths_are_plain_values(tmp_path):
    settings = load(environ={"XDG_DATA_HOME": str(tmp_path)})
    policy = by_name(upstream(settings.upstreams["default"])["policy"])
    assert ["_meta"] == policy["visible_keys"]["value"]
    json.dumps(shown(settings))
