"""The page of alerts: rules and receivers are made, tried, seen to fire and to resolve.

The service is the real one, with its evaluation, its delivery and a receiver that checks
signatures; only the clock is the test's.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.alert_page import (
    REFUSED,
    ask,
    break_turns,
    card,
    continue_turns,
    make_receiver,
    make_rule,
    opened,
    panel,
    sent,
)
from tests.support.alert_server import AlertServer, alerting
from tests.support.alerts import bad_row
from tests.support.pages import (
    PANEL,
    fits,
    violations,
    violations_in_both_themes,
    violations_in_the_dark,
)
from tests.support.receiver import SECRET, Answer

pytestmark = pytest.mark.browser

FILE_RULE = """
[alerts.rules.nightly]
signal = "cached_ratio"
threshold = 0.5
"""
HOUR = 3_600_000


@pytest.fixture
def alerts(servers, tmp_path) -> AlertServer:
    return servers.enter_context(alerting(tmp_path))


def test_a_rule_is_made_previewed_tested_and_seen_to_fire_and_resolve(open_page, alerts):
    alerts.write([bad_row(alerts.now - 2 * HOUR + at) for at in range(10)])
    page = opened(open_page, alerts)
    expect(page.get_by_role("heading", name="Nobody is told yet")).to_be_visible()

    page.get_by_role("button", name="New receiver").click()
    panel(page).get_by_label("Name").fill("ops")
    panel(page).get_by_label("URL").fill(alerts.receiver.url)
    panel(page).get_by_label("Secret", exact=True).fill(SECRET)
    panel(page).get_by_role("button", name="Add receiver").click()
    expect(card(page, "ops")).to_contain_text(alerts.receiver.shown)
    expect(card(page, "ops")).to_contain_text("signed")

    page.get_by_role("button", name="New rule for the mismatch rate").click()
    form = panel(page)
    expect(form.get_by_label("Fires above")).to_have_value("20")
    expect(form.get_by_label("Over the last")).to_have_value("15m")
    expect(form.get_by_label("At least so many turns")).to_have_value("20")
    expect(form.get_by_label("Preview", exact=True)).to_contain_text("Would not have fired")
    form.get_by_label("At least so many turns").fill("5")
    form.get_by_label("Over the last").fill("1m")
    form.get_by_text("More settings").click()
    form.get_by_label("Delay").fill("0s")
    form.get_by_role("checkbox", name="ops").check()
    expect(form.get_by_label("Preview", exact=True)).to_contain_text("Would have fired once")
    expect(form.locator(".main-svg").first).to_be_visible()
    form.get_by_role("button", name="Create rule").click()
    rule = card(page, "Mismatch rate")
    expect(rule).to_be_focused()
    expect(rule).to_contain_text("Mismatch rate above 20\u202f% over 1\u202fmin")

    page.get_by_role("button", name="Test Mismatch rate").click()
    panel(page).get_by_label("State").select_option("resolved")
    panel(page).get_by_role("button", name="Send test").click()
    expect(sent(page, "Resolved (test)")).to_contain_text("Delivered")

    break_turns(alerts)
    alarm = page.get_by_role("article", name="Firing: Mismatch rate")
    expect(alarm).to_contain_text("100\u202f%")
    expect(page.get_by_role("status").and_(page.locator("#announcer"))).to_contain_text("Firing")
    expect(page).to_have_title(re.compile(r"^\(1 firing\)"))
    expect(sent(page, "Firing")).to_contain_text("Delivered")
    rows = alarm.get_by_role("link", name="Rows").get_attribute("href")
    assert 20 == page.request.get(f"{alerts.url}/api{rows}").json()["count"]

    continue_turns(alerts)
    expect(page.get_by_text("Nothing fires.")).to_be_visible()
    expect(sent(page, "Resolved")).to_contain_text("Delivered")
    history = page.get_by_role("region", name="History")
    expect(history).to_contain_text("The threshold was crossed.")
    expect(history).to_contain_text("The value came back.")

    got = alerts.receiver.received
    assert ["test", "firing", "resolved"] == [one.json["type"].split(".")[-1] for one in got]
    assert all(one.verified for one in got)
    seen = page.content()
    assert "canary" not in seen
    assert SECRET not in seen


def test_a_rule_of_the_settings_file_says_so_and_cannot_be_changed(open_page, servers, tmp_path):
    alerts = servers.enter_context(alerting(tmp_path, toml=FILE_RULE))
    page = opened(open_page, alerts)
    rule = card(page, "nightly")
    expect(rule).to_contain_text("settings file")
    expect(rule.get_by_role("button", name="Preview nightly")).to_be_visible()
    for word in ("Edit", "Pause", "Delete"):
        expect(rule.get_by_role("button", name=f"{word} nightly")).to_have_count(0)


def test_what_is_wrong_is_said_at_its_field(open_page, alerts):
    page = opened(open_page, alerts)
    page.watch.allow(*REFUSED)
    page.get_by_role("button", name="New rule", exact=True).click()
    window = panel(page).get_by_label("Over the last")
    panel(page).get_by_label("Name").fill("Mismatches")
    window.fill("soon")
    panel(page).get_by_role("button", name="Create rule").click()
    expect(window).to_be_focused()
    expect(window).to_have_attribute("aria-invalid", "true")
    expect(window).to_have_accessible_description(re.compile("Must be a duration"))
    window.fill("5m")
    panel(page).get_by_role("button", name="Create rule").click()
    expect(card(page, "Mismatches")).to_be_visible()


def test_a_refused_address_is_told_at_the_url_without_it(open_page, alerts):
    page = opened(open_page, alerts)
    page.watch.allow(*REFUSED)
    page.get_by_role("button", name="New receiver").click()
    panel(page).get_by_label("Name").fill("inside")
    url = panel(page).get_by_label("URL")
    url.fill("https://169.254.169.254/path-canary")
    panel(page).get_by_label("Secret", exact=True).fill(SECRET)
    panel(page).get_by_role("button", name="Add receiver").click()
    expect(url).to_have_attribute("aria-invalid", "true")
    expect(url).to_be_focused()
    assert "path-canary" not in page.content()


def test_the_signal_decides_direction_unit_and_what_can_be_proven(open_page, alerts):
    page = opened(open_page, alerts)
    page.get_by_role("button", name="New rule", exact=True).click()
    form = panel(page)
    form.get_by_label("Signal").select_option("cached_ratio")
    expect(form.get_by_label("Fires below")).to_be_visible()
    expect(form.get_by_label("Compared is").get_by_role("option")).to_have_text(
        ["The value itself"]
    )
    form.get_by_label("Signal").select_option("ttft_p95")
    expect(form.get_by_label("Fires above")).to_have_accessible_description(re.compile("In ms"))
    form.get_by_label("Signal").select_option("mismatch_rate")
    form.get_by_label("Counts").select_option("tokens")
    expect(form.get_by_label("Compared is").get_by_role("option")).to_have_text(
        ["The value itself"]
    )


def test_a_rule_is_edited_paused_and_deleted(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page)
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Edit Mismatches").click()
    panel(page).get_by_label("Fires above").fill("7")
    panel(page).get_by_role("button", name="Save rule").click()
    expect(card(page, "Mismatches")).to_contain_text("above 7\u202f%")
    expect(page.get_by_role("button", name="Edit Mismatches")).to_be_focused()
    page.get_by_role("button", name="Pause Mismatches").click()
    expect(card(page, "Mismatches")).to_contain_text("Paused")
    page.get_by_role("button", name="Resume Mismatches").click()
    page.get_by_role("button", name="Delete Mismatches").click()
    question = page.get_by_role("alertdialog", name="Delete Mismatches?")
    expect(question).to_contain_text("resolved")
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(card(page, "Mismatches")).to_be_visible()
    page.get_by_role("button", name="Delete Mismatches").click()
    question.get_by_role("button", name="Delete rule").click()
    expect(card(page, "Mismatches")).to_have_count(0)


def test_each_group_shows_its_state_and_why_it_cannot_be_judged(open_page, alerts):
    page = opened(open_page, alerts)
    make_rule(alerts, page, group_by=["model"])
    alerts.write([bad_row(alerts.now + 1, model="gpt-few")])
    break_turns(alerts, model="gpt-bad")
    expect(page.get_by_role("article", name="Firing: Mismatches, model gpt-bad")).to_be_visible()
    page.get_by_text("Groups and settings").click()
    few = page.get_by_role("region", name="model gpt-few")
    expect(few).to_contain_text("No data")
    expect(few).to_contain_text("Too few to judge by: 5 are needed.")
    alerts.advance(60)  # what is open stays open when new readings come in
    expect(page.get_by_role("region", name="model gpt-bad")).to_be_visible()


def test_a_silence_keeps_the_receiver_in_peace_until_it_is_ended(open_page, alerts):
    page = opened(open_page, alerts)
    make_receiver(alerts, page)
    make_rule(alerts, page, receivers=["ops"], group_by=["model"])
    rule = make_rule(alerts, page, "Others", group_by=["model"])
    page.goto(f"{alerts.url}/alerts?silence={rule}&model=gpt-5.6-sol")
    expect(panel(page).get_by_label("Rule")).to_have_value(rule)
    expect(panel(page).get_by_label("model")).to_have_value("gpt-5.6-sol")
    panel(page).get_by_label("Rule").select_option("Mismatches")
    panel(page).get_by_label("Why").fill("a known deploy")
    panel(page).get_by_role("button", name="Silence", exact=True).click()
    silences = page.get_by_role("region", name="Silences")
    expect(silences).to_contain_text("a known deploy")
    break_turns(alerts)
    alarm = page.get_by_role("article", name="Firing: Mismatches, model gpt-5.6-sol")
    expect(alarm).to_contain_text("Silenced")
    expect(alarm).to_contain_text("receivers were not told")
    assert [] == alerts.receiver.received
    silences.get_by_role("button", name="End now").click()
    expect(silences).to_contain_text("ended")
    alerts.write([bad_row(alerts.now + at) for at in range(1, 21)])
    alerts.advance(60)
    expect(sent(page, "Firing")).to_contain_text("Delivered")
    assert ["cache.alert.firing"] == [one.json["type"] for one in alerts.receiver.received]


def test_a_dead_delivery_shows_the_answer_as_text_and_is_replayed(open_page, servers, tmp_path):
    script = (Answer(400, "<b id=answer>no</b>"),)
    alerts = servers.enter_context(alerting(tmp_path, *script))
    page = opened(open_page, alerts)
    make_receiver(alerts, page)
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Test ops").click()
    expect(sent(page, "Firing (test)")).to_contain_text("Dead")
    sent(page, "Firing (test)").get_by_role("button").click()
    expect(panel(page).get_by_label("Answer to attempt 1")).to_have_text("<b id=answer>no</b>")
    expect(panel(page).get_by_label("Body of the message")).to_contain_text('"schema_version": 1')
    panel(page).get_by_role("button", name="Replay").click()
    page.keyboard.press("Escape")
    expect(sent(page, "Firing (test)")).to_contain_text("Delivered")
    expect(sent(page, "Firing (test)").get_by_role("button")).to_be_focused()
    first, again = alerts.receiver.received
    assert first.id == again.id
    assert again.verified


def test_a_secret_is_made_shown_once_and_exchanged(open_page, alerts):
    page = opened(open_page, alerts)
    make_receiver(alerts, page)
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Secrets ops").click()
    panel(page).get_by_role("button", name="Generate").click()
    made = panel(page).get_by_label("New secret").input_value()
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", made)
    expect(panel(page).get_by_role("button", name=f"Copy secret {made}")).to_be_visible()
    panel(page).get_by_role("button", name="Add the new secret").click()
    expect(card(page, "ops")).to_contain_text("signed with 2 secrets")
    assert made not in page.content()
    page.get_by_role("button", name="Test ops").click()
    expect(sent(page, "Firing (test)")).to_contain_text("Delivered")
    (received,) = alerts.receiver.received
    assert received.verified  # the old secret still holds
    assert 2 == len(received.headers["webhook-signature"].split())
    page.get_by_role("button", name="Secrets ops").click()
    panel(page).get_by_role("button", name="Retire the old secret").click()
    expect(card(page, "ops")).not_to_contain_text("2 secrets")


def test_an_edited_receiver_keeps_its_address_unless_another_is_typed(open_page, alerts):
    page = opened(open_page, alerts)
    make_receiver(alerts, page)
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Edit ops").click()
    url = panel(page).get_by_label("URL")
    expect(url).to_have_value("")
    expect(url).to_have_attribute("type", "password")
    panel(page).get_by_label("Name").fill("night")
    panel(page).get_by_role("button", name="Save receiver").click()
    page.get_by_role("button", name="Test night").click()
    expect(sent(page, "Firing (test)")).to_contain_text("Delivered")
    page.get_by_role("button", name="Delete night").click()
    page.get_by_role("button", name="Delete receiver").click()
    expect(card(page, "night")).to_have_count(0)


def test_a_receiver_that_becomes_a_signed_one_is_asked_for_its_secret(open_page, alerts):
    page = opened(open_page, alerts)
    body = {"name": "ops", "kind": "slack", "url": alerts.receiver.url}
    ask(alerts, page, "receivers", body)
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Edit ops").click()
    secret = panel(page).get_by_label("Secret", exact=True)
    expect(secret).to_have_count(0)
    panel(page).get_by_label("Kind").select_option("webhook")
    secret.fill(SECRET)
    panel(page).get_by_role("button", name="Save receiver").click()
    page.get_by_role("button", name="Test ops").click()
    expect(sent(page, "Firing (test)")).to_contain_text("Delivered")
    (received,) = alerts.receiver.received
    assert received.verified


def test_a_link_brings_a_rule_into_sight_with_the_keyboard_on_it(open_page, alerts):
    page = opened(open_page, alerts)
    for number in range(12):
        rule = make_rule(alerts, page, f"Rule {number:02}")
    page.goto(f"{alerts.url}/alerts?rule={rule}")
    expect(card(page, "Rule 11")).to_be_focused()
    expect(card(page, "Rule 11")).to_be_in_viewport()


def test_the_panel_gives_the_keyboard_back(open_page, alerts):
    page = opened(open_page, alerts)
    page.get_by_role("button", name="New silence").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New silence")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="New silence")).to_be_focused()


def test_page_and_forms_are_accessible_and_no_wider_than_the_screen(open_page, alerts, axe):
    page = opened(open_page, alerts, width=360)
    make_receiver(alerts, page)
    make_rule(alerts, page, receivers=["ops"], group_by=["model", "client"])
    break_turns(alerts)
    expect(sent(page, "Firing")).to_contain_text("Delivered")
    page.get_by_text("Groups and settings").click()
    assert fits(page, 360)
    found = violations(page, axe)
    page.set_viewport_size({"width": 1600, "height": 900})
    assert fits(page, 1600)
    assert [] == found + violations_in_the_dark(page)
    page.get_by_role("button", name="Edit Mismatches").click()
    expect(panel(page).locator(".main-svg").first).to_be_visible()
    assert [] == both(page, axe)
    page.keyboard.press("Escape")
    sent(page, "Firing").get_by_role("button").click()
    expect(panel(page)).to_contain_text("Attempt 1")
    assert [] == both(page, axe)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="New silence").click()
    assert [] == both(page, axe)


def both(page: Page, axe: str) -> list[str]:
    """What is wrong with the open panel, in both themes."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    return violations_in_both_themes(page, axe, within=PANEL)


