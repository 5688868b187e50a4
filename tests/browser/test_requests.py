"""The ledger page: rows, why, export, live rows that do not move what is read, one row in full."""

from __future__ import annotations

import csv
import io
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
    return page.locator("tbody tr")


def turns(page: Page) -> list[str]:
    return page.eval_on_selector_all("tbody tr", "rows => rows.map(row => row.dataset.turn)")


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def load_all(page: Page, count: int) -> None:
    while rows(page).count() < count:
        had = rows(page).count()
        page.get_by_text("row shown").or_(page.get_by_text("rows shown")).wait_for()
        page.mouse.wheel(0, 100_000)
        expect(rows(page).nth(had)).to_be_attached()


def shown(sentence: str) -> str:
    """As the page writes numbers: digits grouped, and "%" held, by narrow spaces."""
    return re.sub(r"(?<=\d),(?=\d{3})", "\u202f", sentence).replace(" %", "\u202f%")


def exported(page: Page) -> list[dict[str, str]]:
    with page.expect_download() as download:
        page.get_by_role("link", name="Export").click()
    text = download.value.path().read_bytes().decode("utf-8")
    return list(csv.DictReader(io.StringIO(text, newline="")))


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


def test_the_export_holds_exactly_the_rows_of_the_screen(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests?model=gpt-5.6-mini&mode=!ws_full")
    settled(page)
    count = seeded.get("/api/requests", model="gpt-5.6-mini", mode="!ws_full")["count"]
    load_all(page, count)
    expect(page.get_by_role("link", name=re.compile("^Export .* rows \\(CSV\\)$"))).to_be_visible()
    assert count == int(re.sub(r"\D", "", page.get_by_role("link", name="Export").inner_text()))
    assert turns(page) == [row["turn_id"] for row in reversed(exported(page))]


def test_the_export_holds_the_rows_that_arrived_since_too(open_page, server):
    page, _ = open_page()
    page.goto(f"{server.url}/requests?from=now-1h")
    settled(page)
    server.advance(5)
    server.write([make_row(turn_id="turn_late", started_at=server.now - 1_000)])
    expect(rows(page).first).to_have_attribute("data-turn", "turn_late")
    # nobody has told the page of this one's existence yet: it began after the last that it heard
    load_all(page, int(re.sub(r"\D", "", page.get_by_role("link", name="Export").inner_text())))
    assert sorted(turns(page)) == sorted(row["turn_id"] for row in exported(page))


def test_further_pages_follow_as_one_scrolls(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests")
    settled(page)
    expect(rows(page)).to_have_count(100)
    page.mouse.wheel(0, 100_000)
    expect(rows(page)).to_have_count(200)
    said = seeded.get("/api/requests", limit=200)["rows"]
    assert [row["turn_id"] for row in said] == turns(page)


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
    page.goto(f"{server.url}/requests")
    settled(page)
    rows(page).nth(3).hover()
    known = turns(page)
    server.write([make_row(turn_id="turn_new", started_at=server.now - 500)])
    expect(page.get_by_role("button", name="1 new row")).to_be_visible()
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
    other, _ = open_page()
    other.goto(page.url)
    expect(other.get_by_role("dialog")).to_contain_text(row["response_id"])


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


def focused(page: Page) -> str:
    return page.evaluate("() => document.activeElement.closest('tr').dataset.turn")


def test_slash_searches_and_letters_are_text_while_typing(open_page, seeded):
    page, _ = open_page()
    page.goto(f"{seeded.url}/requests")
    settled(page)
    wanted = seeded.get("/api/requests", session="incident-triage")["rows"][0]
    page.keyboard.press("/")
    page.keyboard.type("jk")
    expect(page.get_by_role("searchbox")).to_have_value("jk")
    page.get_by_role("searchbox").fill(wanted["response_id"])
    page.keyboard.press("Enter")
    expect(rows(page)).to_have_count(1)
    assert [wanted["turn_id"]] == turns(page)
    assert [wanted["response_id"]] == query(page)["q"]


# --- every screen ---------------------------------------------------------------------------


@pytest.mark.parametrize("width", [860, 900, 1024, 1180, 1280, 1440, 1600, 2200])
def test_no_column_is_cut_off_with_or_without_an_open_row(open_page, seeded, width):
    page, _ = open_page(width=width)
    page.goto(f"{seeded.url}/requests?client=openai-agents&client=opencode")
    settled(page)
    assert fits(page)
    rows(page).first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert fits(page)


def fits(page: Page) -> bool:
    return page.evaluate(
        """() => {
          const table = document.querySelector("table").getBoundingClientRect();
          const card = document.querySelector("table").parentElement.getBoundingClientRect();
          return table.right <= card.right + 0.5;
        }"""
    )


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
    assert {"Items sent", "Input tokens", "Cached", "Non-cached", "TTFT", "Duration"} <= set(labels)


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
