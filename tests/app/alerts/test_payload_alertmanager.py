import re

import pytest

from app.alerts.fitting import Room
from app.alerts.payload_alertmanager import NOT_ENDED, build, label_name
from app.alerts.states import Told
from tests.support.alerts import make_rule
from tests.support.messages import BASE, make_details, make_message, make_resolved

ROOM = Room(1_000, 3_000)


def test_the_body_of_a_firing_alert():
    rule = make_rule(
        labels={"team": "agents"}, severity="error", runbook_url="https://wiki.example/cache"
    )
    message = make_message(rule=rule, labels={"model": "gpt-6-sol"}, details=None)
    body = build(message, ROOM, "ops")
    fingerprint = body["alerts"][0]["fingerprint"]
    labels = {
        "alertname": "Mismatches",
        "severity": "error",
        "signal": "mismatch_rate",
        "model": "gpt-6-sol",
        "team": "agents",
    }
    annotations = {
        "summary": "Firing: Mismatches (model=gpt-6-sol)",
        "description": "Mismatch rate 30 % (30 of 100 eligible turns), threshold 20 %.\n"
        "Group: model=gpt-6-sol.\n"
        "Window: 2027-01-15 07:45:00 to 08:00:00 UTC, by time of recording.\n"
        "Firing since 2027-01-15 08:00:00 UTC.",
        "runbook_url": "https://wiki.example/cache",
        "alert": f"{BASE}/alerts?rule=rule-1",
        "rows": f"{BASE}/requests?reason=prefix_mismatch&by=recorded",
        "csv": f"{BASE}/api/requests.csv?reason=prefix_mismatch&by=recorded",
        "silence": f"{BASE}/alerts?silence=rule-1",
    }
    assert re.fullmatch("[0-9a-f]{16}", fingerprint)
    assert body == {
        "version": "4",
        "groupKey": f'{{}}:{{alert="{fingerprint}"}}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "ops",
        "groupLabels": {"alertname": "Mismatches"},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": f"{BASE}/alerts",
        "alerts": [
            {
                "status": "firing",
                "labels": labels,
                "annotations": annotations,
                "startsAt": "2027-01-15T08:00:00.000Z",
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": f"{BASE}/requests?reason=prefix_mismatch&by=recorded",
                "fingerprint": fingerprint,
            }
        ],
    }


def test_a_resolved_alert_is_recognised_by_its_labels():
    firing, resolved = (build(m, ROOM, "ops") for m in (make_message(), make_resolved()))
    assert resolved["status"] == "resolved"
    assert resolved["groupKey"] == firing["groupKey"]
    before, after = firing["alerts"][0], resolved["alerts"][0]
    assert (before["endsAt"], after["endsAt"]) == (NOT_ENDED, "2027-01-15T08:25:00.000Z")
    for name in ("labels", "startsAt", "fingerprint"):
        assert before[name] == after[name]


def test_labels_do_not_depend_on_how_long_the_rest_is():
    rule = make_rule(labels={f"l{n}": "😀" * 200 for n in range(20)})
    wide, narrow = (build(make_message(rule=rule), room, "ops") for room in (ROOM, Room(20, 200)))
    assert wide["commonLabels"] == narrow["commonLabels"]
    assert wide["commonLabels"]["l7"].endswith("(cut)")


def test_an_absence_fires():
    body = build(make_message(told=Told.NO_DATA), ROOM, "ops")
    assert (body["status"], body["alerts"][0]["endsAt"]) == ("firing", NOT_ENDED)


def test_a_test_ends_no_real_alert():
    real, tried = (build(make_message(test=test), ROOM, "ops") for test in (False, True))
    assert tried["alerts"][0]["fingerprint"] != real["alerts"][0]["fingerprint"]
    assert tried["commonLabels"] == {**real["commonLabels"], "test": "true"}


def test_a_label_whose_name_is_taken_is_kept_under_another():
    rule = make_rule(labels={"severity": "sev1", "model": "mine", "exported_model": "old"})
    labels = build(make_message(rule=rule, labels={"model": "gpt-6-sol"}), ROOM, "ops")[
        "commonLabels"
    ]
    assert labels["severity"] == "warning"
    assert labels["exported_severity"] == "sev1"
    assert labels["model"] == "gpt-6-sol"
    assert {labels["exported_model"], labels["exported_exported_model"]} == {"mine", "old"}


@pytest.mark.parametrize(
    ("expected", "name"),
    [
        ("model", "model"),
        ("a_b_c", "a-b.c"),
        ("_1st", "1st"),
        ("_name__", "__name__"),
        ("_", ""),
        ("_", "模型é"),
    ],
)
def test_names_of_labels_are_made_valid(expected, name):
    assert expected == label_name(name)


def test_links_that_are_too_long_are_left_out():
    body = build(make_message(details=make_details(top_causes=())), Room(100, 30), "ops")
    assert "csv" not in body["commonAnnotations"]
    assert body["alerts"][0]["generatorURL"] == ""