def test_what_is_refused_stays_to_be_read(open_page, alerts):
    page = opened(open_page, alerts)
    page.watch.allow("status 409", "409 (Conflict)")
    make_receiver(alerts, page)
    make_rule(alerts, page, receivers=["ops"])
    page.get_by_role("button", name="Refresh now").click()
    page.get_by_role("button", name="Delete ops").click()
    told = page.get_by_role("alert").filter(has_text="These rules tell ops: Mismatches.")
    expect(told).to_be_visible()
    with page.expect_response("**/api/alerts/rules"):
        pass  # the page was looked at anew since
    expect(told).to_be_visible()
    page.get_by_role("button", name="Dismiss").click()
    expect(told).to_be_hidden()


def test_what_was_typed_is_not_thrown_away_unasked(open_page, alerts):
    page = opened(open_page, alerts)
    page.get_by_role("button", name="New silence").click()
    panel(page).get_by_label("Why").fill("a known deploy")
    page.keyboard.press("Escape")
    question = page.get_by_role("alertdialog", name="Throw away what you typed?")
    question.get_by_role("button", name="Cancel").click()
    expect(panel(page).get_by_label("Why")).to_have_value("a known deploy")
    page.keyboard.press("Escape")
    # asked again before the browser has told that the first question is over
    question.get_by_role("button", name="Cancel").evaluate(
        """no => {
          no.click();
          document.getElementById("panel").dispatchEvent(new Event("cancel", {cancelable: true}));
        }"""
    )
    question.get_by_role("button", name="Throw away").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="New silence")).to_be_focused()


