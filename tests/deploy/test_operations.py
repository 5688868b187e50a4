"""docs/operations.md says what deploy/ has and what the service says."""

from __future__ import annotations

import inspect
import re

from app.web import health
from tests.support.nginx import DEPLOY

TEXT = (DEPLOY.parent / "docs" / "operations.md").read_text()


def first_cells(heading: str) -> set[str]:
    """What stands in backticks in the first column of a section's tables."""
    section = re.split(r"^## ", TEXT, flags=re.MULTILINE)
    [found] = [part for part in section if part.startswith(heading)]
    rows = re.findall(r"^\| (`[^|]+) \|", found, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_file_of_deploy_is_named() -> None:
    assert {path.name for path in DEPLOY.iterdir()} == first_cells("# Running it")


def test_every_alert_says_what_to_do() -> None:
    rules = (DEPLOY / "prometheus-rules.yml").read_text()
    assert set(re.findall(r"alert: (\w+)", rules)) == first_cells("Watching")


def test_every_state_says_what_to_do() -> None:
    said = set(re.findall(r'"(ok|starting|ledger_\w+)"', inspect.getsource(health)))
    assert said == first_cells("Health") - {"status"}
    assert len(said) >= 5


def test_names_of_sessions_stand_in_the_order_in_which_nginx_takes_them() -> None:
    maps = re.findall(
        r"^    map \$http_(\w+) \$warmline", (DEPLOY / "nginx.conf").read_text(), re.MULTILINE
    )
    told = re.findall(r"^\d\. `([\w-]+)`$", TEXT, re.MULTILINE)
    assert told == [name.replace("_", "-") for name in maps[: len(told)]]
    assert len(told) == 4
