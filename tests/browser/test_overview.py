"""The overview: figures that equal the API's, charts, and what lies behind them."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.support.live_server import serve
from tests.support.overview import chart, figure, grouped, number, query
from tests.support.pages import settled
from tests.support.rows import START_MS, make_row

pytestmark = pytest.mark.browser

SLUGS = (
    "modes",
    "incremental-rate",
    "sessions-by-residency",
    "mismatch-rate",
    "tokens",
    "ttft",
    "ttft-by-cached-share",
    "ttft-over-time",
)


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
        name = {"incremental": "Continued", "full": "Sent in full"}.get(wire["wire"])
        if name is None:  # every mode is known here
            expect(page.get_by_role("rowheader", name="Not recorded")).to_have_count(0)
            continue
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


def test_trends_funnel_and_causes_are_those_of_the_api_and_lead_to_their_rows(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/?from=now-6h")
    settled(page)
    said = seeded.get("/api/summary", **{"from": "now-6h"})
    trend = said["previous"]["trends"]["incremental_rate"]
    shown = page.locator("#trend-incremental")
    valued = {None: "about the same", True: "better", False: "worse"}[trend["better"]]
    expect(shown).to_contain_text(valued)
    expect(shown.get_by_title("in the period before")).to_have_attribute(
        "data-direction", trend["direction"]
    )
    dash = page.locator("#trend-cost").get_by_title("No trend: one of the two periods has fewer")
    expect(dash).to_contain_text("–")
    numbers = [part["turns"] for step in said["funnel"] for part in (step, *step["lost"])]
    assert numbers == [behind(seeded, link) for link in links(page, "#funnel")]
    words = page.locator("#funnel .funnel-count a").all_text_contents()
    assert [grouped(step["turns"]) for step in said["funnel"]] == [
        word.split()[0] for word in words
    ]
    causes = seeded.get("/api/breaks", **{"from": "now-6h", "limit": "5"})["groups"]
    expect(page.locator("#causes li")).to_have_count(len(causes))
    sentences, rows = links(page, "#causes .cause"), links(page, "#causes .cause-facts")
    assert [f"/breaks/{one['id']}" for one in causes] == [
        unquote(urlsplit(a).path) for a in sentences
    ]
    assert [one["turns"] for one in causes] == [behind(seeded, link) for link in rows]
    page.locator("#funnel [data-lost=prefix_mismatch]").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Requests")
    assert ["prefix_mismatch"] == query(page)["reason"]


def test_the_overview_says_in_short_what_grew_and_since_when_what_took_most_of_it(
    open_page, servers, tmp_path
):
    minute, rows = 60_000, []
    for at in range(240):  # two a minute, in the hour before and in the one of the view
        new = at >= 180
        lost = {"mode": "ws_full", "reason": "prefix_mismatch", "fingerprint": "f1"}
        lost |= {"cached_tokens": 0, "missed_tokens": 900, "cache_verdict": "prefix_changed"}
        lost |= {"evidence": '{"class": "replaced", "index": 1, "kind_before": "reasoning"}'}
        rows.append(
            make_row(
                started_at=START_MS - 120 * minute + at * minute // 2,
                session=f"s{at % 8}",
                client_version="0.141" if new else "0.140",
                **(lost if new else {}),
            )
        )
    server = servers.enter_context(serve(tmp_path, rows))
    page, _ = open_page()
    page.goto(f"{server.url}/?from=now-1h&tz=UTC")
    told = page.get_by_role("region", name="In short").get_by_role("listitem")
    expect(told).to_have_count(3)
    expect(told.nth(0)).to_have_text(
        "66.0 k input tokens were read anew, not from the cache: 5.5 × as many as in the period "
        "before, with 1.0 × the turns, 1.0 × the input of a turn and 5.5 × the share that was not "
        "cached."
    )
    expect(told.nth(0).locator("strong")).to_have_text("5.5 × the share that was not cached")
    expect(told.nth(1)).to_contain_text(
        "60 breaks missed 54.0 k tokens that the cache had held, 81.8 % of these"
    )
    expect(told.nth(2)).to_contain_text("100 % of that is one cause: Sent in full")
    expect(told.nth(2)).to_contain_text("It came up 15 Jan 2027, 07:30, in 8 sessions.")
    expect(told.nth(2)).to_contain_text("have the client version 0.141; before, none had it.")
    expect(told.nth(2)).to_contain_text(re.compile("Usual cause: .+[.] What helps: .+[.]"))
    told.nth(2).get_by_role("link").click()
    expect(page).to_have_url(re.compile("/breaks/f1[?]from=now-1h"))


def links(page: Page, within: str) -> list[str]:
    every = "(parts) => parts.flatMap((part) => part.href ?? [...part.querySelectorAll('a')].map((a) => a.href))"
    return page.locator(within).evaluate_all(every)


def behind(server, link: str) -> int:
    """How many rows a link leads to."""
    return server.get("/api/requests", **parse_qs(urlsplit(link).query), limit=1)["count"]
