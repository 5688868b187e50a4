from dataclasses import replace

from app.alerts.fitting import Room
from app.alerts.payload_json import build
from app.alerts.signals import Measure, read
from app.alerts.states import Cause, State, Told
from tests.support.alerts import make_rule
from tests.support.messages import BASE, make_details, make_message, make_resolved

ROOM = Room(1_000, 3_000)


def test_the_body_of_a_firing_alert():
    rule = make_rule(
        name="Codex loses its cache",
        description="Somebody edits old tool results.",
        owner="platform",
        severity="error",
        confidence="wilson",
        threshold=0.2,
        recover=0.1,
        min_turns=20,
        labels={"team": "agents"},
        runbook_url="https://wiki.example/cache",
    )
    message = make_message(rule=rule, labels={"model": "gpt-6-sol"})
    assert build(message, ROOM) == {
        "type": "cache.alert.firing",
        "timestamp": "2027-01-15T08:00:00.000Z",
        "data": {
            "schema_version": 1,
            "alert_id": message.alert_id,
            "dedupe_key": "d" * 64,
            "test": False,
            "title": "Firing: Codex loses its cache (model=gpt-6-sol)",
            "text": "Mismatch rate 30 % (30 of 100 eligible turns; at least 21.9 % is proven), "
            "threshold 20 %.\n"
            "Group: model=gpt-6-sol.\n"
            "Window: 2027-01-15 07:45:00 to 08:00:00 UTC, by time of recording.\n"
            "Firing since 2027-01-15 08:00:00 UTC.\n"
            "Somebody edits old tool results.\n"
            "Top causes:\n"
            "- An old tool result changed at /output/_meta. (28 turns)\n"
            "- The instructions changed. (1 turn)",
            "rule": {
                "id": "rule-1",
                "name": "Codex loses its cache",
                "description": "Somebody edits old tool results.",
                "owner": "platform",
            },
            "state": "firing",
            "previous_state": "inactive",
            "severity": "error",
            "labels": {"team": "agents"},
            "group": {"model": "gpt-6-sol"},
            "signal": "mismatch_rate",
            "weight": "turns",
            "confidence": "wilson",
            "unit": "ratio",
            "threshold": 0.2,
            "recover": 0.1,
            "value": 0.3,
            "bound": message.reading.bound,
            "numerator": 30,
            "denominator": 100,
            "turns": 100,
            "unknown": 0,
            "rows": 120,
            "lack": None,
            "window": {"from": "2027-01-15T07:45:00.000Z", "to": "2027-01-15T08:00:00.000Z"},
            "started_at": "2027-01-15T08:00:00.000Z",
            "ended_at": None,
            "duration_ms": None,
            "peak": 0.3,
            "cause": "crossed",
            "repeat": 0,
            "top_causes": [
                {
                    "sentence": "An old tool result changed at /output/_meta.",
                    "reason": "prefix_mismatch",
                    "fingerprint": "0f1e2d3c4b5a6978",
                    "turns": 28,
                },
                {
                    "sentence": "The instructions changed.",
                    "reason": "prefix_mismatch",
                    "fingerprint": None,
                    "turns": 1,
                },
            ],
            "top_fingerprints": ["0f1e2d3c4b5a6978"],
            "sample_request_ids": ["turn_1", "turn_2"],
            "links": {
                "alert": f"{BASE}/alerts?rule=rule-1",
                "rows": f"{BASE}/requests?reason=prefix_mismatch&by=recorded",
                "csv": f"{BASE}/api/requests.csv?reason=prefix_mismatch&by=recorded",
                "silence": f"{BASE}/alerts?silence=rule-1",
            },
            "runbook_url": "https://wiki.example/cache",
        },
    }


def test_a_resolved_alert_has_the_keys_of_the_firing_one_and_its_course():
    firing, resolved = (build(m, ROOM)["data"] for m in (make_message(), make_resolved()))
    assert resolved["dedupe_key"] == firing["dedupe_key"]
    assert resolved["alert_id"] == firing["alert_id"]
    assert resolved["started_at"] == firing["started_at"]
    assert (
        resolved
        | {
            "state": "resolved",
            "previous_state": "firing",
            "ended_at": "2027-01-15T08:25:00.000Z",
            "duration_ms": 1_500_000,
            "peak": 0.35,
            "cause": "cleared",
        }
        == resolved
    )


def test_what_is_unknown_is_null():
    message = make_resolved(cause=Cause.DELETED, reading=None, peak=None, details=None)
    data = build(message, ROOM)["data"]
    unknown = ("value", "bound", "numerator", "denominator", "turns", "unknown", "rows", "peak")
    assert [data[name] for name in unknown] == [None] * len(unknown)
    assert data["top_causes"] == data["top_fingerprints"] == data["sample_request_ids"] == []
    assert data["runbook_url"] is None


def test_what_is_no_number_is_null():
    reading = replace(make_message().reading, value=float("nan"), bound=float("inf"))
    data = build(make_message(reading=reading, peak=float("-inf")), ROOM)["data"]
    assert (data["value"], data["bound"], data["peak"]) == (None, None, None)


def test_what_is_no_ratio_has_no_denominator():
    def measured(signal, measure):
        rule = make_rule(signal=signal, threshold=100)
        reading = read(rule.signal, rule.confidence, 1, measure)
        data = build(make_message(rule=rule, reading=reading), ROOM)["data"]
        return data["unit"], data["value"], data["numerator"], data["denominator"], data["turns"]

    ttft = Measure(3, 0, 0, 2, samples=(120.0, 350.0))
    assert measured("ttft_p95", ttft)[2:] == (None, None, 2)
    assert measured("missed_tokens", Measure(3, 500, 0, 2)) == ("tokens", 500.0, 500, None, 2)


def test_a_test_says_so_and_names_the_state_that_was_tried():
    body = build(make_message(test=True, told=Told.RESOLVED, before=State.FIRING), ROOM)
    assert body["type"] == "cache.alert.test"
    assert (body["data"]["test"], body["data"]["state"]) == (True, "resolved")
    assert body["data"]["title"].startswith("[TEST] Resolved: ")


def test_only_five_samples_and_three_causes_are_named():
    details = make_details(
        top_causes=make_details().top_causes * 3,
        top_fingerprints=("a", "b", "c", "d"),
        sample_turn_ids=tuple(f"turn_{n}" for n in range(9)),
    )
    data = build(make_message(details=details), ROOM)["data"]
    assert len(data["top_causes"]) == 3
    assert data["top_fingerprints"] == ["a", "b", "c"]
    assert data["sample_request_ids"] == ["turn_0", "turn_1", "turn_2", "turn_3", "turn_4"]


def test_an_id_is_whole_or_absent():
    details = make_details(sample_turn_ids=("turn_1", "x" * 1_000), top_causes=())
    data = build(make_message(details=details), Room(20, 200))["data"]
    assert data["sample_request_ids"] == ["turn_1"]


def test_a_link_that_is_too_long_is_null_and_not_half():
    data = build(make_message(), Room(1_000, 40))["data"]
    assert data["links"]["csv"] is None
    assert data["links"]["alert"] == f"{BASE}/alerts?rule=rule-1"
