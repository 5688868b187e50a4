"""Rules over the API."""

import pytest

from tests.support.alerts import write
from tests.support.rows import START_MS
from tests.support.site import open_site

SECRET = "whsec_" + "c2VjcmV0" * 6
TOML = f"""
[alerts.receivers.ops]
url = "https://hooks.example.com/T000/CANARY-PATH"
secrets = ["{SECRET}"]
[alerts.rules.written]
signal = "break_rate"
threshold = 0.5
receivers = ["ops"]
"""
RULE = {"name": "Mismatches", "signal": "mismatch_rate", "threshold": 0.2, "confidence": "raw",
        "window": "1m", "delay": 0, "min_turns": 1, "receivers": ["ops"]}  # fmt: skip
URL = "/api/alerts/rules"


@pytest.fixture
def site(tmp_path):
    opened = open_site(tmp_path, toml=TOML)
    yield opened
    opened.close()


def make(site, **changes):
    return site.ask("POST", URL, RULE | changes, status=201)["rule"]


def refused(site, method, path, body, status) -> dict:
    return site.ask(method, path, body, status=status)["error"]


def test_a_rule_is_made_read_changed_and_deleted(site):
    made = make(site)
    assert ("page", 1, "no_data", [], None) == tuple(
        made[name] for name in ("origin", "version", "state", "groups", "evaluated_until")
    )
    assert ("1m", "raw") == (made["definition"]["window"], made["definition"]["confidence"])
    path = f"{URL}/{made['id']}"
    assert made == site.get(path)["rule"]
    changed = site.ask("PUT", path, made["definition"] | {"threshold": 0.3})["rule"]
    assert (2, 0.3) == (changed["version"], changed["definition"]["threshold"])
    assert {"deleted": made["id"]} == site.ask("DELETE", path)
    assert "not_found" == refused(site, "PUT", path, RULE, 404)["code"]
    assert ["written"] == [rule["definition"]["name"] for rule in site.get(URL)["rules"]]


def test_what_somebody_else_changed_meanwhile_is_not_overwritten(site):
    made = make(site)
    path = f"{URL}/{made['id']}"
    site.ask("PUT", path, RULE | {"threshold": 0.3, "version": 1})
    assert "conflict" == refused(site, "PUT", path, RULE | {"version": 1}, 409)["code"]


