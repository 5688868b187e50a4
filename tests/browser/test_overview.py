"""The overview: figures that equal the API's, the view in the address, drill-down, live, empty."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.pages import settled
from tests.support.rows import make_row

pytestmark = pytest.mark.browser

SLUGS = (
    "modes",
    "incremental-rate",
    "sessions-by-residency",
    "mismatch-rate",
    "tokens",
    "ttft",
    "ttft-over-time",
)


def figure(page: Page, title: str) -> Locator:
    return (
        page.locator(".figure").filter(has=page.get_by_text(title, exact=True)).locator("dd").first
    )


def chart(page: Page, slug: str) -> Locator:
    return page.locator(f"figure[data-slug={slug}]")


def number(text: str) -> int:
    return int(re.sub(r"\D", "", text))


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_the_key_figures_are_those_of_the_api(open_page, seeded):
    page, _ = open_page()
    page.goto(seeded.url)
    settled(page)
    said = seeded.get("/api/summary")
    continuation = said["continuation"]
    assert said["turns"]["generation"] == number(figure(page, "Generation turns").inner_text())
    expect(figure(page, "Incremental rate")).to_contain_text(
        f"{continuation['incremental_rate'] * 100:.1f}"
    )
    expect(figure(page, "Mismatch rate")).to_contain_text(
        f"{continuation['mismatch_rate'] * 100:.1f}"
    )
    expect(figure(page, "Break rate")).to_contain_text(f"{continuation['break_rate'] * 100:.1f}")
    expect(figure(page, "Cached share of input")).to_contain_text(
        f"{said['tokens']['cached_ratio'] * 100:.1f}"
    )
    expect(figure(page, "List-price estimate")).to_contain_text(
        re.compile(r"\$|no turn in this view has a price")
    )


def test_continuation_and_cache_are_shown_as_two_facts(open_page, seeded):
    page, _ = open_page()
    page.goto(seeded.url)
    settled(page)
    for wire in seeded.get("/api/summary")["cache_by_wire"]:
        name = {"incremental": "Continued", "full": "Sent in full"}[wire["wire"]]
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name))
        shown = [number(cell.split("\n")[0]) for cell in row.get_by_role("cell").all_inner_texts()]
        assert [wire[key] for key in ("hit", "partial", "miss", "unknown")] == shown


def test_figures_stand_before_the_chart_library_is_fetched(open_page, seeded):
    page, _ = open_page()
    page.route("**/plotly.min.js", lambda route: _held(page, route))
    page.goto(seeded.url)
    settled(page)


def _held(page: Page, route) -> None:
    # the library is asked for only when the figures are on the page
    assert "%" in page.locator("#figure-incremental").inner_text()
    route.continue_()


def test_each_chart_has_a_sentence_and_a_table_with_its_data(open_page, seeded):
    page, _ = open_page()
    page.goto(seeded.url)
    settled(page)
    for slug in SLUGS:
        said = seeded.get(f"/api/charts/{slug}")
        box = chart(page, slug)
        expect(box.get_by_role("heading")).to_have_text(said["title"])
        sentence = re.sub(r"(?<=\d),(?=\d{3})", "\u202f", said["summary"]).replace(" %", "\u202f%")
        expect(box.locator("[data-summary]")).to_have_text(sentence)
        box.get_by_text("Show data").click()
        expect(box.get_by_role("row")).to_have_count(len(said["table"]["rows"]) + 1)
        expect(box.get_by_role("columnheader")).to_have_text(
            [column["title"] for column in said["table"]["columns"]]
        )


def test_charts_are_drawn_when_the_reader_comes_near(open_page, seeded):
    page, _ = open_page()
    page.goto(seeded.url)
    settled(page)
    expect(chart(page, SLUGS[-1]).locator(".main-svg")).to_have_count(0)
    chart(page, SLUGS[-1]).scroll_into_view_if_needed()
    expect(chart(page, SLUGS[-1]).locator(".main-svg").first).to_be_visible()


def test_no_chart_offers_to_upload_itself(open_page, seeded):
    page, _ = open_page()
    page.goto(seeded.url)
    settled(page)
    titles = page.eval_on_selector_all(
        ".modebar-btn", "buttons => buttons.map(button => button.dataset.title)"
    )
    assert "Download plot as a PNG" in titles
    assert [] == [
        title for title in titles if re.search("cloud|share|studio", title, re.IGNORECASE)
    ]


def test_a_bucket_without_turns_is_a_gap_in_the_line(open_page, empty_server):
    now = empty_server.now
    hour = 3_600_000
    empty_server.write(
        [make_row(started_at=now - back * hour) for back in (20, 19.5, 19, 18.5, 3, 2.5, 2)]
    )
    page, _ = open_page()
    page.goto(empty_server.url)
    settled(page)
    lines = chart(page, "incremental-rate").locator(".scatterlayer path.js-line")
    paths = lines.evaluate_all("lines => lines.map(line => line.getAttribute('d'))")
    assert 7 == len(paths), "a line bridges buckets without a turn"


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


def grouped(value: int) -> str:
    return f"{value:,}".replace(",", "\u202f")


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


def test_the_view_goes_along_to_the_other_page(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/?from=now-7d&model=gpt-5.6")
    settled(page)
    page.get_by_role("link", name="Requests").click()
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


# --- from a chart to its rows ----------------------------------------------------------------


def test_a_click_on_a_bar_leads_to_exactly_its_rows(open_page, seeded):
    page, _ = open_page()
    page.goto(seeded.url)
    settled(page)
    said = seeded.get("/api/charts/modes")
    columns = [column["key"] for column in said["table"]["columns"]]
    of_mode = columns.index("ws_incremental")
    at, bucket = max(enumerate(said["table"]["rows"]), key=lambda row: row[1][of_mode] or 0)
    bar = chart(page, "modes").locator(".barlayer .trace").first.locator(".point").nth(at)
    box = bar.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.get_by_role("heading", level=1)).to_have_text("Requests")
    asked = query(page)
    assert [bucket[0]] == asked["from"]
    assert [bucket[1]] == asked["to"]
    assert ["ws_incremental"] == asked["mode"]
    expect(page.locator("tbody tr")).to_have_count(bucket[of_mode])


def test_a_row_of_the_data_table_leads_to_the_rows_of_its_bucket(open_page, seeded):
    page, _ = open_page()
    page.goto(seeded.url)
    settled(page)
    said = seeded.get("/api/charts/incremental-rate")
    known = [column["key"] for column in said["table"]["columns"]].index("known")
    at = next(at for at, row in enumerate(said["table"]["rows"]) if row[known])
    box = chart(page, "incremental-rate")
    box.get_by_text("Show data").click()
    box.get_by_role("row").nth(at + 1).get_by_role("link").click()
    expect(page.locator("tbody tr")).to_have_count(said["table"]["rows"][at][known])


def test_a_zoom_can_become_the_range_and_survives_new_data(open_page, server):
    page, _ = open_page()
    page.goto(server.url)
    settled(page)
    box = chart(page, "modes").locator(".nsewdrag").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 200, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, middle, steps=8)
    page.mouse.up()
    use = chart(page, "modes").get_by_role("button", name="Use this range")
    expect(use).to_be_visible()
    ticks = chart(page, "modes").locator(".xtick").all_inner_texts()
    before = figure(page, "Generation turns").inner_text()
    server.write([make_row(started_at=server.now - 1_000)])
    expect(figure(page, "Generation turns")).not_to_have_text(before)
    settled(page)
    expect(use).to_be_visible()
    assert ticks[1] in chart(page, "modes").locator(".xtick").all_inner_texts()
    use.click()
    expect(page).to_have_url(re.compile("from=2027-01-.*to=2027-01-"))


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
