"""The pages on breaks: what broke, since when, what it costs, and what an operator says of it."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from app.demo.history import TRIED
from tests.support.live_server import serve
from tests.support.pages import fits, settled, violations_in_both_themes
from tests.support.rows import make_row
from tests.support.sampled import fill

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """The demo's history; what a test decides, it takes back."""
    with serve(tmp_path_factory.mktemp("sampled")) as server:
        fill(server.site)
        yield server


def groups(page: Page) -> Locator:
    return page.locator("[data-group]").filter(has=page.get_by_role("link"))


def number(text: str) -> int:
    return int(re.sub(r"\D", "", text))


def open_breaks(page: Page, server, query: str = "") -> None:
    page.goto(f"{server.url}/breaks{query}")
    settled(page)


def narrow(page: Page) -> None:
    """It is no wider than the narrowest screen either."""
    page.set_viewport_size({"width": 360, "height": 800})
    assert fits(page, 360)
    page.set_viewport_size({"width": 1600, "height": 900})


def test_what_was_seen_days_ago_is_told_in_days(open_page, empty_server):
    lost = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": "f1"}
    days = [empty_server.now - hours * 3_600_000 for hours in (47, 5 * 24)]
    empty_server.write([make_row(started_at=at, **lost) for at in days])
    page, _ = open_page()
    open_breaks(page, empty_server, "?from=now-7d")
    expect(groups(page)).to_contain_text("47 h ago")
    expect(groups(page)).to_contain_text("first 5 d ago")


def test_from_a_cause_to_its_rows_and_to_what_was_new(open_page, sampled, axe):
    page, _ = open_page()
    open_breaks(page, sampled)
    told = sampled.get("/api/breaks")
    expect(groups(page)).to_have_count(len(told["groups"]))
    first = groups(page).first
    expect(first).to_contain_text("has lost what it had at /output/_meta")
    expect(first).to_contain_text("What helps: Keep it out of what the model reads")
    expect(page.locator("#costs")).to_contain_text("Freezing _meta would have kept")
    expect(page.locator("#witnesses")).to_contain_text("changed it")
    expect(page.locator("#resets")).to_contain_text("list prices (estimate)")
    expect(page.locator("#drift")).to_contain_text("The connection changed")
    assert [] == violations_in_both_themes(page, axe)
    narrow(page)
    # every group's number leads to exactly its rows, as filters
    for place, group in enumerate(told["groups"]):
        link = groups(page).nth(place).get_by_role("link", name="breaks: show the rows")
        query = parse_qs(urlsplit(link.get_attribute("href")).query)
        assert group["turns"] == sampled.get("/api/requests", **query)["count"]
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url("**/breaks/*")
    settled(page)
    expect(page.locator("#onset")).to_contain_text(f"the client version {TRIED}")
    expect(page.get_by_role("table", name="What was new")).to_contain_text(TRIED)
    page.get_by_text("Show data").click()
    cells = page.locator("#chart-table td:last-child").all_inner_texts()
    assert told["groups"][0]["turns"] == sum(number(cell) for cell in cells)
    assert [] == violations_in_both_themes(page, axe)
    narrow(page)
    page.go_back()
    settled(page)
    expect(groups(page)).to_have_count(len(told["groups"]))


def test_what_is_decided_moves_a_cause_and_another_word_is_not_overruled(open_page, sampled):
    page, watch = open_page()
    open_breaks(page, sampled, "?sort=turns")
    group = sampled.get("/api/breaks", sort="turns")["groups"][0]["id"]
    mine = page.locator(f"[data-group='{group}']")
    mine.get_by_role("button", name="Resolve").click()
    expect(mine).to_have_count(0)
    page.get_by_role("radio", name=re.compile("^Resolved")).check(force=True)
    expect(mine).to_contain_text("Resolved")
    assert {"sort": ["turns"], "state": ["resolved"]} == parse_qs(urlsplit(page.url).query)
    # somebody else opens it meanwhile
    sampled.site.clock.advance(1)
    sampled.site.ask("PATCH", f"/api/breaks/{group}", {"state": "open"})
    watch.allow("409")
    mine.get_by_role("button", name="Reopen").click()
    expect(page.locator("#refusal")).to_contain_text("Somebody else has decided")
    expect(mine).to_have_count(0)
    page.go_back()
    expect(mine).to_contain_text("New")


def test_no_breaks_are_good_news_and_new_ones_come_by_themselves(open_page, empty_server):
    empty_server.write([make_row(started_at=empty_server.now - 60_000)])
    page, _ = open_page()
    open_breaks(page, empty_server)
    expect(page.locator("#list")).to_contain_text("No breaks in the last 24 hours.")
    empty_server.write(
        [
            make_row(
                started_at=empty_server.now - 1_000, mode="ws_full", reason="connection_lost",
                fallback_reason="closed", missed_tokens=None,
            )
        ]
    )  # fmt: skip
    expect(groups(page)).to_have_count(1)
    expect(groups(page).locator("[data-label='Tokens lost']")).to_contain_text("–")
    expect(groups(page).locator("[data-label='List-price estimate']")).to_contain_text("–")


def test_what_is_told_of_the_newest_turns_alone_says_so_and_leads_to_no_others(
    open_page, sampled, monkeypatch
):
    monkeypatch.setattr("app.ledger.newest.MOST", 200)
    page, _ = open_page()
    open_breaks(page, sampled, "?from=now-7d")
    for part in ("#costs", "#resets", "#witnesses", "#drift"):
        expect(page.locator(part)).to_contain_text("Of the newest 200 turns of this range: since")
    since = sampled.get("/api/causes", **{"from": "now-7d"})["range"]["from"]
    rows = page.get_by_role("link", name=re.compile("lost tokens: show the rows"))
    assert [since] == parse_qs(urlsplit(rows.get_attribute("href")).query)["from"]
