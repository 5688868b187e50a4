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


ALERTS = "/api/alerts"
LISTS = [f"alerts/{name}" for name in ("rules", "receivers", "deliveries", "events", "silences")]
BODIES = {
    "no JSON": ("POST", f"{ALERTS}/rules", "{", 400, None),
    "no object": ("POST", f"{ALERTS}/rules", "[]", 400, None),
    "too large": ("POST", f"{ALERTS}/rules", " " * 65_537, 413, None),
    "not a rule": ("POST", f"{ALERTS}/rules", '{"name": "x"}', 422, "signal"),
    "unknown field": ("POST", f"{ALERTS}/silences", '{"until": 1}', 422, "until"),
    "not a receiver": ("POST", f"{ALERTS}/receivers", '{"name": 3}', 422, "name"),
    "no such rule": ("PUT", f"{ALERTS}/rules/none", "{}", 404, None),
    "no such receiver": ("PUT", f"{ALERTS}/receivers/none", "{}", 404, None),
    "no such delivery": ("POST", f"{ALERTS}/deliveries/none/replay", "{}", 404, None),
    "no such silence": ("DELETE", f"{ALERTS}/silences/none", "", 404, None),
    "no receiver here": ("GET", f"{ALERTS}/received", "", 404, None),
    "unknown parameter": ("GET", f"{ALERTS}/events?x=1", "", 400, None),
    "no rule to test": ("POST", f"{ALERTS}/backtest", "{}", 422, "rule"),
}


def assert_error(answer, status, field=None):
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    error = body["error"]
    assert set(error) == {"code", "message", "hint"} | ({"field"} if field else set())
    assert error.get("field") == field
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


@pytest.mark.parametrize("case", BODIES.values(), ids=BODIES)
def test_a_body_at_fault_has_it_and_names_the_field(site, case):
    method, path, body, status, field = case
    headers = OWN | {"content-type": "application/json"}
    assert_error(site.client.request(method, path, content=body, headers=headers), status, field)


@pytest.mark.parametrize(
    "path",
    ["/", "/api/summary", "/api/requests.csv", "/metrics", "/docs", "/alerts", "/api/alerts/rules"],
)
def test_a_missing_token_has_it_too(locked, path):
    assert_error(locked.client.get(path), 401)


def test_a_closed_ledger_has_it_too(tmp_path):
    opened = open_site(tmp_path)
    engine, opened.web.engine = opened.web.engine, None
    alerts, opened.web.alerts = opened.web.alerts, None
    for path in ("summary", "requests", "requests.csv", "dimensions", "charts/modes", *LISTS):
        assert_error(opened.client.get(f"/api/{path}"), 503)
    opened.web.engine, opened.web.alerts = engine, alerts
    opened.close()


def test_a_broken_ledger_has_it_too(tmp_path):
    opened = open_site(tmp_path)
    with opened.engine.begin() as connection:
        for table in ("turns", "alert_states", "alert_rules", "alert_receivers", "alert_attempts",
                      "alert_deliveries", "alert_events", "alert_silences",
                      "rollup_cells"):  # fmt: skip
            connection.exec_driver_sql(f"DROP TABLE {table}")
    for path in ("summary", "requests", "requests.csv", "dimensions", "charts/modes", *LISTS):
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
