import pytest

URL = "/api/alerts/deliveries"


def test_what_was_told_is_listed_and_shown_with_its_body(alerting):
    alerting.fire()
    (listed,) = alerting.get(URL)["deliveries"]
    assert ("ops", "Mismatches", {}, "firing", False, "queued", 0, None) == tuple(
        listed[name]
        for name in ("receiver", "rule", "group", "told", "test", "state", "attempts", "outcome")
    )
    assert listed["created_at"] == listed["next_attempt_at"] == "2027-01-15T08:01:00.000Z"
    detail = alerting.get(f"{URL}/{listed['id']}")
    assert (listed, "cache.alert.firing", []) == (
        {name: detail[name] for name in listed},
        detail["body"]["type"],
        detail["attempt_log"],
    )


def test_it_is_listed_by_rule_receiver_and_state(alerting):
    alerting.fire()
    rule = alerting.rule["id"]
    for parameters, count in (
        ({"rule": rule}, 1), ({"rule": "other"}, 0),
        ({"receiver": "ops"}, 1), ({"receiver": "file-ops"}, 1), ({"receiver": "x"}, 0),
        ({"state": "queued"}, 1), ({"state": "dead"}, 0),
    ):  # fmt: skip
        assert count == len(alerting.get(URL, **parameters)["deliveries"]), parameters


def test_it_is_listed_in_pages_newest_first(alerting):
    for state in ("firing", "resolved", "no_data"):
        alerting.ask("POST", "/api/alerts/receivers/file-ops/test", {"state": state})
    first = alerting.get(URL, limit=2)
    assert ["no_data", "resolved"] == [each["told"] for each in first["deliveries"]]
    second = alerting.get(URL, limit=2, cursor=first["next_cursor"])
    assert (["firing"], None) == (
        [each["told"] for each in second["deliveries"]],
        second["next_cursor"],
    )


def test_only_what_is_settled_is_replayed(alerting):
    alerting.web.alerts.receivers.disable("file-ops", "it said 410")
    alerting.fire()
    (dead,) = alerting.get(URL)["deliveries"]
    assert ("dead", "it said 410") == (dead["state"], dead["outcome"])
    again = alerting.ask("POST", f"{URL}/{dead['id']}/replay", {})["delivery"]
    assert (dead["id"], "queued", 1) == (again["id"], again["state"], again["replays"])
    error = alerting.ask("POST", f"{URL}/{dead['id']}/replay", {}, status=409)["error"]
    assert "not_settled" == error["code"]


@pytest.mark.parametrize("path", ["/none", "/none/replay"])
def test_what_is_not_there_is_404(alerting, path):
    method, body = ("POST", {}) if path.endswith("replay") else ("GET", None)
    assert "unknown_delivery" == alerting.ask(method, URL + path, body, status=404)["error"]["code"]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "limit=x", "state=x", "cursor=x", "rul=x", "rule=a&rule=b"]
)
def test_what_cannot_be_read_is_refused(alerting, query):
    answer = alerting.client.get(f"{URL}?{query}")
    assert 400 == answer.status_code
