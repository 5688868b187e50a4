"""The ledger page: rows, why, export, live rows that do not move what is read, one row in full."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from app.web.shown import WHY
from tests.support.pages import settled
from tests.support.rows import make_row

pytestmark = pytest.mark.browser


def rows(page: Page) -> Locator:
    return page.locator("tbody tr[data-turn]")


def turns(page: Page) -> list[str]:
    return page.eval_on_selector_all(
        "tbody tr[data-turn]", "rows => rows.map(row => row.dataset.turn)"
    )


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


READ_TO = """async (last) => {
  const seen = {};
  let most = 0;
  for (let looks = 0; looks < 2000 && !(last in seen); looks += 1) {
    const rows = document.querySelectorAll("tbody tr[data-turn]");
    most = Math.max(most, rows.length);
    for (const row of rows) seen[Number(row.getAttribute("aria-rowindex")) - 1] = row.dataset.turn;
    const blank = [...document.querySelectorAll("tr.gap")].some((gap) => {
      const {top, bottom} = gap.getBoundingClientRect();
      return bottom > 0 && top < innerHeight;
    });
    if (!blank) scrollBy(0, innerHeight);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
  return [seen, most];
}"""


def read_to(page: Page, last: int) -> list[str]:
    """The rows of the view down to the ``last``-th, as one sees them while scrolling."""
    seen, most = page.evaluate(READ_TO, last)
    assert most <= 300
    return [seen[str(place)] for place in range(1, last + 1)]


def shown(sentence: str) -> str:
    """As the page writes numbers: digits grouped, and "%" held, by narrow spaces."""
    return re.sub(r"(?<=\d),(?=\d{3})", "\u202f", sentence).replace(" %", "\u202f%")


def exported(page: Page) -> list[dict[str, str]]:
    with page.expect_download() as download:
        page.get_by_role("link", name="Export").click()
    text = download.value.path().read_bytes().decode("utf-8")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def promised(page: Page) -> int:
    """The rows that the button says that it exports."""
    return int(re.sub(r"\D", "", page.get_by_role("link", name="Export").inner_text()))


def test_a_row_says_its_mode_in_words_and_why(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests?reason=prefix_mismatch")
    settled(page)
    first = seeded.get("/api/requests", reason="prefix_mismatch")["rows"][0]
    expect(rows(page).first).to_contain_text("ws_full")
    expect(rows(page).first).to_contain_text(shown(first["why"]))
    expect(rows(page).first).to_contain_text("prefix_mismatch")
    expect(rows(page).first).to_contain_text(f"{first['items_sent']} / {first['items_total']}")


def test_unknown_tokens_are_dashes_never_zero(open_page, empty_server):
    empty_server.write(
        [
            make_row(
                started_at=empty_server.now - 2_000, input_tokens=None, cached_tokens=None,
                output_tokens=None, usage_state="missing",
            )
        ]
    )  # fmt: skip
    page, _ = open_page()
    page.goto(f"{empty_server.url}/requests")
    cached = page.locator("tbody td.cell-cached")
    expect(cached).to_contain_text("–")
    expect(cached).not_to_contain_text("0")
    expect(cached.get_by_title("not reported by the upstream")).to_be_visible()


def test_both_exports_hold_exactly_the_rows_of_the_screen(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests?client=opencode&mode=!ws_full")
    settled(page)
    count = seeded.get("/api/requests", client="opencode", mode="!ws_full")["count"]
    named = re.compile("^Export .* rows, filters applied \\(CSV\\)$")
    expect(page.get_by_role("link", name=named)).to_be_visible()
    assert count == promised(page)
    read = read_to(page, count)
    assert read == [row["turn_id"] for row in reversed(exported(page))]
    lines = page.request.get(page.get_by_role("link", name="JSONL").evaluate("link => link.href"))
    assert read == [json.loads(line)["turn_id"] for line in reversed(lines.text().splitlines())]


def test_the_export_holds_the_rows_that_arrived_since_too(open_page, server):
    page, _ = open_page()
    page.goto(f"{server.url}/requests?from=now-1h")
    settled(page)
    server.advance(5)
    server.write([make_row(turn_id="turn_late", started_at=server.now - 1_000)])
    expect(rows(page).first).to_have_attribute("data-turn", "turn_late")
    assert sorted(read_to(page, promised(page))) == sorted(row["turn_id"] for row in exported(page))


def test_a_long_ledger_leaves_few_rows_on_the_page_and_moves_none(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests")
    settled(page)
    top = rows(page).first.bounding_box()["y"]
    said = seeded.get("/api/requests", limit=400)["rows"]
    assert [row["turn_id"] for row in said] == read_to(page, 400)
    expect(page.locator("tr.gap").first).to_be_attached()
    page.mouse.wheel(0, -1_000_000)
    page.wait_for_function("() => scrollY === 0")
    expect(rows(page).first).to_have_attribute("data-turn", said[0]["turn_id"])
    assert top == rows(page).first.bounding_box()["y"]


# --- columns and views ----------------------------------------------------------------------


def heads(page: Page) -> list[str]:
    return page.locator("thead th").all_inner_texts()


def test_columns_are_chosen_by_keys_and_remembered_by_address_and_browser(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests?mode=ws_full")
    settled(page)
    usual = heads(page)
    assert "columns" not in query(page)
    page.get_by_role("button", name="Columns").press("Enter")
    panel = page.get_by_role("dialog", name="Columns")
    panel.get_by_role("checkbox", name="Output (tokens)").press("Space")
    expect(panel.get_by_role("checkbox", name="Output (tokens)")).to_be_focused()
    panel.get_by_role("button", name="Move Output (tokens) up").press("Enter")
    expect(panel.get_by_role("button", name="Move Output (tokens) up")).to_be_focused()
    expect(page.get_by_role("status")).to_have_text("Output (tokens) is column 11 of 12.")
    panel.get_by_role("checkbox", name="Model").press("Space")
    panel.get_by_role("radio", name="Compact").press("Space")
    page.keyboard.press("Escape")
    chosen = [*(title for title in usual[:-1] if title != "Model"), "Output (tokens)", usual[-1]]
    assert chosen == heads(page)
    first = seeded.get("/api/requests", mode="ws_full")["rows"][0]
    assert shown(f"{first['output_tokens']:,}") in rows(page).first.inner_text()
    link = page.url
    page.goto(f"{seeded.url}/requests?mode=ws_full")
    settled(page)
    assert (chosen, link) == (heads(page), page.url)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 1600
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("button", name="Default columns").click()
    page.keyboard.press("Escape")
    assert (usual, "columns" in query(page)) == (heads(page), False)
    other, _ = open_page()
    other.goto(f"{link}%2Cno_such_column")
    settled(other)
    assert chosen == heads(other)
    expect(other.get_by_role("alert")).to_contain_text("no column no_such_column")


def test_a_view_is_saved_opened_first_renamed_and_deleted(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests?from=now-7d&model=gpt-5.6&columns=session,reason,ttft_ms")
    settled(page)
    panel = page.get_by_role("dialog", name="Saved views")
    page.get_by_role("button", name="Saved views").click()
    panel.get_by_label("Save what you see as").fill("Slow ones")
    panel.get_by_role("button", name="Save", exact=True).click()
    panel.get_by_role("button", name="Open first: Slow ones").click()
    panel.get_by_role("button", name="Rename: Slow ones").click()
    panel.get_by_label("New name of Slow ones").fill("TTFT")
    page.keyboard.press("Enter")
    expect(panel.get_by_role("link", name="TTFT")).to_be_focused()
    page.goto(f"{seeded.url}/requests")
    settled(page)
    assert ["Time", "Session", "Why", "TTFT"] == heads(page)
    assert (["now-7d"], ["gpt-5.6"]) == (query(page)["from"], query(page)["model"])
    page.get_by_role("button", name="Saved views").click()
    panel.get_by_role("button", name="Delete: TTFT").click()
    expect(panel.get_by_text("None yet.")).to_be_visible()


def test_views_that_cannot_be_read_are_told_and_cost_nothing_else(open_page, seeded):
    page, _ = open_page()
    page.add_init_script("localStorage.setItem('warmline.views', '[{\"name\": 3}]')")
    page.goto(f"{seeded.url}/requests")
    settled(page)
    expect(page.get_by_role("alert")).to_contain_text("Your saved views cannot be read.")


# --- live -----------------------------------------------------------------------------------


def test_new_rows_wait_while_somebody_reads_further_down(open_page, server):
    page, _ = open_page()
    page.goto(f"{server.url}/requests")
    settled(page)
    page.mouse.wheel(0, 1_200)
    page.wait_for_function("() => scrollY > 1000")
    anchor = rows(page).nth(30)
    turn, top = anchor.get_attribute("data-turn"), anchor.bounding_box()["y"]
    server.write(
        [make_row(turn_id=f"turn_new_{at}", started_at=server.now - 2_000 + at) for at in range(14)]
    )
    waiting = page.get_by_role("button", name="14 new rows")
    expect(waiting).to_be_in_viewport()
    assert turn == rows(page).nth(30).get_attribute("data-turn")
    assert top == rows(page).nth(30).bounding_box()["y"]
    waiting.click()
    expect(rows(page).first).to_have_attribute("data-turn", "turn_new_13")
    expect(waiting).to_be_hidden()
    assert page.evaluate("() => scrollY") == 0


def test_new_rows_come_in_by_themselves_while_the_top_is_in_sight(open_page, server):
    page, _ = open_page()
    page.goto(f"{server.url}/requests")
    settled(page)
    server.write([make_row(turn_id="turn_new", started_at=server.now - 500)])
    expect(rows(page).first).to_have_attribute("data-turn", "turn_new")


def test_new_rows_wait_while_the_pointer_is_on_a_row(open_page, server):
    page, _ = open_page()
    page.clock.install()
    page.goto(f"{server.url}/requests")
    settled(page)
    rows(page).nth(3).hover()
    known = turns(page)
    server.write([make_row(turn_id="turn_new", started_at=server.now - 500)])
    expect(page.get_by_role("button", name="1 new row")).to_be_visible()
    assert known == turns(page)
    page.get_by_role("button", name="Pause live updates").press("Enter")
    page.get_by_label("Refresh by itself").select_option(value="5")
    server.write([make_row(turn_id="turn_newer", started_at=server.now - 400)])
    page.clock.fast_forward(6_000)
    expect(page.get_by_role("button", name="2 new rows")).to_be_visible()
    assert known == turns(page)


def test_a_new_row_that_the_filters_exclude_does_not_show(open_page, server):
    page, _ = open_page()
    page.goto(f"{server.url}/requests?model=gpt-5.6")
    settled(page)
    server.write(
        [
            make_row(turn_id="turn_other", started_at=server.now - 600, model="gpt-5.6-mini"),
            make_row(turn_id="turn_fits", started_at=server.now - 500, model="gpt-5.6"),
        ]
    )
    expect(rows(page).first).to_have_attribute("data-turn", "turn_fits")
    assert "turn_other" not in turns(page)


def test_a_row_that_ends_late_takes_its_place_by_time(open_page, server):
    page, _ = open_page()
    page.goto(f"{server.url}/requests")
    settled(page)
    third = rows(page).nth(2).locator("time").get_attribute("datetime")
    known = turns(page)
    at = server.get("/api/requests")["rows"][2]
    assert third == at["started_at"]
    between = _ms(third) + 1
    server.write([make_row(turn_id="turn_late", started_at=between)])
    expect(page.locator("tr[data-turn=turn_late]")).to_be_attached()
    assert [*known[:2], "turn_late", known[2]] == turns(page)[:4]


def _ms(iso: str) -> int:
    return round(datetime.fromisoformat(iso).timestamp() * 1000)


# --- one row in full ------------------------------------------------------------------------


def test_an_open_row_tells_the_usual_cause_and_what_helps(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests?reason=prefix_mismatch")
    settled(page)
    (turn, *_) = turns(page)
    rows(page).first.click()
    advice = page.get_by_role("dialog").locator(".advice")
    row = seeded.get(f"/api/requests/{turn}")["row"]
    assert [row["why_cause"], row["why_remedy"].replace("`", "")] == advice.locator(
        "dd"
    ).all_inner_texts()
    named = re.findall(r"`([^`]+)`", row["why_cause"] + row["why_remedy"])
    assert named == advice.locator("code").all_inner_texts()
    page.goto(f"{seeded.url}/requests?reason=ok")
    settled(page)
    rows(page).first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.locator(".advice")).to_have_count(0)


def test_an_open_row_tells_what_became_of_the_cache(open_page, server):
    told = {"cache_verdict": "idle", "cache_grade": "likely", "missed_tokens": 13_952}
    server.write([make_row(turn_id="turn_cold", **told)])
    page, _ = open_page()
    page.goto(f"{server.url}/requests?turn=turn_cold")
    row = server.get("/api/requests/turn_cold")["row"]
    said = page.get_by_role("dialog").locator(".of-cache dd")
    expect(said).to_have_text([shown(row["cache_why"]), row["cache_remedy"].replace("`", "")])


def test_an_open_row_shows_every_column_and_has_an_address(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests?reason=prefix_mismatch")
    settled(page)
    turn = turns(page)[1]
    rows(page).nth(1).click()
    detail = page.get_by_role("dialog")
    expect(detail).to_be_visible()
    assert [turn] == query(page)["turn"]
    text = detail.inner_text()
    row = seeded.get(f"/api/requests/{turn}")["row"]
    assert shown(row["why"]) in text
    columns = set(re.findall(r"[a-z_0-9]+", text))
    assert set() == set(row) - set(WHY) - columns
    other, _ = open_page(permissions=["clipboard-read", "clipboard-write"])
    other.goto(page.url)
    detail = other.get_by_role("dialog")
    expect(
        detail.get_by_role("button", name=f"Copy response_id {row['response_id']}")
    ).to_be_visible()
    detail.get_by_role("button", name="Copy as curl").click()
    expect(other.get_by_role("status")).to_have_text("Copy as curl: Copied")
    command = other.evaluate("() => navigator.clipboard.readText()")
    assert f"curl -s '{seeded.url}/api/requests/{turn}'" == command
    detail.get_by_role("button", name="Open the turn before").click()
    expect(other).not_to_have_url(page.url)
    assert query(other)["turn"] != [turn]


def test_back_closes_an_open_row(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests")
    settled(page)
    rows(page).first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.go_forward()
    expect(page.get_by_role("dialog")).to_be_visible()


def test_the_address_of_a_row_that_is_not_there_is_told(open_page, seeded):
    page, watch = open_page()
    watch.allow("status 404", "404 (Not Found)")
    page.goto(f"{seeded.url}/requests?turn=turn_nowhere")
    expect(page.get_by_role("alert").filter(has_text="not_found")).to_be_visible()
    expect(rows(page).first).to_be_visible()


def test_ids_copy_themselves(open_page, seeded):
    page, _ = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"{seeded.url}/requests")
    settled(page)
    rows(page).first.click()
    turn = turns(page)[0]
    page.get_by_role("button", name=f"Copy turn_id {turn}").click()
    expect(page.get_by_role("status")).to_have_text("Copied turn_id.")
    assert turn == page.evaluate("() => navigator.clipboard.readText()")


def test_a_value_of_an_open_row_becomes_a_filter(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests")
    settled(page)
    rows(page).first.click()
    page.get_by_role("dialog").get_by_role("link", name=re.compile("^No rows with mode ")).click()
    expect(page.get_by_label("Filters in force")).to_contain_text("Mode is not")
    assert "turn" not in query(page)


@pytest.mark.parametrize("model", ["!odd", "\\odd"])
def test_a_value_that_begins_like_an_exclusion_is_a_filter_like_any_other(open_page, server, model):
    page, _ = open_page()
    server.write([make_row(turn_id="turn_odd", started_at=server.now - 1_000, model=model)])
    page.goto(f"{server.url}/requests?turn=turn_odd")
    page.get_by_role("dialog").get_by_role("link", name=f"Only rows with model {model}").click()
    chips = page.get_by_label("Filters in force")
    expect(chips.get_by_role("listitem")).to_have_text([f"Model is {model}"])
    assert ["\\" + model] == query(page)["model"]
    expect(rows(page)).to_have_count(1)
    page.get_by_role("button", name="Filters").click()
    box = page.get_by_role("checkbox", name=model)
    expect(box).to_be_checked()
    box.uncheck()
    expect(chips).to_be_hidden()
    box.check()
    expect(chips.get_by_role("listitem")).to_have_text([f"Model is {model}"])
    assert ["\\" + model] == query(page)["model"]


# --- keyboard -------------------------------------------------------------------------------


def test_rows_are_walked_opened_and_closed_by_keys(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests")
    settled(page)
    known = turns(page)
    for key in ("j", "j", "j", "k"):
        page.keyboard.press(key)
    assert known[1] == focused(page)
    page.keyboard.press("Enter")
    detail = page.get_by_role("dialog")
    expect(detail).to_be_visible()
    expect(detail.get_by_role("heading", level=2)).to_be_focused()
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(f"turn={known[2]}"))
    page.keyboard.press("Escape")
    expect(detail).to_be_hidden()
    assert known[2] == focused(page)


def test_a_look_at_what_is_new_leaves_the_reader_where_he_is(open_page, server):
    page, _ = open_page()
    page.goto(f"{server.url}/requests")
    settled(page)
    page.get_by_role("button", name="Pause").click()
    page.mouse.wheel(0, 1_200)
    page.wait_for_function("() => scrollY > 1000")
    anchor = rows(page).nth(30)
    turn, top = anchor.get_attribute("data-turn"), anchor.bounding_box()["y"]
    server.write([make_row(turn_id="turn_new", started_at=server.now - 1_000)])
    page.keyboard.press("r")
    waiting = page.get_by_role("button", name="1 new row")
    expect(waiting).to_be_in_viewport()
    assert turn == rows(page).nth(30).get_attribute("data-turn")
    assert top == rows(page).nth(30).bounding_box()["y"]
    waiting.click()
    expect(rows(page).first).to_have_attribute("data-turn", "turn_new")


def focused(page: Page) -> str:
    return page.evaluate("() => document.activeElement.closest('tr').dataset.turn")


def test_keys_search_choose_the_range_and_tell_themselves(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests")
    settled(page)
    recent = seeded.get("/api/requests", **{"from": "now-6h"})["rows"]
    wanted = next(row for row in recent if row["response_id"])
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Next row, row before")
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.keyboard.press("t")
    expect(page.get_by_role("radio", name="Last 24 hours")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile("from=now-6h"))
    page.keyboard.press("/")
    page.keyboard.type("jk?t")
    expect(page.get_by_role("searchbox")).to_have_value("jk?t")
    page.get_by_role("searchbox").fill(wanted["response_id"])
    page.keyboard.press("Enter")
    expect(rows(page)).to_have_count(1)
    assert [wanted["turn_id"]] == turns(page)
    assert [wanted["response_id"]] == query(page)["q"]


# --- every screen ---------------------------------------------------------------------------


def test_no_cell_is_cut_off_with_or_without_an_open_row(open_page, seeded):
    page, _ = open_page()
    for opened in (False, True):
        page.goto(f"{seeded.url}/requests?client=openai-agents&client=opencode&status=!refused")
        settled(page)
        if opened:
            rows(page).first.click()
            expect(page.get_by_role("dialog")).to_be_visible()
        for width in (930, 1024, 1180, 1280, 1440, 1600, 2200):
            page.set_viewport_size({"width": width, "height": 900})
            assert (width, []) == (width, cut_off(page))


CUT_OFF = """() => [...document.querySelectorAll("thead th, tbody td.number, tbody td.cell-mode .tag, tbody td.cell-status .tag")]
  .filter((cell) => cell.checkVisibility() && cell.scrollWidth > cell.clientWidth + 1)
  .map((cell) => `${cell.className}: ${cell.innerText}`)"""


def cut_off(page: Page) -> list[str]:
    return page.evaluate(CUT_OFF)


# --- small screens --------------------------------------------------------------------------


def test_below_640_pixels_each_row_is_a_card_with_named_values(open_page, seeded):
    page, _ = open_page(width=360, height=800)
    page.goto(f"{seeded.url}/requests")
    settled(page)
    card = rows(page).first.bounding_box()
    assert card["height"] > 150
    labels = page.eval_on_selector_all(
        "tbody tr:first-child [data-label]",
        "cells => cells.filter(cell => cell.checkVisibility()).map(cell => cell.dataset.label)",
    )
    assert {"Items sent", "Input", "Cached", "Non-cached", "TTFT", "Duration"} <= set(labels)


def test_on_a_small_screen_the_open_row_covers_the_page_and_closes(open_page, seeded):
    page, _ = open_page(width=360, height=800)
    page.goto(f"{seeded.url}/requests")
    settled(page)
    rows(page).first.click()
    detail = page.get_by_role("dialog")
    expect(detail).to_be_visible()
    assert detail.bounding_box()["width"] == 360
    page.keyboard.press("Escape")
    expect(detail).to_be_hidden()
