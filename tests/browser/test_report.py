"""The page of a report as a person opens it: from a file, with nobody to ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from app.ledger.database import prepare
from app.ledger.filters import Filter
from app.ledger.rows import TurnRow, to_ms
from app.ledger.writer import write_rows
from app.reporting.gather import gather
from app.reporting.page import page as made
from tests.support.browser import history
from tests.support.clock import START
from tests.support.pages import violations_in_both_themes
from tests.support.rows import make_row

pytestmark = pytest.mark.browser
END = to_ms(START)
CUT_OFF = """() => [...document.querySelectorAll(".listed :is(th, td), .figure dd")]
  .filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent)"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[TurnRow]], str]:
    """``written(rows)`` is the address of their page."""

    def write(rows: Sequence[TurnRow]) -> str:
        folder = tmp_path_factory.mktemp("report")
        engine = prepare(str(folder / "ledger.sqlite3"))
        for number, row in enumerate(rows):
            lost = number % 9 == 0
            row.cache_verdict, row.cache_grade = "idle" if lost else "hit", "likely"
            row.missed_tokens = 5_000 if lost else 0
        write_rows(engine, rows)
        view = Filter(start=0, end=END, tz="Asia/Tokyo")
        path = Path(folder / "report.html")
        path.write_text(made(engine, view, gather(engine, view), now=END), "utf-8")
        engine.dispose()
        return path.as_uri()

    return write


@pytest.fixture(scope="module")
def address(written) -> str:
    return written(history(END, hours=6))


def opened(page: Page, address: str) -> list[str]:
    """Open it, and return what it asked for besides itself."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    expect(page.locator("figure[data-slug=ttft-over-time] .main-svg").first).to_be_visible()
    return [url for url in asked if url != address and not url.startswith("data:")]


@pytest.mark.parametrize(("width", "theme"), [(360, "dark"), (1600, "light")])
def test_the_page_draws_all_its_charts_and_asks_nobody(open_page, address, width, theme):
    page, _ = open_page(width=width, theme=theme)
    assert [] == opened(page, address)
    assert 8 == page.locator("figure[data-slug]:has(.main-svg)").count()
    assert width == page.evaluate("document.documentElement.scrollWidth")
    assert [] == page.evaluate(CUT_OFF)
    tick = page.locator("figure[data-slug=modes] .xtick text").first
    before = tick.evaluate("node => getComputedStyle(node).fill")
    page.emulate_media(color_scheme="light" if theme == "dark" else "dark")
    expect(tick).not_to_have_css("fill", before)


def test_without_script_all_but_the_drawings_is_there(open_page, address):
    page, _ = open_page(java_script_enabled=False)
    page.goto(address)
    expect(page.get_by_role("heading", name="Why the cache was missed")).to_be_visible()
    expect(page.locator(".plot").first).to_be_hidden()
    figure = page.locator("figure[data-slug=tokens]")
    expect(figure.get_by_role("table")).to_be_hidden()
    figure.get_by_text("Show data").click()
    # 2027-01-15 02:00 UTC and on, in the zone of the report
    expect(figure.get_by_role("rowheader").first).to_contain_text("15 Jan 2027 11:")


def test_the_page_is_accessible_in_both_themes(open_page, written, axe):
    page, _ = open_page(reduced_motion="reduce", bypass_csp=True)
    opened(page, written([make_row(started_at=END - 60_000, session=name) for name in "ab"]))
    assert [] == violations_in_both_themes(page, axe)
