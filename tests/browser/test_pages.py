"""Every page in both themes, narrow and wide: complete, quiet, accessible, no wider than the screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from app.ledger.rows import to_ms
from app.web.pages import PLAIN
from tests.support.browser import history
from tests.support.clock import START
from tests.support.live_server import LiveServer, serve
from tests.support.pages import (
    PANEL,
    fits,
    settled,
    violations,
    violations_in_both_themes,
    violations_in_the_dark,
)
from tests.support.rows import make_row

pytestmark = pytest.mark.browser

HELPER = {"session": "helper", "root_session": "incident-triage", "client": "openai-agents"}
PAGES = {path: name.capitalize() for path, name in PLAIN.items()} | {"/alerts": "Alerts"}
"""Every page with one address, and its heading."""
OF_ONE = {"/sessions/key-incident-triage": "Sessions", "/breaks/fp-9c41e07b": "Breaks"}
"""Those of one of many, and the page where they are found."""
FEW = {
    "/requests": "?from=now-10m",
    "/sessions": "?from=now-1h",
    "/sessions/key-incident-triage": "?from=now-1h",
}
"""What narrows a page down: axe looks at each of many rows, which differ in nothing that it knows."""
FOLDED = "#filter-switch[aria-expanded=false], tbody button[aria-expanded=false], .lane-table:not([open]) > summary"


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A morning of agents, one of them with a helper and a break that is new."""
    rows, now = history(to_ms(START), hours=8.0), to_ms(START)
    broken = next(row for row in rows if row.fingerprint and row.session == "incident-triage")
    rows.append(replace(broken, turn_id="turn-of-now", response_id=None, started_at=now - 120_000))
    rows += [make_row(started_at=now - at * 60_000, **HELPER) for at in (9, 8, 7, 3)]
    with serve(tmp_path_factory.mktemp("morning"), rows) as server:
        yield server


@pytest.mark.parametrize("path", [*PAGES, *OF_ONE])
def test_a_page_is_whole_quiet_accessible_and_no_wider_than_the_screen(
    open_page, seeded, axe, path
):
    """In one visit: narrow and light, then wide and dark."""
    page, _ = open_page(width=360, height=1600)  # a chart is drawn when the reader comes near
    page.goto(seeded.url + path + FEW.get(path, ""))
    settled(page)
    expect(page.get_by_text("rows written since the start, none waiting")).to_be_visible()
    expect(page.locator("#health")).to_be_hidden()

    for landmark in ("banner", "main"):
        expect(page.get_by_role(landmark)).to_have_count(1)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_count(1)
    if path in PAGES:
        expect(heading).to_have_text(PAGES[path])
    current = page.get_by_role("navigation", name="Pages").locator("[aria-current=page]")
    expect(current).to_have_text((PAGES | OF_ONE)[path])

    while left := page.locator(FOLDED).count():
        page.locator(FOLDED).first.click()
        expect(page.locator(FOLDED)).to_have_count(left - 1)
    if page.locator("#filter-switch").count():
        expect(page.get_by_role("group", name="Reason")).to_be_visible()
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
    assert fits(page, 360)
    found = violations(page, axe)
    page.set_viewport_size({"width": 800, "height": 900})
    assert fits(page, 800)
    page.set_viewport_size({"width": 1600, "height": 900})
    assert [] == found + violations_in_the_dark(page)
    assert fits(page, 1600)


@pytest.mark.parametrize(
    "path", ["/requests?reason=prefix_mismatch", "/sessions/key-incident-triage"]
)
def test_an_open_turn_meets_wcag_aa_in_both_themes(open_page, seeded, axe, path):
    turn = seeded.get("/api/requests", session="key-incident-triage", reason="prefix_mismatch")["rows"][0]["turn_id"]  # fmt: skip
    page, _ = open_page()
    page.goto(f"{seeded.url}{path}{'&' if '?' in path else '?'}turn={turn}")
    expect(page.get_by_role("dialog")).to_contain_text(turn)
    assert [] == violations_in_both_themes(page, axe, within=PANEL)


def test_the_first_tab_stop_skips_to_the_content(open_page, seeded):
    """One page stands for all: they share its head."""
    page, _ = open_page()
    page.goto(f"{seeded.url}/settings")
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="Skip to the content")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport()
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "main"


def test_no_link_of_the_pages_is_dead(open_page, seeded):
    page, _ = open_page()
    targets = set()
    for path in PAGES:
        page.goto(seeded.url + path)
        settled(page)
        targets |= set(
            page.eval_on_selector_all("a[href]", "links => links.map(link => link.href)")
        )
    own = {target.split("#")[0] for target in targets if target.startswith(seeded.url)}
    assert {f"{seeded.url}{path}" for path in (*PAGES, "/docs")} <= own
    # rows and buckets are many of one kind: one of each path and filter name is enough
    kinds = {(target.split("?")[0], "turn=" in target, "mode=" in target): target for target in own}
    for target in kinds.values():
        assert page.request.get(target).status == 200, target


