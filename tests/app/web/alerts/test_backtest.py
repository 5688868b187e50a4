import pytest

URL = "/api/alerts/backtest"
WINDOW = {"from": "2027-01-15T08:00:00Z", "to": "now"}


def test_a_stored_rule_and_one_that_is_not_saved_give_what_happened_live(alerting):
    alerting.fire()
    alerting.fire(bad=0, good=4)
    live = [
        {name: event[name] for name in ("at", "group", "before", "after", "cause")}
        for event in reversed(alerting.get("/api/alerts/events")["events"])
    ]
    for body in ({"id": alerting.rule["id"]}, {"rule": alerting.rule["definition"]}):
        told = alerting.ask("POST", URL, body | {"from": "2027-01-15T08:01:00Z"})
        assert live == told["transitions"]
        assert [(live[0]["at"], live[1]["at"], 0.75)] == [
            (each["started_at"], each["ended_at"], each["peak"]) for each in told["firings"]
        ]
        assert (2, "Would have fired once in 2 min (2 evaluations).") == (
            told["evaluations"],
            told["sentence"],
        )
        assert [0.75, 0.0] == told["chart"]["figure"]["data"][0]["y"]


def test_a_rule_is_tried_before_it_has_a_name(alerting):
    rule = {"signal": "break_rate", "threshold": 0.5, "name": ""}
    assert (
        200
        == alerting.client.post(
            URL, json={"rule": rule}, headers={"origin": str(alerting.client.base_url)}
        ).status_code
    )


def test_without_a_time_it_is_the_last_day(alerting):
    told = alerting.ask("POST", URL, {"id": alerting.rule["id"]})
    assert (1441, "2027-01-14T08:00:00.000Z", "UTC") == (
        told["evaluations"],
        told["range"]["from"],
        told["range"]["tz"],
    )


def test_the_future_is_not_evaluated(alerting):
    body = {"id": alerting.rule["id"], "from": "now-1h", "to": "2028-01-01T00:00:00Z"}
    assert 61 == alerting.ask("POST", URL, body)["evaluations"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "bad_field"),
        ({"id": "a", "rule": {}}, 422, "bad_field"),
        ({"id": "none"}, 404, "not_found"),
        ({"id": 3}, 422, "bad_field"),
        ({"rule": []}, 422, "bad_field"),
        ({"rule": {"signal": "x", "threshold": 1}}, 422, "bad_rule"),
        ({"rule": {"signal": "break_rate", "threshold": 0.5}, "from": "soon"}, 400, "bad_parameter"),
        ({"rule": {"signal": "break_rate", "threshold": 0.5}, "tz": "Mars"}, 400, "bad_parameter"),
        ({"rule": {"signal": "break_rate", "threshold": 0.5}, "days": 3}, 422, "bad_field"),
        ({"rule": {"signal": "break_rate", "threshold": 0.5}, "from": "now-90d"}, 422, "backtest_too_long"),
        ({"rule": {"signal": "break_rate", "threshold": 0.5}, "from": "2030-01-01", "to": "2031-01-01"}, 422, "nothing_to_test"),
    ],
)  # fmt: skip
def test_what_cannot_be_tested_is_refused(alerting, body, status, code):
    assert code == alerting.ask("POST", URL, body, status=status)["error"]["code"]
