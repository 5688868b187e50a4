URL = "/api/alerts/events"


def test_transitions_are_listed_newest_first_with_what_led_to_them(alerting):
    alerting.fire()
    alerting.fire(bad=0, good=4)
    last, first = alerting.get(URL)["events"]
    assert ("inactive", "firing", "crossed", "Mismatches", alerting.rule["id"]) == tuple(
        first[name] for name in ("before", "after", "cause", "rule", "rule_id")
    )
    assert ("firing", "inactive", "cleared") == (last["before"], last["after"], last["cause"])
    assert "2027-01-15T08:02:00.000Z" == last["at"]
    assert "Mismatch rate 75 % (3 of 4 eligible turns), threshold 20 %." == first["sentence"]
    assert (0.75, "2027-01-15T08:00:00.000Z") == (
        first["reading"]["value"],
        first["reading"]["window"]["from"],
    )


def test_the_history_speaks_of_the_rule_as_it_was_then(alerting):
    """Whatever became of it: another threshold, another signal, or nothing at all."""
    alerting.fire()
    said = "Mismatch rate 75 % (3 of 4 eligible turns), threshold 20 %."
    path = f"/api/alerts/rules/{alerting.rule['id']}"
    changed = alerting.rule["definition"] | {"signal": "ttft_p95", "threshold": 5000, "recover": 5}
    alerting.ask("PUT", path, changed)
    (first,) = alerting.get(URL)["events"]
    assert [said, said] == [first["sentence"], first["reading"]["sentence"]]
    alerting.ask("DELETE", path)
    ended, first = alerting.get(URL)["events"]
    assert ("deleted", None, None) == (ended["cause"], ended["reading"], ended["sentence"])
    assert (said, 0.75) == (first["sentence"], first["reading"]["value"])


def test_it_is_listed_by_rule_and_in_pages(alerting):
    alerting.fire()
    alerting.fire(bad=0, good=4)
    assert [] == alerting.get(URL, rule="other")["events"]
    page = alerting.get(URL, rule=alerting.rule["id"], limit=1)
    assert ["inactive"] == [each["after"] for each in page["events"]]
    page = alerting.get(URL, limit=1, cursor=page["next_cursor"])
    assert (["firing"], None) == ([each["after"] for each in page["events"]], page["next_cursor"])


def test_only_the_demo_shows_what_was_received(alerting):
    answer = alerting.client.get("/api/alerts/received")
    assert (404, "no_receiver") == (answer.status_code, answer.json()["error"]["code"])
    alerting.web.received = lambda: [{"title": "x"}]
    assert {"received": [{"title": "x"}]} == alerting.get("/api/alerts/received")


def test_a_parameter_that_is_not_known_is_refused(alerting):
    assert 400 == alerting.client.get(f"{URL}?ruel=x").status_code