@pytest.mark.parametrize(("path", "link"), [("/requests", "CSV"), ("/alerts", "rules")])
def test_without_script_the_page_says_so_and_offers_the_data(open_page, seeded, path, link):
    page, watch = open_page(java_script_enabled=False)
    watch.allow(".js csp")  # so Chromium calls modules that it will not run
    page.goto(seeded.url + path)
    expect(page.get_by_text("This page is filled by script, which is off.")).to_be_visible()
    expect(page.get_by_role("link", name=link, exact=True)).to_be_visible()


# --- theme and zone -------------------------------------------------------------------------


def test_the_theme_follows_the_system_until_it_is_chosen_and_is_then_remembered(open_page, seeded):
    page, _ = open_page(theme="dark")
    page.goto(seeded.url)
    becomes_dark(page)
    page.get_by_role("button", name="Theme: system. Switch to light").click()
    becomes_light(page)
    page.reload()
    becomes_light(page)
    page.get_by_role("button", name="Theme: light. Switch to dark").click()
    page.get_by_role("button", name="Theme: dark. Switch to system").click()
    page.emulate_media(color_scheme="light")
    becomes_light(page)


DARK = "Number(getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/)[0]) < 80"


def becomes_dark(page: Page) -> None:
    page.wait_for_function(f"() => {DARK}")


def becomes_light(page: Page) -> None:
    page.wait_for_function(f"() => !({DARK})")


def test_charts_take_the_colours_of_the_theme_in_force(open_page, seeded):
    page, _ = open_page(theme="light")
    page.goto(seeded.url)
    settled(page)
    tick = page.locator("figure[data-slug=modes] .xtick text").first
    before = tick.evaluate("text => getComputedStyle(text).fill")
    page.emulate_media(color_scheme="dark")
    expect(tick).not_to_have_css("fill", before)


def test_blocked_storage_costs_only_the_memory(open_page, seeded):
    page, _ = open_page()
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('blocked', 'SecurityError'); }})"
    )
    page.goto(f"{seeded.url}/requests")
    settled(page)
    page.get_by_role("button", name="Theme: system. Switch to light").click()
    page.get_by_role("radio", name="UTC").check()
    expect(page.get_by_text("in UTC.")).to_be_visible()


def test_times_are_shown_in_the_chosen_zone(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests")
    settled(page)
    expect(page.get_by_text("in Europe/Berlin.")).to_be_visible()
    first = page.locator("tbody time").first
    iso = first.get_attribute("datetime")
    assert first.inner_text()[:2] == f"{(int(iso[11:13]) + 1) % 24:02d}"  # winter: one hour ahead
    page.get_by_role("radio", name="UTC").check()
    expect(first).to_have_text(iso[11:19])
    page.reload()
    expect(first).to_have_text(iso[11:19])


def test_a_page_fetches_again_by_itself_but_not_behind_what_is_open(open_page, seeded):
    page, _ = open_page()
    page.clock.install()
    page.goto(f"{seeded.url}/sessions?from=now-1h")
    settled(page)
    page.get_by_role("button", name="Pause live updates").click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    every = page.get_by_label("Refresh by itself")
    every.select_option("Every 5 min")
    page.get_by_role("heading", level=1).click()
    with page.expect_request("**/api/sessions?*"):
        page.clock.fast_forward(301_000)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.clock.fast_forward(301_000)
    page.keyboard.press("Escape")
    with page.expect_request("**/api/sessions?*"):
        page.clock.fast_forward(301_000)
    every.select_option("By hand")
    page.clock.fast_forward(301_000)
    with page.expect_request("**/api/sessions?*"):
        page.get_by_role("button", name="Refresh now").click()
    assert 3 == len([url for url in asked if "/api/sessions?" in url])


# --- access ---------------------------------------------------------------------------------


def test_with_a_token_the_page_leads_through_the_log_in_form(open_page, servers, tmp_path, axe):
    protected = servers.enter_context(serve(tmp_path, token="open-sesame"))
    page, watch = open_page(width=360)
    watch.allow("status 401", "401 (Unauthorized)")
    page.goto(f"{protected.url}/requests")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not the token")
    assert fits(page, 360)
    assert [] == violations_in_both_themes(page, axe)
    page.get_by_label("Token").fill("open-sesame")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1, name="Requests")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
