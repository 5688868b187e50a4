import re

import pytest

from app.charts.registry import CHARTS
from app.ledger.rows import iso
from app.web.headers import CONTENT_SECURITY_POLICY
from tests.support.rows import START_MS, make_row


@pytest.mark.parametrize(
    "path", ["/", "/requests", "/api/summary", "/api/requests.csv", "/nowhere", "/docs", "/healthz"]
)
def test_every_answer_carries_the_security_headers(site, path):
    headers = site.client.get(path).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"


def test_a_refusal_carries_them_too(site):
    answer = site.client.get("/api/summary", headers={"host": "evil.example"})
    assert answer.status_code == 403
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY


def test_nothing_is_kept_by_browsers_but_versioned_files(site):
    assert site.client.get("/").headers["cache-control"] == "no-store"
    assert site.client.get("/api/summary").headers["cache-control"] == "no-store"
    plotly = site.client.get(site.web.assets.plotly_url)
    assert plotly.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert plotly.headers["content-type"] == "text/javascript; charset=utf-8"
    assert plotly.headers["content-encoding"] == "gzip"
    assert len(plotly.content) > 4_000_000


def test_an_old_page_still_finds_its_modules_but_they_are_not_kept(site):
    name = site.web.assets.url.replace(site.web.assets.version, "0123456789ab")
    answer = site.client.get(f"{name}/js/boot-theme.js", headers={"accept-encoding": "identity"})
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert "content-encoding" not in answer.headers


def test_no_one_else_may_read_across_origins(site):
    answer = site.client.get("/api/summary", headers={"origin": "http://evil.example"})
    assert "access-control-allow-origin" not in answer.headers
    assert site.client.options("/api/summary").status_code == 405


WINDOWS = {
    "all that can be asked for": ("1970-01-01", "9000-01-01", 200),
    "longer than dates reach back": ("2100-01-01", "9000-01-01", 200),
    "the first moment": ("1970-01-01", "1970-01-01T00:00:00.001", 200),
    "the last moment": ("8999-12-31T23:59:59.999", "9000-01-01", 200),
    "no time": (iso(START_MS), iso(START_MS), 400),
    "turned round": ("now", "now-1h", 400),
    "before 1970": ("1969-12-31", "now", 400),
    "after 9000": ("now-1h", "9000-01-02", 400),
    "no times": ("yesterday", "1e99", 400),
}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_every_figure_can_be_asked_for_of_any_window(site, window):
    start, end, status = window
    site.write(
        make_row(session_key="a", started_at=START_MS - n, mode="ws_full", eligible=True)
        for n in range(20)
    )
    site.write([make_row(session_key="a", started_at=START_MS - 20, mode="ws_incremental")])
    names = {
        "slug": list(CHARTS),
        "session_key": ["a"],
        "group": [site.get("/api/breaks")["groups"][0]["id"]],
    }
    asked = 0
    for path, of in site.app.openapi()["paths"].items():
        own = of.get("get", {}).get("parameters", ())
        if not {"from", "to", "by"} <= {one["name"] for one in own}:
            continue
        [name] = re.findall(r"{(\w+)}", path) or [""]
        for value in names.get(name, [""]):
            address = path.replace(f"{{{name}}}", value)
            for by in ("started", "recorded"):
                answer = site.client.get(address, params={"from": start, "to": end, "by": by})
                assert (address, status) == (address, answer.status_code), answer.text
                asked += 1
    assert asked > 30
