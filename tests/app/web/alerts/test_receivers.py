"""Receivers over the API. What they check is tested beside them."""

import json

import pytest

SECRET = "whsec_" + "c2VjcmV0" * 6
OTHER = "whsec_" + "b3RoZXIt" * 6
URL = "/api/alerts/receivers"
NEW = {"name": "typed", "kind": "webhook", "url": "https://h.example/CANARY-PATH?CANARY-PATH=1",
       "secrets": [SECRET]}  # fmt: skip


def make(site, **changes):
    return site.ask("POST", URL, NEW | changes, status=201)["receiver"]


def refused(site, method, path, body, status) -> dict:
    return site.ask(method, path, body, status=status)["error"]


def test_a_receiver_is_made_changed_and_deleted(alerting):
    made = make(alerting)
    assert ("page", "https://h.example", True, 1, None, None) == tuple(
        made[name] for name in ("origin", "shown", "signed", "secrets", "disabled", "last_delivery")
    )
    path = f"{URL}/{made['id']}"
    assert made == alerting.get(path)["receiver"]
    changed = alerting.ask("PUT", path, {"name": "renamed", "version": 1})["receiver"]
    assert ("renamed", 2, "https://h.example") == (
        changed["name"],
        changed["version"],
        changed["shown"],
    )
    assert {"deleted": made["id"]} == alerting.ask("DELETE", path)
    assert ["ops"] == [each["name"] for each in alerting.get(URL)["receivers"]]


def test_a_receiver_without_a_kind_is_a_webhook_as_in_the_settings_file(alerting):
    assert "webhook" == make(alerting, kind=None)["kind"]


def test_a_receiver_that_rules_name_keeps_its_name(alerting):
    """By another one they would tell nobody."""
    path = f"{URL}/{make(alerting)['id']}"
    rule = alerting.rule["definition"] | {"receivers": ["typed"]}
    alerting.ask("PUT", f"/api/alerts/rules/{alerting.rule['id']}", rule)
    error = refused(alerting, "PUT", path, {"name": "renamed"}, 409)
    assert ("in_use", "These rules tell typed: Mismatches.") == (error["code"], error["message"])
    kept = alerting.ask("PUT", path, {"name": "typed", "url": "https://other.example/x"})
    assert ("typed", "https://other.example") == tuple(
        kept["receiver"][name] for name in ("name", "shown")
    )


def test_a_secret_is_rotated_in_two_steps(alerting):
    path = f"{URL}/{make(alerting)['id']}"
    assert 2 == alerting.ask("PUT", path, {"add_secret": OTHER})["receiver"]["secrets"]
    assert 1 == alerting.ask("PUT", path, {"retire_old_secret": True})["receiver"]["secrets"]
    endpoint = alerting.web.alerts.receivers.endpoint(path.rpartition("/")[2])
    assert (OTHER,) == endpoint.secrets


def test_neither_path_nor_secret_is_in_any_answer(alerting):
    made = make(alerting)
    path = f"{URL}/{made['id']}"
    answers = [
        made,
        alerting.get(URL),
        alerting.ask("PUT", path, {"add_secret": OTHER}),
        refused(alerting, "POST", URL, NEW, 409),
        refused(alerting, "POST", URL, NEW | {"name": "a", "url": "http://10.1.1.1/CANARY-PATH"}, 422),
        refused(alerting, "POST", URL, NEW | {"name": "a", "secrets": [SECRET + "!"]}, 422),
        refused(alerting, "POST", URL, NEW | {"name": "a", "secret": SECRET}, 422),
    ]  # fmt: skip
    for answer in answers:
        text = json.dumps(answer)
        assert "CANARY" not in text
        assert SECRET.removeprefix("whsec_") not in text
        assert OTHER.removeprefix("whsec_") not in text


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"url": "http://127.0.0.1:9/x"}, "address_refused"),
        ({"url": "https://169.254.169.254/x"}, "address_refused"),
        ({"url": "https://[::1]/x"}, "address_refused"),
        ({"url": "file:/etc/passwd"}, "bad_receiver"),
        ({"url": "env:WARMLINE_TOKEN"}, "bad_receiver"),
        ({"secrets": []}, "bad_receiver"),
        ({"secrets": ["file:/etc/passwd"]}, "bad_receiver"),
        ({"kind": "pager"}, "bad_receiver"),
        ({"url": None}, "bad_field"),
        ({"secrets": "whsec_x"}, "bad_field"),
    ],
)
def test_what_cannot_be_a_receiver_is_refused(alerting, changes, code):
    assert code == refused(alerting, "POST", URL, NEW | changes, 422)["code"]
    assert 1 == len(alerting.get(URL)["receivers"])


def test_an_address_in_the_place_of_a_receivers_name_is_not_answered(alerting):
    address = "https://hooks.example.com/CANARY"
    path = f"/api/alerts/rules/{alerting.rule['id']}"
    rule = alerting.rule["definition"] | {"receivers": [address]}
    test = {"state": "firing", "receivers": [address]}
    for method, to, body in (("PUT", path, rule), ("POST", f"{path}/test", test)):
        assert "CANARY" not in json.dumps(refused(alerting, method, to, body, 422))


def test_a_receiver_of_the_file_is_not_changed(alerting):
    for method, body in (("PUT", {"name": "x"}), ("DELETE", None)):
        error = refused(alerting, method, f"{URL}/file-ops", body, 409)
        assert error["code"] in ("read_only", "in_use")
    assert "read_only" == refused(alerting, "PUT", f"{URL}/file-ops", {"name": "x"}, 409)["code"]


def test_a_receiver_that_a_rule_names_is_not_deleted(alerting):
    made = make(alerting)
    path = f"/api/alerts/rules/{alerting.rule['id']}"
    alerting.ask("PUT", path, alerting.rule["definition"] | {"receivers": ["typed"]})
    error = refused(alerting, "DELETE", f"{URL}/{made['id']}", None, 409)
    assert ("in_use", "These rules tell typed: Mismatches.") == (error["code"], error["message"])


def test_a_receiver_that_was_disabled_is_used_again(alerting):
    alerting.web.alerts.receivers.disable("file-ops", "it said 410")
    assert "it said 410" == alerting.get(f"{URL}/file-ops")["receiver"]["disabled"]
    assert None is alerting.ask("POST", f"{URL}/file-ops/enable", {})["receiver"]["disabled"]


def test_a_test_is_written_to_the_outbox_and_shown_as_the_last_delivery(alerting):
    (sent,) = alerting.ask("POST", f"{URL}/file-ops/test", {"state": "resolved"})["deliveries"]
    assert "ops" == sent["receiver"]
    last = alerting.get(URL)["receivers"][0]["last_delivery"]
    assert (sent["id"], True, "resolved", "Test of ops") == tuple(
        last[name] for name in ("id", "test", "told", "rule")
    )
    assert (
        "firing"
        == alerting.get(
            "/api/alerts/deliveries/"
            + alerting.ask("POST", f"{URL}/file-ops/test", {})["deliveries"][0]["id"]
        )["told"]
    )


def test_what_is_not_there_is_404(alerting):
    for method, path in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/enable")):  # fmt: skip
        body = None if method == "GET" else {}
        assert "not_found" == refused(alerting, method, f"{URL}/none{path}", body, 404)["code"]


def test_the_hosts_that_may_be_private_are_told(alerting):
    assert [] == alerting.get(URL)["private_hosts"]
