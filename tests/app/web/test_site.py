import pytest

from app.web.headers import CONTENT_SECURITY_POLICY


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
