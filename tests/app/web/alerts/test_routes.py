import pytest

from tests.support.site import BASE

JSON = {"content-type": "application/json"}


def test_what_changes_something_needs_this_servers_own_origin_and_json(alerting):
    """The guard of the whole dashboard stands before these routes too."""
    paths = alerting.get("/openapi.json")["paths"]
    tried = 0
    for path, methods in paths.items():
        for method in set(methods) - {"get"}:
            if path.startswith("/api/alerts"):
                tried += 1
                foreign = alerting.client.request(
                    method, path, content=b"{}", headers=JSON | {"origin": "http://evil.example"}
                )
                assert 403 == foreign.status_code
                form = alerting.client.request(
                    method,
                    path,
                    content=b"a=b",
                    headers={"origin": BASE, "content-type": "text/plain"},
                )
                assert 415 == form.status_code
    assert tried >= 13


@pytest.mark.parametrize(
    "path",
    ["rules", "rules/{rule_id}", "rules/{rule_id}/test", "receivers", "receivers/{receiver_id}",
     "receivers/{receiver_id}/test", "receivers/{receiver_id}/enable", "deliveries",
     "deliveries/{delivery_id}", "deliveries/{delivery_id}/replay", "events", "silences",
     "silences/{silence_id}", "backtest", "received"],
)  # fmt: skip
def test_every_part_of_the_api_is_there(alerting, path):
    assert f"/api/alerts/{path}" in alerting.get("/openapi.json")["paths"]


def test_every_route_says_what_it_does(alerting):
    for path, methods in alerting.get("/openapi.json")["paths"].items():
        for operation in methods.values():
            assert operation.get("description"), path
