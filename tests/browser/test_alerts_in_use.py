"""The page of alerts where much fires, much was sent, and links and answers are not as they should be."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.support.alert_page import (
    REFUSED,
    ask,
    break_turns,
    card,
    make_receiver,
    make_rule,
    opened,
    panel,
    sent,
)
from tests.support.alert_server import AlertServer, alerting
from tests.support.alerts import bad_row
from tests.support.receiver import SECRET, Answer

pytestmark = pytest.mark.browser

GONE = "The rule of this link is gone."


@pytest.fixture
def alerts(servers, tmp_path) -> AlertServer:
    return servers.enter_context(alerting(tmp_path))


def groups_break(alerts: AlertServer, count: int, client: str = "codex") -> None:
    rows = [bad_row(alerts.now + 1, model=f"m-{one:02}", client=client) for one in range(count)]
    alerts.write(rows)
    alerts.advance(60)


def test_a_silence_of_a_rule_that_is_gone_does_not_become_one_of_all_rules(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page)
    page.goto(f"{alerts.url}/alerts?silence=rule_gone&model=gpt-6")
    expect(page.get_by_role("alert").filter(has_text=GONE)).to_be_visible()
    expect(panel(page)).to_have_count(0)


def test_a_link_to_a_rule_that_is_gone_says_so(open_page, alerts):
    page = opened(open_page, alerts, "?rule=rule_gone")
    expect(page.get_by_role("alert").filter(has_text=GONE)).to_be_visible()


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_long_names_make_no_page_wider_than_the_screen(open_page, alerts, width):
    page = opened(open_page, alerts, width=width)
    make_receiver(alerts, page, "r" * 100)
    make_rule(
        alerts, page, "W" * 100, group_by=["model", "client"], min_turns=1,
        receivers=["r" * 100], description="d" * 400, labels={"k" * 40: "v" * 200},
    )  # fmt: skip
    groups_break(alerts, 2, client="c" * 60)
    expect(page.get_by_role("article", name="Firing")).to_have_count(2)
    expect(sent(page, "Firing")).to_have_count(2)
    page.get_by_text("Groups and settings").click()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_the_severest_alerts_come_first_and_many_are_folded(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page, "Minor", severity="info", group_by=["model"], min_turns=1)
    make_rule(alerts, page, "Worse", severity="critical", min_turns=1)
    groups_break(alerts, 15)
    expect(page).to_have_title(re.compile(r"^\(16 firing\)"))
    fires = page.get_by_role("region", name="Firing now").get_by_role("article")
    expect(fires).to_have_count(12)
    expect(fires.first).to_have_accessible_name("Firing: Worse")
    page.get_by_text("4 more, of 16 alerts").click()
    expect(fires).to_have_count(16)


def test_links_of_the_group_of_all_others_say_that_they_show_all_groups(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page, group_by=["model"], min_turns=1)
    groups_break(alerts, 60)
    page.get_by_text("Groups and settings").click()
    other = page.get_by_role("region", name="model other")
    expect(other.get_by_role("link", name="Rows of all groups")).to_be_visible()
    named = page.get_by_role("region", name="model m-00")
    expect(named.get_by_role("link", name="Rows", exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("label", "typed", "said"),
    [
        ("Fires above", "120", "A share lies between 0 and 100 %."),
        ("Fires above", "100", "No share lies above 100 %: the rule would never fire."),
        ("Is over at or below", "30", "Must be at most the threshold of 20 %."),
        ("At least so many turns", "0", "Must be a whole number from 1 to 1000000."),
    ],
)
def test_a_refusal_speaks_of_the_field_as_the_form_does(open_page, alerts, label, typed, said):
    page = opened(open_page, alerts)
    page.watch.allow(*REFUSED)
    page.get_by_role("button", name="New rule for the mismatch rate").click()
    field = panel(page).get_by_label(label)
    field.fill(typed)
    expect(panel(page).get_by_label("Preview", exact=True)).to_contain_text(f"{label}: {said}")
    panel(page).get_by_role("button", name="Create rule").click()
    expect(field).to_be_focused()
    expect(panel(page).get_by_text(said, exact=True)).to_be_visible()


def test_the_log_says_what_an_answer_means_and_can_be_asked_for_one_state(
    open_page, servers, tmp_path
):
    answers = (Answer(302, "", {"location": "/elsewhere"}), Answer(204))
    alerts = servers.enter_context(alerting(tmp_path, *answers))
    page = opened(open_page, alerts)
    make_receiver(alerts, page)
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Test ops").click()
    expect(sent(page, "Firing (test)")).to_contain_text("HTTP 302: redirects are not followed")
    page.get_by_role("button", name="Test ops").click()
    expect(sent(page, "Firing (test)")).to_have_count(2)
    state = page.get_by_label("State of deliveries")
    state.select_option("Dead")
    expect(sent(page, "Firing (test)")).to_have_count(1)
    expect(sent(page, "Firing (test)")).to_contain_text("Dead")
    state.select_option("Queued")
    expect(page.get_by_text("No delivery is queued.")).to_be_visible()


def test_an_open_message_follows_what_becomes_of_it(open_page, servers, tmp_path):
    alerts = servers.enter_context(alerting(tmp_path, 503, 204))
    page = opened(open_page, alerts)
    make_receiver(alerts, page)
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Test ops").click()
    sent(page, "Firing (test)").get_by_role("button").click()
    expect(panel(page)).to_contain_text("HTTP 503: it failed")
    alerts.advance(60)
    expect(panel(page)).to_contain_text("Attempt 2")
    expect(panel(page)).to_contain_text("Delivered")


def test_r_refreshes_the_page_unless_somebody_types(open_page, alerts):
    page = opened(open_page, alerts, often=False)
    make_rule(alerts, page)
    with page.expect_request("**/api/alerts/rules"):
        page.keyboard.press("r")
    expect(card(page, "Mismatches")).to_be_visible()
    page.get_by_role("button", name="New silence").click()
    panel(page).get_by_label("Why").press("r")
    expect(panel(page).get_by_label("Why")).to_have_value("r")


def test_what_changed_in_another_tab_is_not_overwritten(open_page, alerts):
    page = opened(open_page, alerts)
    page.watch.allow("409")
    rule = make_rule(alerts, page)
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Edit Mismatches").click()
    panel(page).get_by_label("Fires above").fill("30")
    other, _ = open_page()
    other.goto(f"{alerts.url}/alerts?rule={rule}")
    other.get_by_role("button", name="Pause Mismatches").click()
    expect(card(other, "Mismatches")).to_contain_text("Paused")
    panel(page).get_by_role("button", name="Save rule").click()
    expect(panel(page)).to_contain_text("changed by someone else meanwhile")
    expect(card(other, "Mismatches")).to_contain_text("above 20\u202f%")


def test_where_some_groups_cannot_be_judged_the_page_does_not_say_none_can(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page, group_by=["model"], threshold=0.99, min_turns=5)
    alerts.write([bad_row(alerts.now + 1, model="gpt-few")])
    alerts.write(
        [
            bad_row(alerts.now + 1, model="gpt-many", reason="ok", mode="ws_incremental")
            for _ in range(9)
        ]
    )
    alerts.advance(60)
    expect(page.get_by_text("cannot be judged at present, or not in all groups")).to_be_visible()


def test_a_rule_without_receivers_is_not_said_to_have_told_them(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page)
    break_turns(alerts)
    alarm = page.get_by_role("article", name="Firing: Mismatches")
    expect(alarm).to_contain_text("the rule has no receivers")


def test_an_alert_that_ended_unproven_is_not_called_ok(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page, "Gone")
    break_turns(alerts)
    expect(page.get_by_role("article", name="Firing: Gone")).to_be_visible()
    page.get_by_role("button", name="Delete Gone").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete rule").click()
    history = page.get_by_role("region", name="History")
    expect(history).to_contain_text("The rule was deleted.")
    expect(history.get_by_role("listitem").first).to_contain_text("Ended")


def test_a_form_says_what_it_lacks_in_its_own_words(open_page, alerts):
    page = opened(open_page, alerts)
    page.watch.allow(*REFUSED)
    make_receiver(alerts, page)
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Secrets ops").click()
    panel(page).get_by_role("button", name="Add the new secret").click()
    expect(panel(page).get_by_text("Must be a text of 1 to")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="New silence").click()
    panel(page).get_by_label("For", exact=True).select_option("until a time …")
    panel(page).get_by_role("button", name="Silence", exact=True).click()
    expect(panel(page).get_by_label("Until")).to_be_focused()
    expect(panel(page).get_by_text("Say until when.")).to_be_visible()


def test_the_keyboard_stays_in_the_section_when_what_it_was_on_has_gone(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page)
    ask(alerts, page, "silences", {"rule_id": None, "matchers": {}, "for": "1h"})
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="End now").press("Enter")
    expect(page.get_by_role("heading", name="Silences")).to_be_focused()
    page.get_by_role("button", name="Delete Mismatches").press("Enter")
    page.get_by_role("alertdialog").get_by_role("button", name="Delete rule").press("Enter")
    expect(page.get_by_role("heading", name="Rules")).to_be_focused()


def test_a_receiver_that_rules_name_is_refused_without_a_question(open_page, alerts):
    page = opened(open_page, alerts)
    page.watch.allow("409")
    make_receiver(alerts, page)
    make_rule(alerts, page, receivers=["ops"])
    page.get_by_role("button", name="Refresh now").click()
    expect(card(page, "Mismatches")).to_contain_text("Tells ops")
    page.get_by_role("button", name="Delete ops").click()
    refusal = page.get_by_role("alert").filter(has_text="These rules tell ops: Mismatches.")
    expect(refusal).to_be_visible()
    expect(page.get_by_role("alertdialog")).to_have_count(0)


def test_a_long_history_is_shown_in_parts_and_says_where_it_ends(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page, group_by=["model"], min_turns=1)
    for _ in range(3):  # 49 groups and the others: each fires and is gone again
        groups_break(alerts, 60)
        alerts.advance(600)
        expect(page.get_by_text("Nothing fires.")).to_be_visible()
    history = page.get_by_role("region", name="History")
    lines = history.locator("li")
    for count in range(20, 200, 20):
        expect(lines).to_have_count(count)
        history.get_by_role("button", name="Show older history").click()
    expect(lines).to_have_count(200)
    expect(history.get_by_role("button", name="Show older history")).to_be_hidden()
    expect(history.get_by_text("The newest 200 are shown.")).to_be_visible()


def test_a_silence_of_a_deleted_rule_does_not_show_an_id(open_page, alerts):
    page = opened(open_page, alerts)
    rule = make_rule(alerts, page)
    ask(alerts, page, "silences", {"rule_id": rule, "matchers": {}, "for": "1h"})
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Delete Mismatches").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete rule").click()
    silences = page.get_by_role("region", name="Silences")
    expect(silences).to_contain_text("A deleted rule")
    assert rule not in silences.inner_text()


def test_a_rule_that_takes_absence_for_bad_says_so_where_it_fires(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page, no_data="alerting")
    alerts.advance(60)
    alarm = page.get_by_role("article", name="Firing: Mismatches")
    expect(alarm).to_contain_text("No turns now, which this rule takes for bad")
    expect(card(page, "Mismatches")).to_contain_text("No turns: this rule takes that for bad.")
    expect(card(page, "Mismatches")).not_to_contain_text("Not judged")


def test_an_edit_while_pending_ends_no_alert(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page, pending_for="1h")
    break_turns(alerts)
    expect(card(page, "Mismatches")).to_contain_text("Pending")
    page.get_by_role("button", name="Edit Mismatches").click()
    panel(page).get_by_label("Fires above").fill("30")
    panel(page).get_by_role("button", name="Save rule").click()
    last = page.get_by_role("region", name="History").get_by_role("listitem").first
    expect(last).to_contain_text("The rule was edited.")
    expect(last).to_contain_text("OK")


@pytest.mark.parametrize("kind", ["webhook", "slack", "alertmanager"])
def test_an_open_message_shows_what_it_says_to_people(open_page, alerts, kind):
    page = opened(open_page, alerts)
    secrets = [SECRET] if kind == "webhook" else []
    body = {"name": "ops", "kind": kind, "url": alerts.receiver.url, "secrets": secrets}
    ask(alerts, page, "receivers", body)
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Test ops").click()
    sent(page, "Firing (test)").get_by_role("button").click()
    expect(panel(page).get_by_role("heading", name="What it says")).to_be_visible()
    said = panel(page).get_by_role("paragraph").filter(has_text="This is a test of “firing”")
    expect(said).to_be_visible()


def test_of_many_changes_a_few_are_read_out(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page, group_by=["model"], min_turns=1)
    page.get_by_role("button", name="Refresh now").click()
    expect(card(page, "Mismatches")).to_be_visible()
    groups_break(alerts, 20)
    expect(page.locator("#announcer")).to_contain_text("And 15 more.")