def test_a_rule_of_the_file_is_shown_and_not_changed(site):
    (rule,) = site.get(URL)["rules"]
    assert ("file-written", "file") == (rule["id"], rule["origin"])
    path = f"{URL}/file-written"
    assert "read_only" == refused(site, "PUT", path, RULE, 409)["code"]
    assert "read_only" == refused(site, "DELETE", path, None, 409)["code"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"threshold": 2}, "threshold"),
        ({"thresh": 2}, "thresh"),
        ({"filter": "mod=x"}, "filter"),
        ({"receivers": ["nobody"]}, "receivers"),
        ({"name": ""}, "name"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_the_field_at_fault(site, changes, field):
    error = refused(site, "POST", URL, RULE | changes, 422)
    assert ("bad_rule", field) == (error["code"], error["field"])


def test_a_name_is_given_once(site):
    assert "name_taken" == refused(site, "POST", URL, RULE | {"name": "written"}, 409)["code"]


def test_the_list_says_what_a_form_can_offer(site):
    told = site.get(URL)
    assert ("mismatch_rate", "ratio") == (told["signals"][0]["name"], told["signals"][0]["unit"])
    assert ["wilson", "raw"] == told["signals"][0]["confidences"]
    assert 50 == told["limits"]["groups"]


def test_the_groups_show_state_reading_and_links(site):
    made = make(site, group_by=["model"])
    write(site.engine, START_MS + 10_000, bad=3, good=1, model="m/1")
    site.clock.advance(60)
    site.web.alerts.evaluator.tick()
    rule = site.get(f"{URL}/{made['id']}")["rule"]
    assert ("firing", "2027-01-15T08:01:00.000Z") == (rule["state"], rule["evaluated_until"])
    (group,) = rule["groups"]
    assert ({"model": "m/1"}, "firing", "firing", 0.75, False) == tuple(
        group[name] for name in ("labels", "state", "told", "peak", "silenced")
    )
    reading = group["reading"]
    assert (0.75, 3, 4, 4, 4, None) == tuple(
        reading[name] for name in ("value", "part", "whole", "turns", "rows", "lack")
    )
    assert reading["sentence"].startswith("Mismatch rate 75 % (3 of 4 eligible turns)")
    assert group["links"]["rows"].startswith("/requests?")
    rows = site.client.get(group["links"]["rows"].replace("/requests", "/api/requests"))
    assert 3 == rows.json()["count"]


def test_a_group_shows_that_it_is_silenced(site):
    made = make(site)
    site.clock.advance(60)
    site.web.alerts.evaluator.tick()
    site.ask("POST", "/api/alerts/silences", {"rule_id": made["id"], "for": "1h"}, status=201)
    (group,) = site.get(f"{URL}/{made['id']}")["rule"]["groups"]
    assert group["silenced"] is True


def test_a_paused_rule_is_shown_as_such(site):
    assert "paused" == make(site, enabled=False)["state"]


def test_a_rule_that_cannot_be_read_is_shown_with_what_is_wrong_and_can_be_deleted(site):
    made = make(site)
    with site.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE alert_rules SET definition = '{\"signal\": \"new\"}' WHERE origin = 'page'"
        )
    rule = site.get(f"{URL}/{made['id']}")["rule"]
    assert ("error", {"signal": "new"}) == (rule["state"], rule["definition"])
    assert "cannot be read" in rule["failure"]
    site.ask("DELETE", f"{URL}/{made['id']}")


@pytest.mark.parametrize("state", ["firing", "resolved", "no_data"])
def test_a_test_writes_a_marked_message_to_each_receiver(site, state):
    made = make(site)
    told = site.ask("POST", f"{URL}/{made['id']}/test", {"state": state})
    (sent,) = told["deliveries"]
    delivery = site.get(f"/api/alerts/deliveries/{sent['id']}")
    assert ("ops", True, state, "queued") == tuple(
        delivery[name] for name in ("receiver", "test", "told", "state")
    )
    assert "cache.alert.test" == delivery["body"]["type"]
    assert delivery["body"]["data"]["title"].startswith("[TEST]")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"state": "firing", "receivers": ["nobody"]}, "receivers"),
        ({"state": "firing", "receivers": []}, "receivers"),
        ({"state": "pending"}, "state"),
        ({}, "state"),
        ({"state": "firing", "to": []}, "to"),
    ],
)
def test_a_test_needs_a_state_and_somebody_to_tell(site, body, field):
    made = make(site)
    assert field == refused(site, "POST", f"{URL}/{made['id']}/test", body, 422)["field"]
    assert [] == site.get("/api/alerts/deliveries")["deliveries"]


def test_without_the_database_there_is_an_error_and_no_crash(site):
    alerts, site.web.alerts = site.web.alerts, None
    answer = site.client.get(URL)
    assert (503, "not_ready") == (answer.status_code, answer.json()["error"]["code"])
    site.web.alerts = alerts
    with site.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE alert_states")
    assert "ledger_unavailable" == site.client.get(URL).json()["error"]["code"]


def test_a_groups_key_is_what_silences_and_events_call_it(site):
    made = make(site, group_by=["model"])
    write(site.engine, START_MS + 10_000, bad=3, model="a")
    site.clock.advance(60)
    site.web.alerts.evaluator.tick()
    (event,) = site.get("/api/alerts/events", rule=made["id"])["events"]
    assert ({"model": "a"}, "inactive", "firing", "crossed") == tuple(
        event[name] for name in ("group", "before", "after", "cause")
    )
