"""Rules and dashboard of deploy/ ask for metrics and labels that there are."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.nginx import DEPLOY
from tests.support.service import running, settings

DASHBOARD, RULES = DEPLOY / "grafana-dashboard.json", DEPLOY / "prometheus-rules.yml"
ADDED = {"instance", "job", "le"}
"""Labels that Prometheus adds, and that of buckets."""
_METRIC = re.compile(r"\b(warmline_\w+)(?:\{([^}]*)\})?")
_LABEL = re.compile(r"(\w+)\s*[=!]")
_GROUPED = re.compile(r"\bby\s*\(([^)]*)\)")
_ENDINGS = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


def panels() -> list[dict[str, Any]]:
    return [one for one in json.loads(DASHBOARD.read_text())["panels"] if one["type"] != "row"]


def of_dashboard() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def of_rules() -> list[str]:
    return re.findall(r"^ +expr: (.+)$", RULES.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Every series that a running gateway can have, and its labels."""

    async def look() -> dict[str, set[str]]:
        config = settings(tmp_path_factory.mktemp("ledger"), "http://127.0.0.1:9")
        async with running(config) as it:
            registry = it.service.web.telemetry.registry
            return dict(_series(list(registry._collector_to_names)))

    return asyncio.run(look())


def _series(collectors: list[Any]) -> Iterator[tuple[str, set[str]]]:
    for collector in collectors:
        for family in collector.collect():
            labels = getattr(family, "_labelnames", None) or getattr(collector, "_labelnames", ())
            for ending in _ENDINGS[family.type]:
                yield f"{family.name}{ending}", set(labels)


@pytest.mark.parametrize("expression", [*of_dashboard(), *of_rules()])
def test_what_is_asked_for_is_there(known: dict[str, set[str]], expression: str) -> None:
    asked = _METRIC.findall(expression)
    assert asked or expression.startswith("up{")
    for name, selected in asked:
        assert name in known
        assert set(_LABEL.findall(selected)) <= known[name] | ADDED
    labels = set.union(ADDED, *(known[name] for name, _ in asked))
    for grouped in _GROUPED.findall(expression):
        assert {label.strip() for label in grouped.split(",")} <= labels


def test_every_metric_is_on_the_dashboard_or_in_a_rule(known: dict[str, set[str]]) -> None:
    text = "\n".join([*of_dashboard(), *of_rules()])
    without = {name for name in known if not name.endswith(("_sum", "_count"))} - {
        name for name, _ in _METRIC.findall(text)
    }
    assert without == {
        "warmline_continuation_unsupported_bases",
        "warmline_output_tokens_total",
        "warmline_passed_requests_total",
        "warmline_usage_unknown_requests_total",
    }


def test_panels_have_titles_and_places_of_their_own() -> None:
    every = json.loads(DASHBOARD.read_text())["panels"]
    assert len(every) == len({one["id"] for one in every}) == len({one["title"] for one in every})
    cells = [
        (x, y)
        for one in every
        for x in range(one["gridPos"]["x"], one["gridPos"]["x"] + one["gridPos"]["w"])
        for y in range(one["gridPos"]["y"], one["gridPos"]["y"] + one["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_prometheus_takes_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        missing = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missing("promtool is missing. Install it with: apt-get install prometheus")
    done = subprocess.run(
        [promtool, "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