def test_the_demo_shows_what_its_own_receiver_got(open_page, servers, tmp_path):
    body = {"type": "cache.alert.firing", "data": {"value": 0.42}}
    got = {"at": "2027-01-15T07:59:00.000Z", "webhook_id": "msg_1", "verified": True}
    got |= {"type": body["type"], "title": "Mismatches <i>fires</i>", "body": body}
    alerts = servers.enter_context(alerting(tmp_path, received=lambda: [got]))
    page = opened(open_page, alerts)
    section = page.get_by_role("region", name="What the built-in receiver got")
    expect(section).to_contain_text("Mismatches <i>fires</i>")
    expect(section).to_contain_text("cache.alert.firing")
    expect(section).to_contain_text("Signature verified")
    section.get_by_text("Body", exact=False).first.click()
    expect(section.get_by_role("region", name="Body 1")).to_contain_text('"value": 0.42')


def test_elsewhere_nobody_asks_for_what_a_built_in_receiver_got(open_page, alerts):
    page, _ = open_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{alerts.url}/alerts")
    expect(page.get_by_role("main")).to_have_attribute("aria-busy", "false")
    assert any(url.endswith("/api/alerts/rules") for url in asked)
    assert [] == [url for url in asked if url.endswith("/received")]
    expect(page.get_by_role("heading", name="What the built-in receiver got")).to_be_hidden()


def test_the_page_looks_anew_every_few_seconds_but_not_while_it_is_hidden(open_page, alerts):
    page, _ = open_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(alerts.url)))
    page.clock.install()
    page.goto(f"{alerts.url}/alerts")
    expect(page.get_by_role("main")).to_have_attribute("aria-busy", "false")
    with page.expect_response("**/api/alerts/silences"):
        page.clock.run_for(5_000)
    page.wait_for_load_state("networkidle")
    show(page, hidden=True)
    before = asked.count("/api/alerts/rules")
    page.clock.run_for(60_000)
    assert before == asked.count("/api/alerts/rules")
    with page.expect_response("**/api/alerts/silences"):
        show(page, hidden=False)


def show(page: Page, *, hidden: bool) -> None:
    page.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )
