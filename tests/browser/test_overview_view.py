"""The overview's view: in its address, kept up live, and when there is nothing or something fails."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.support.overview import chart, figure, grouped, number, query
from tests.support.pages import settled
from tests.support.rows import make_row

pytestmark = pytest.mark.browser

# --- the view in the address ----------------------------------------------------------------


def test_filters_go_into_the_address_and_back_takes_them_out(open_page, seeded):
    page, _ = open_page()
    page.goto(seeded.url)
    settled(page)
    everything = figure(page, "Generation turns").inner_text()
    page.get_by_role("button", name="Filters").click()
    page.get_by_role("group", name="Model").get_by_label("gpt-5.6-mini").check()
    expect(page).to_have_url(re.compile(r"\?model=gpt-5\.6-mini$"))
    narrowed = seeded.get("/api/summary", model="gpt-5.6-mini")["turns"]["generation"]
    expect(figure(page, "Generation turns")).to_have_text(re.compile(grouped(narrowed)))
    page.get_by_role("radio", name="Last 7 days").check()
    assert {"from": ["now-7d"], "model": ["gpt-5.6-mini"]} == query(page)
    page.go_back()
    assert {"model": ["gpt-5.6-mini"]} == query(page)
    expect(page.get_by_role("radio", name="Last 24 hours")).to_be_checked()
    page.go_back()
    assert {} == query(page)
    expect(figure(page, "Generation turns")).to_have_text(everything)
    page.go_forward()
    expect(page.get_by_label("Filters in force")).to_contain_text("Model is gpt-5.6-mini")


def test_chips_take_filters_back_one_by_one_or_all(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/?model=gpt-5.6&model=gpt-5.6-mini&mode=!ws_full&from=now-7d")
    chips = page.get_by_label("Filters in force")
    expect(chips.get_by_role("listitem")).to_have_text(
        ["Model is gpt-5.6", "Model is gpt-5.6-mini", "Mode is not ws_full"]
    )
    page.get_by_role("button", name="Remove filter: Model is gpt-5.6-mini").click()
    assert {"from": ["now-7d"], "model": ["gpt-5.6"], "mode": ["!ws_full"]} == query(page)
    page.get_by_role("button", name="Clear all").click()
    assert {"from": ["now-7d"]} == query(page)


def test_how_often_a_page_refreshes_is_remembered(open_page, seeded):
    page, _ = open_page()
    page.clock.install()
    page.goto(seeded.url)
    settled(page)
    page.get_by_label("Refresh by itself").select_option("30")
    page.reload()
    settled(page)
    expect(page.get_by_label("Refresh by itself")).to_have_value("30")
    with page.expect_response(lambda answer: "/api/summary" in answer.url):
        page.clock.run_for(30_000)
    page.get_by_label("Refresh by itself").select_option("0")
    page.reload()
    expect(page.get_by_label("Refresh by itself")).to_have_value("0")


def test_a_custom_range_is_read_in_the_zone_that_is_shown(open_page, seeded):
    page, _ = open_page()
    page.goto(seeded.url)
    settled(page)
    page.get_by_role("radio", name="Custom range").check()
    page.get_by_label("From").fill("2027-01-15T02:00")
    page.get_by_label("To", exact=True).fill("2027-01-15T01:00")
    page.get_by_role("button", name="Apply range").click()
    expect(page.get_by_text("The start must lie before the end.")).to_be_visible()
    page.get_by_label("To", exact=True).fill("2027-01-15T04:30")
    page.get_by_role("button", name="Apply range").click()
    assert {"from": ["2027-01-15T01:00:00.000Z"], "to": ["2027-01-15T03:30:00.000Z"]} == query(page)
    expect(page.get_by_text("15 Jan 2027, 02:00 to 15 Jan 2027, 04:30")).to_be_visible()


def test_a_range_is_moved_widened_and_typed(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/?from=now-6h&model=gpt-5.6")
    settled(page)
    later = page.get_by_role("button", name="Later")
    expect(later).to_be_disabled()
    page.get_by_role("button", name="Zoom out").click()
    assert {"from": ["now-12h"], "model": ["gpt-5.6"]} == query(page)
    page.get_by_role("radio", name="Custom range").check()
    page.get_by_label("Or a relative start").fill("6 hours")
    page.get_by_role("button", name="Apply range").click()
    expect(page.get_by_text("Write a relative start as now-6h")).to_be_visible()
    page.get_by_label("Or a relative start").fill("now-2h")
    page.get_by_role("button", name="Apply range").click()
    assert {"from": ["now-2h"], "model": ["gpt-5.6"]} == query(page)
    settled(page)
    said = seeded.get("/api/summary", **{"from": "now-4h", "to": "now-2h"})["range"]
    page.get_by_role("button", name="Earlier").click()
    asked = {"from": [said["from"]], "to": [said["to"]], "model": ["gpt-5.6"]}
    assert asked == query(page)
    expect(later).to_be_enabled()
    expect(page.get_by_role("button", name="Copy absolute link")).to_be_hidden()


def test_the_view_goes_along_to_the_other_page(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/?from=now-7d&model=gpt-5.6")
    settled(page)
    page.get_by_role("link", name="Requests", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Requests")
    assert {"from": ["now-7d"], "model": ["gpt-5.6"]} == query(page)


def test_a_filter_that_nobody_knows_is_told_not_ignored(open_page, seeded):
    page, watch = open_page()
    watch.allow("status 400", "400 (Bad Request)", "WebSocket connection")
    page.goto(f"{seeded.url}/?modle=gpt-5.6")
    expect(page.get_by_role("alert").filter(has_text="modle")).to_be_visible()
    expect(page.get_by_text("Not live")).to_be_visible()
    page.get_by_role("button", name="Clear all").click()
    settled(page)
    expect(page.get_by_role("alert").filter(has_text="modle")).to_be_hidden()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


# --- live -----------------------------------------------------------------------------------


def test_a_turn_that_ends_shows_without_a_reload(open_page, server):
    page, _ = open_page()
    page.goto(server.url)
    settled(page)
    before = number(figure(page, "Generation turns").inner_text())
    server.write([make_row(started_at=server.now - 2_000)])
    expect(figure(page, "Generation turns")).to_have_text(grouped(before + 1))


def test_a_row_that_comes_while_the_page_loads_does_not_make_it_start_again(open_page, server):
    page, _ = open_page()
    thrown_away: list[str] = []
    page.on("requestfailed", lambda request: thrown_away.append(request.url))
    rows = [make_row(started_at=server.now - 1_000)]

    def answer_late(route) -> None:
        while rows:
            server.write([rows.pop()])
        route.continue_()

    page.route("**/api/charts/ttft?*", answer_late)
    count = server.get("/api/summary")["turns"]["generation"]
    page.goto(server.url)
    settled(page)
    expect(figure(page, "Generation turns")).to_have_text(grouped(count + 1))
    assert [] == thrown_away


def test_a_paused_page_keeps_still_until_it_is_resumed(open_page, server):
    page, _ = open_page()
    page.goto(server.url)
    settled(page)
    before = number(figure(page, "Generation turns").inner_text())
    page.get_by_role("button", name="Pause live updates").click()
    expect(page.get_by_text("Paused", exact=True)).to_be_visible()
    server.write([make_row(started_at=server.now - 2_000)])
    expect(figure(page, "Generation turns")).to_have_text(grouped(before))
    page.get_by_role("button", name="Resume live updates").click()
    expect(figure(page, "Generation turns")).to_have_text(grouped(before + 1))


def test_many_turns_in_a_second_are_one_redraw(open_page, server):
    page, _ = open_page()
    page.goto(server.url)
    settled(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/summary" in request.url else None)  # fmt: skip
    before = number(figure(page, "Generation turns").inner_text())
    for back in range(40):
        server.write([make_row(started_at=server.now - 2_000 - back)])
    expect(figure(page, "Generation turns")).to_have_text(grouped(before + 40))
    assert len(asked) <= 4


# --- what may go wrong ----------------------------------------------------------------------


def test_a_fault_keeps_the_old_figures_and_offers_to_try_again(open_page, seeded):
    page, watch = open_page()
    watch.allow("status 503", "503 (Service Unavailable)")
    page.goto(seeded.url)
    settled(page)
    before = figure(page, "Generation turns").inner_text()
    body = '{"error": {"code": "ledger_unavailable", "message": "The ledger does not answer.", "hint": "Is the disk full?"}}'
    page.route("**/api/summary*", lambda route: route.fulfill(status=503, body=body))
    page.get_by_role("button", name="Refresh now").click()
    alert = page.get_by_role("alert").filter(has_text="The ledger does not answer.")
    expect(alert).to_contain_text("Is the disk full? (ledger_unavailable)")
    expect(figure(page, "Generation turns")).to_have_text(before)
    page.unroute("**/api/summary*")
    page.get_by_role("button", name="Try again").click()
    expect(alert).to_be_hidden()


def test_without_the_chart_library_the_tables_stand_in(open_page, seeded):
    page, watch = open_page()
    watch.allow("plotly.min.js", "404 (Not Found)")
    page.route("**/plotly.min.js", lambda route: route.fulfill(status=404))
    page.goto(seeded.url)
    expect(chart(page, "modes").get_by_role("table")).to_be_visible()
    expect(chart(page, "ttft").get_by_role("table")).to_be_visible()


# --- nothing to show ------------------------------------------------------------------------


def test_an_empty_ledger_says_how_to_fill_it_and_fills_itself(open_page, empty_server):
    page, _ = open_page()
    page.goto(empty_server.url)
    expect(page.get_by_role("heading", name="The ledger is empty")).to_be_visible()
    expect(page.get_by_text(f"OPENAI_BASE_URL={empty_server.url}/v1")).to_be_visible()
    expect(page.get_by_role("link", name="Point a client")).to_have_attribute("href", "/connect")
    expect(page.get_by_role("link", name="import logs")).to_have_attribute("href", "/import")
    empty_server.write([make_row(started_at=empty_server.now - 2_000)])
    expect(figure(page, "Generation turns")).to_have_text("1")
    expect(page.get_by_role("heading", name="The ledger is empty")).to_be_hidden()


def test_an_empty_range_offers_wider_ones(open_page, empty_server):
    empty_server.write([make_row(started_at=empty_server.now - 3 * 3_600_000)])
    page, _ = open_page()
    page.goto(f"{empty_server.url}/?from=now-15m")
    expect(page.get_by_role("heading", name="No turns in the last 15 minutes")).to_be_visible()
    page.get_by_role("button", name="Widen to 7 days").click()
    expect(figure(page, "Generation turns")).to_have_text("1")


def test_filters_that_match_nothing_can_be_cleared(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/?reason=chain_busy")
    expect(page.get_by_role("heading", name="No turn matches these filters")).to_be_visible()
    page.get_by_role("button", name="Clear all filters").click()
    settled(page)


def test_unknown_is_a_dash_that_says_why(open_page, empty_server):
    empty_server.write(
        [
            make_row(
                started_at=empty_server.now - 2_000,
                input_tokens=None,
                cached_tokens=None,
                output_tokens=None,
                usage_state="missing",
                ttft_ms=None,
            )
        ]
    )
    page, _ = open_page()
    page.goto(empty_server.url)
    for title in ("Cached share of input", "Non-cached input", "TTFT, median"):
        expect(figure(page, title)).to_contain_text("–")
    expect(page.get_by_title("no turn in this view has known usage")).to_have_count(2)
