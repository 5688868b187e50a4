"""docs/api.md says what the API does."""

import json
import re
from pathlib import Path

import pytest

from app.charts.registry import CHARTS
from app.ledger.filters import PARAMETERS
from tests.support.rows import START_MS, make_row
from tests.support.site import open_site

DOC = (Path(__file__).parents[2] / "docs" / "api.md").read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    opened = open_site(tmp_path_factory.mktemp("ledger"))
    opened.write([make_row(started_at=START_MS - 1)])
    yield opened
    opened.close()


def example(heading):
    """The JSON below a heading; ROW and TRACE stand for objects, dots for any text."""
    section = DOC.split(f"## `{heading}`", 1)[1].split("\n## ", 1)[0]
    text = re.search(r"```json\n(.*?)```", section, re.DOTALL).group(1)
    return json.loads(re.sub(r"\b(ROW|TRACE)\b", "{}", text))


def missing(shown, real, path=""):
    """Keys of the example that the answer lacks."""
    if isinstance(shown, dict) and isinstance(real, dict):
        for key, value in shown.items():
            if key == "…":
                continue
            if key not in real:
                yield f"{path}/{key}"
            else:
                yield from missing(value, real[key], f"{path}/{key}")
    elif isinstance(shown, list) and isinstance(real, list) and shown and real:
        yield from missing(shown[0], real[0], f"{path}[]")


@pytest.mark.parametrize(
    ("heading", "path"),
    [
        ("GET /api/summary", "/api/summary"),
        ("GET /api/requests", "/api/requests"),
        ("GET /api/dimensions", "/api/dimensions"),
        ("GET /api/charts", "/api/charts"),
        ("GET /api/charts/{slug}", "/api/charts/modes"),
    ],
)
def test_every_key_of_an_example_is_in_the_answer(site, heading, path):
    ignored = {"/turns/by_kind", "/turns/by_status"}
    found = list(missing(example(heading), site.get(path)))
    assert [key for key in found if key.rpartition("/")[0] not in ignored] == []


def test_the_summary_holds_nothing_that_is_not_shown(site):
    real = site.get("/api/summary")
    shown = example("GET /api/summary")
    ignored = {"/turns/by_kind", "/turns/by_status"}
    found = [key for key in missing(real, shown) if key.rpartition("/")[0] not in ignored]
    assert found == []


def test_every_endpoint_is_named(site):
    for path in site.get("/openapi.json")["paths"]:
        assert path in DOC, path


def test_every_filter_chart_and_error_of_ours_is_named():
    for name in (*PARAMETERS, *CHARTS):
        assert f"`{name}`" in DOC, name
