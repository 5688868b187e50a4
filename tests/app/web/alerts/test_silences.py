import pytest

URL = "/api/alerts/silences"


def begin(site, **body):
    return site.ask("POST", URL, body, status=201)["silence"]


def test_a_silence_begins_now_and_ends_after_its_time_or_at_it(alerting):
    made = begin(alerting, **{"for": "2h"}, comment="deploy", author="me")
    assert (
        "2027-01-15T08:00:00.000Z",
        "2027-01-15T10:00:00.000Z",
        None,
        {},
        "deploy",
        "me",
        True,
    ) == tuple(
        made[name]
        for name in ("starts_at", "ends_at", "rule_id", "matchers", "comment", "author", "active")
    )
    made = begin(alerting, ends_at="2027-01-15T10:00:00+01:00", rule_id=alerting.rule["id"])
    assert "2027-01-15T09:00:00.000Z" == made["ends_at"]


def test_nobody_is_told_while_it_lasts_and_it_can_be_ended(alerting):
    made = begin(alerting, **{"for": "2h"})
    alerting.fire()
    assert [] == alerting.get("/api/alerts/deliveries")["deliveries"]
    ended = alerting.ask("DELETE", f"{URL}/{made['id']}")["silence"]
    assert ("2027-01-15T08:01:00.000Z", False) == (ended["ends_at"], ended["active"])
    alerting.fire()
    assert ["firing"] == [
        each["told"] for each in alerting.get("/api/alerts/deliveries")["deliveries"]
    ]
    assert [ended] == alerting.get(URL)["silences"]


def test_those_that_last_come_before_those_that_have_ended(alerting):
    old, new = begin(alerting, **{"for": "1m"}), begin(alerting, **{"for": "1h"})
    alerting.clock.advance(61)
    listed = alerting.get(URL)["silences"]
    assert [(new["id"], True), (old["id"], False)] == [
        (each["id"], each["active"]) for each in listed
    ]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"for": "2h", "ends_at": "2027-01-16T00:00:00Z"}, 422),
        ({"for": "soon"}, 422),
        ({"for": 2}, 422),
        ({"for": "2000d"}, 422),
        ({"ends_at": "tomorrow"}, 422),
        ({"ends_at": "2027-01-16T00:00:00"}, 422),
        ({"ends_at": "2020-01-01T00:00:00Z"}, 422),
        ({"for": "2h", "matchers": []}, 422),
        ({"for": "2h", "matchers": {"session": "x"}}, 422),
        ({"for": "2h", "comment": 3}, 422),
        ({"for": "2h", "until": 3}, 422),
        ({"for": "2h", "rule_id": "none"}, 404),
    ],
)
def test_what_cannot_be_a_silence_is_refused(alerting, body, status):
    alerting.ask("POST", URL, body, status=status)
    assert [] == alerting.get(URL)["silences"]


def test_what_is_not_there_cannot_be_ended(alerting):
    assert "not_found" == alerting.ask("DELETE", f"{URL}/none", status=404)["error"]["code"]
