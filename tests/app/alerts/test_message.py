import pytest

from app.alerts import message as words
from app.alerts.signals import Measure, read
from app.alerts.states import Cause, State, Told
from tests.support.alerts import MINUTE, make_rule
from tests.support.messages import make_details, make_message, make_resolved
from tests.support.rows import START_MS


def test_a_firing_message_says_all_that_a_reader_needs():
    message = make_message(labels={"model": "gpt-6-sol", "client": "codex"})
    assert words.title(message) == "Firing: Mismatches (model=gpt-6-sol, client=codex)"
    assert words.lines(message) == [
        "Mismatch rate 30 % (30 of 100 eligible turns; at least 21.9 % is proven), threshold 20 %.",
        "Group: model=gpt-6-sol, client=codex.",
        "Window: 2027-01-15 07:45:00 to 08:00:00 UTC, by time of recording.",
        "Firing since 2027-01-15 08:00:00 UTC.",
        "Top causes:",
        "- An old tool result changed at /output/_meta. (28 turns)",
        "- The instructions changed. (1 turn)",
    ]


def test_a_message_of_all_others_says_what_its_links_show():
    others, named = (
        words.lines(make_message(labels={"model": model, "client": "other"}))[1]
        for model in ("other", "gpt-6-sol")
    )
    assert others == (
        "Group: model=other, client=other. These have no group of their own; causes and links are "
        "of all groups."
    )
    assert named == "Group: model=gpt-6-sol, client=other."


def test_a_resolved_message_says_why_how_long_and_how_bad():
    message = make_resolved(details=None)
    assert words.title(message) == "Resolved: Mismatches"
    assert words.lines(message) == [
        "Mismatch rate 5 % (5 of 100 eligible turns; at least 2.2 % is proven), threshold 20 %.",
        "Window: 2027-01-15 08:10:00 to 08:25:00 UTC, by time of recording.",
        (
            "It recovered: the value is at 10 % or below. Fired from 2027-01-15 08:00:00 to 08:25:00 "
            "UTC, 25 min. Worst value: 35 %."
        ),
    ]


def test_a_reminder_says_so():
    message = make_message(
        repeat=2, before=State.FIRING, at=START_MS + 60 * MINUTE, cause=None, details=None
    )
    assert words.title(message) == "Still firing (reminder 2): Mismatches"
    assert "Firing since 2027-01-15 08:00:00 UTC, for 1 h. Worst value: 30 %." in words.lines(
        message
    )


def test_an_absence_says_that_no_turn_was_recorded():
    rule = make_rule(no_data="alerting")
    message = make_message(
        rule=rule,
        told=Told.NO_DATA,
        reading=read(rule.signal, rule.confidence, 1, Measure()),
        cause=Cause.ABSENT,
        absence=True,
        peak=None,
        details=None,
    )
    assert words.title(message) == "No data: Mismatches"
    assert words.lines(message) == [
        "No turn was recorded that this rule watches, from 2027-01-15 07:45:00 to 08:00:00 UTC.",
        "Firing since 2027-01-15 08:00:00 UTC.",
    ]


@pytest.mark.parametrize("told", Told)
def test_a_test_cannot_be_taken_for_an_alert(told):
    message = make_message(told=told, test=True, reading=None, started_at=None, details=None)
    assert words.title(message).startswith("[TEST] ")
    assert words.lines(message)[0] == (
        f"[TEST] This is a test of “{told.value}”: nothing has happened."
    )
    assert message.type == "cache.alert.test"


@pytest.mark.parametrize("told", Told)
def test_the_type_says_what_is_told(told):
    assert make_message(told=told).type == f"cache.alert.{told.value}"


def test_a_deleted_rule_says_that_nobody_knows_whether_it_recovered():
    message = make_resolved(cause=Cause.DELETED, reading=None, details=None)
    assert words.lines(message) == [
        (
            "The rule was deleted. Whether it recovered is not known. Fired from 2027-01-15 08:00:00 "
            "to 08:25:00 UTC, 25 min. Worst value: 35 %."
        )
    ]


def test_a_message_that_waited_for_the_end_of_a_silence_says_how_late_it_is():
    message = make_resolved(at=START_MS + 85 * MINUTE, cause=None)
    assert any(line.endswith("Told 1 h later.") for line in words.lines(message))


def test_all_that_is_told_of_one_alert_has_one_id():
    assert make_message().alert_id == make_resolved().alert_id
    again = make_message(started_at=START_MS + MINUTE)
    assert again.alert_id != make_message().alert_id
    assert make_message(dedupe_key="e" * 64).alert_id != make_message().alert_id


def test_an_alert_that_fires_has_no_duration_yet():
    assert make_message().duration_ms is None
    assert make_resolved().duration_ms == 25 * MINUTE


def test_names_with_line_breaks_stay_in_their_line():
    rule = make_rule()
    message = make_message(
        rule=rule,
        labels={"model": "gpt\nResolved: all is well"},
        details=make_details(top_causes=()),
    )
    assert "\n" not in words.title(message)
    assert all("\n" not in line for line in words.lines(message))


def test_a_long_name_leaves_room_in_the_title():
    assert len(words.title(make_message(labels={"model": "m" * 1_000}))) < 150


def test_links_are_those_that_lead_somewhere():
    rule = make_rule(runbook_url="https://wiki.example/cache")
    assert [name for name, _ in words.link_pairs(make_message(rule=rule))] == [
        "Alert",
        "Rows",
        "Rows as CSV",
        "Silence it",
        "Runbook",
    ]
    assert [name for name, _ in words.link_pairs(make_resolved())] == [
        "Alert",
        "Rows",
        "Rows as CSV",
    ]
