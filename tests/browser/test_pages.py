"""The pages in both themes and several widths: complete, quiet, accessible, no wider than the screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.support.live_server import serve
from tests.support.pages import PANEL, settled, violations_in_both_themes

pytestmark = pytest.mark.browser

SCREENS = ((360, "light"), (1024, "dark"))
PAGES = {"/": "Overview", "/requests": "Requests"}
"""Those of the ledger, with its range, its filters and its live updates."""
EVERY = PAGES | {"/alerts": "Alerts", "/settings": "Settings"}


@pytest.mark.parametrize(("width", "theme"), SCREENS)
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_quiet_and_no_wider_than_the_screen(open_page, seeded, path, theme, width):
    page, _ = open_page(width=width, theme=theme)
    page.goto(seeded.url + path)
    settled(page)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


# half an hour of turns: axe looks at each of two hundred rows, which differ in nothing that it knows
@pytest.mark.parametrize(("path", "width"), [("/", 360), ("/requests?from=now-30m", 1600)])
def test_a_page_meets_wcag_aa_in_both_themes(open_page, seeded, axe, path, width):
    page, _ = open_page(width=width, reduced_motion="reduce")
    page.goto(seeded.url + path)
    settled(page)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Filters").click()
    expect(page.get_by_role("group", name="Reason")).to_be_visible()
    assert [] == violations_in_both_themes(page, axe)
    becomes_dark(page)


def test_an_open_row_meets_wcag_aa_in_both_themes(open_page, seeded, axe):
    page, _ = open_page(reduced_motion="reduce")
    page.goto(f"{seeded.url}/requests?reason=prefix_mismatch")
    settled(page)
    page.get_by_role("row").nth(1).click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert [] == violations_in_both_themes(page, axe, within=PANEL)


@pytest.mark.parametrize("path", EVERY)
def test_the_page_has_landmarks_one_heading_and_marks_itself_current(open_page, seeded, path):
    page, _ = open_page()
    page.goto(seeded.url + path)
    settled(page)
    expect(page.get_by_role("banner")).to_have_count(1)
    expect(page.get_by_role("main")).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_text(EVERY[path])
    current = page.get_by_role("navigation", name="Pages").get_by_role("link", name=EVERY[path])
    expect(current).to_have_attribute("aria-current", "page")


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
    for path in EVERY:
        page.goto(seeded.url + path)
        settled(page)
        targets |= set(
            page.eval_on_selector_all("a[href]", "links => links.map(link => link.href)")
        )
    own = {target.split("#")[0] for target in targets if target.startswith(seeded.url)}
    assert {f"{seeded.url}{path}" for path in (*EVERY, "/docs")} <= own
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


@pytest.mark.parametrize("path", PAGES)
def test_blocked_storage_costs_only_the_memory(open_page, seeded, path):
    page, _ = open_page()
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('blocked', 'SecurityError'); }})"
    )
    page.goto(seeded.url + path)
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


# --- access ---------------------------------------------------------------------------------


def test_with_a_token_the_page_leads_through_the_log_in_form(open_page, servers, tmp_path):
    protected = servers.enter_context(serve(tmp_path, token="open-sesame"))
    page, watch = open_page()
    watch.allow("status 401", "401 (Unauthorized)")
    page.goto(f"{protected.url}/requests")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not the token")
    page.get_by_label("Token").fill("open-sesame")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1, name="Requests")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
