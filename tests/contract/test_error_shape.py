"""One error shape on every surface of the dashboard, whatever went wrong."""

import itertools

import pytest
from starlette.testclient import WebSocketDenialResponse

from tests.support.site import BASE, open_site

OWN = {"origin": BASE}
FOREIGN = {"origin": "http://evil.example"}

CASES = {
    "unknown filter": ("GET", "/api/summary?mod=x", {}, 400),
    "unreadable time": ("GET", "/api/requests?from=x", {}, 400),
    "unreadable cursor": ("GET", "/api/requests?cursor=x", {}, 400),
    "unknown column": ("GET", "/api/requests.csv?columns=x", {}, 400),
    "unreadable flag": ("GET", "/api/requests.csv?raw=x", {}, 400),
    "limit": ("GET", "/api/requests?limit=0", {}, 422),
    "no such row": ("GET", "/api/requests/none", {}, 404),
    "no such chart": ("GET", "/api/charts/none", {}, 404),
    "no such address": ("GET", "/none", {}, 404),
    "no such file": ("GET", "/static/1/none.js", {}, 404),
    "wrong method": ("PUT", "/api/summary", OWN, 405),
    "foreign host": ("GET", "/", {"host": "evil.example"}, 403),
    "foreign origin": ("POST", "/logout", FOREIGN, 403),
    "not JSON": ("POST", "/logout", OWN | {"content-type": "text/plain"}, 415),
}


def assert_error(answer, status):
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    error = body["error"]
    assert set(error) == {"code", "message", "hint"}
    assert error["code"].replace("_", "").isalpha()
    assert error["message"].endswith((".", "'"))
    assert error["hint"] is None or error["hint"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    opened = open_site(tmp_path_factory.mktemp("open"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    opened = open_site(tmp_path_factory.mktemp("locked"), token="t")
    yield opened
    opened.close()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_error_has_the_one_shape(site, case):
    method, path, headers, status = case
    given = {"content-type": "application/json"} | headers
    assert_error(site.client.request(method, path, headers=given), status)


@pytest.mark.parametrize("path", ["/", "/api/summary", "/api/requests.csv", "/metrics", "/docs"])
def test_a_missing_token_has_it_too(locked, path):
    assert_error(locked.client.get(path), 401)


def test_a_closed_ledger_has_it_too(tmp_path):
    opened = open_site(tmp_path)
    engine, opened.web.engine = opened.web.engine, None
    for path in ("summary", "requests", "requests.csv", "dimensions", "charts/modes"):
        assert_error(opened.client.get(f"/api/{path}"), 503)
    opened.web.engine = engine
    opened.close()


def test_a_broken_ledger_has_it_too(tmp_path):
    opened = open_site(tmp_path)
    with opened.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE turns")
    for path in ("summary", "requests", "requests.csv", "dimensions", "charts/modes"):
        assert_error(opened.client.get(f"/api/{path}"), 503)
    opened.close()


@pytest.mark.parametrize(
    ("headers", "query"),
    [(FOREIGN, ""), ({"host": "evil.example"}, ""), ({}, "?mod=x")],
)
def test_a_refused_socket_has_it_too(site, headers, query):
    url = BASE.replace("http", "ws") + "/api/live" + query
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        site.client.websocket_connect(url, headers=headers),
    ):
        pass
    assert_error(refused.value, refused.value.status_code)
    assert refused.value.status_code in (400, 403)


def test_the_cases_reach_every_family_of_status():
    assert set(itertools.chain(case[3] for case in CASES.values())) == {
        400,
        403,
        404,
        405,
        415,
        422,
    }
