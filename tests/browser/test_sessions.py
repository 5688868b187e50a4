"""Sessions as strips, and one session in lanes: the path to a turn and how it differs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from app.gateway.resets import Reset
from app.ledger.rows import TurnRow, to_ms
from tests.support.browser import history
from tests.support.clock import START
from tests.support.live_server import LiveServer, serve
from tests.support.pages import settled
from tests.support.rows import make_row

pytestmark = pytest.mark.browser

MINUTE = 60_000
END = to_ms(START)


def turn(number: int, minute: float, **more: object) -> TurnRow:
    """One of a conversation of two chains; ``number`` counts its turns."""
    known = {
        "turn_id": f"turn-of-main-{number}",
        "started_at": END - round(minute * MINUTE),
        "session": "main-thread",
        "root_session": "main-thread",
        "client": "codex_cli_rs",
        "chain": "chain-1",
        "connection": "c1",
        "epoch": 1,
        "response_id": f"resp_main_{number}",
    }
    return make_row(**(known | more))


def conversation() -> list[TurnRow]:
    parted = {
        "mode": "ws_full",
        "reason": "prefix_mismatch",
        "chain": "chain-2",
        "connection": "c2",
    }
    return [
        turn(1, 200, mode="ws_full", reason="no_baseline", eligible=False),
        *(turn(number, 200 - number) for number in range(2, 40)),
        turn(40, 150, **parted, cached_tokens=0, missed_tokens=800, model="gpt-5.6-other"),
        *(turn(number, 190 - number, chain="chain-2", connection="c2") for number in range(41, 60)),
        turn(60, 20, chain="chain-2", previous_response_id="resp_main_59", epoch=2),
        *(
            make_row(
                started_at=END - (60 + number) * MINUTE,
                session=f"helper-{number % 2}",
                root_session="main-thread",
                client="codex_cli_rs",
            )
            for number in range(6)
        ),
    ]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    rows = [*history(END, hours=3.0), *conversation()]
    with serve(tmp_path_factory.mktemp("agents"), rows) as server:
        yield server


def opened(page: Page, server: LiveServer, **query: str) -> None:
    more = "&".join(f"{name}={value}" for name, value in query.items())
    page.goto(f"{server.url}/sessions/key-main-thread?{more}")
    settled(page)


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def test_sessions_are_strips_with_sub_agents_below_and_lead_to_their_turns(open_page, agents):
    page, _ = open_page()
    page.goto(f"{agents.url}/sessions")
    settled(page)
    told = agents.get("/api/sessions")
    expect(page.get_by_text(f"{told['count']} of {told['count']} sessions shown")).to_be_visible()
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="main-thread"))
    expect(row.get_by_role("img")).to_have_accessible_name(
        re.compile("^60 turns: 58 WebSocket, incremental; 2 WebSocket, full; 1 break")
    )
    page.get_by_role("button", name="2 sub-agents").click()
    expect(page.get_by_role("link", name=re.compile("helper-"))).to_have_count(2)

    page.get_by_label("Order").select_option("missed")
    expect(page.locator("tbody tr").first.get_by_role("link")).to_have_text("main-thread")
    assert ["missed"] == query(page)["sort"]
    page.go_back()
    expect(page.get_by_label("Order")).to_have_value("recent")

    page.get_by_role("link", name="main-thread").click()
    settled(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Session main-thread")
    figures = page.locator("#figures")
    one = agents.get("/api/sessions/key-main-thread")
    expect(figures).to_contain_text(f"{one['residency']['turns']['incremental']} of 60 turns")
    expect(figures).to_contain_text("1 break")
    page.get_by_role("link", name="Its rows").click()
    settled(page)
    expect(page.get_by_text("60 of 60 rows shown")).to_be_visible()


def test_the_list_is_walked_searched_and_opened_by_keys(open_page, agents):
    page, _ = open_page()
    page.goto(f"{agents.url}/sessions")
    settled(page)
    first, second = page.locator("tbody .row-link").all_inner_texts()[:2]
    for key in ("j", "j", "k", "j"):
        page.keyboard.press(key)
    expect(page.get_by_role("link", name=second, exact=True)).to_be_focused()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Next row, row before")
    page.keyboard.press("k")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    expect(page.get_by_role("link", name=second, exact=True)).to_be_focused()
    page.keyboard.press("k")
    expect(page.get_by_role("link", name=first, exact=True)).to_be_focused()
    with page.expect_response(re.compile("/api/sessions[?]")):
        page.keyboard.press("r")
    page.keyboard.press("t")
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile("from=now-6h"))
    page.keyboard.press("/")
    page.keyboard.type("main-thread")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("q=main-thread"))
    settled(page)
    page.keyboard.press("Tab")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Session main-thread")


def test_the_keyboard_goes_from_turn_to_turn_and_opens_what_differs(open_page, agents):
    page, _ = open_page()
    opened(page, agents)
    lanes = page.get_by_label("Turns of this session by chain")
    lanes.focus()
    page.keyboard.press("End")
    expect(page.locator("#lane-line")).to_contain_text("Turn 60 of 60")
    expect(page.locator("#lane-line")).to_contain_text("longer than a cache is sure to live")
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#lane-line")).to_contain_text("a break · prefix_mismatch")
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog")
    expect(
        panel.get_by_text("The model changed from gpt-5.6-sol to gpt-5.6-other.")
    ).to_be_visible()
    expect(panel.get_by_text("It went over another connection.")).to_be_visible()
    expect(panel.get_by_text("800 tokens could have been read from the cache")).to_be_visible()
    assert ["turn-of-main-40"] == query(page)["turn"]

    page.keyboard.press("ArrowRight")
    expect(page.locator("#lane-line")).to_contain_text("Turn 41 of 60")
    page.keyboard.press("ArrowLeft")
    expect(panel.get_by_text("It went over another connection.")).to_be_visible()
    panel.get_by_role("button", name="Open the turn before").click()
    expect(page.locator("#lane-line")).to_contain_text("Turn 39 of 60")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(lanes).to_be_focused()
    assert "turn" not in query(page)

    causes = page.get_by_role("region", name="What cost it")
    expect(causes.get_by_role("link", name="1 break by cause")).to_be_visible()
    causes.get_by_role("link", name=re.compile("The model changed")).click()
    expect(page.locator("#lane-line")).to_contain_text("Turn 40 of 60")

    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Turn before, next turn")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    expect(panel.get_by_text("It went over another connection.")).to_be_visible()
    page.get_by_role("radio", name="By turn").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="By time")).to_be_checked()
    assert ["turn-of-main-40"] == query(page)["turn"]

    opened(page, agents, turn="turn-of-main-60")  # a deep link
    expect(panel.get_by_text("It names the response of the turn of")).to_be_visible()


def test_the_epoch_is_reset_after_it_was_said_what_that_costs(open_page, agents):
    page, watch = open_page()
    opened(page, agents)
    agents.site.web.reset_epoch = lambda _key, _reason: Reset(2, under_way=False)
    reset = page.get_by_role("button", name="Reset the epoch of this session")
    reset.click()
    asked = page.get_by_role("alertdialog")
    expect(asked).to_contain_text("goes to the provider in full")
    expect(asked).to_contain_text("1 000 tokens by its last turn".replace(" ", "\u202f", 1))
    asked.get_by_role("button", name="Reset the epoch").click()
    expect(page.locator("#reset-said")).to_have_text(
        "Reset: 2 chains ended. Its next turn goes in full."
    )
    agents.site.web.reset_epoch = lambda _key, _reason: None  # as another gateway answers
    watch.allow("409")
    reset.click()
    asked.get_by_role("button", name="Reset the epoch").click()
    expect(page.get_by_role("alert")).to_contain_text("no live chain in this process")


def test_the_turns_are_a_table_too(open_page, agents):
    page, _ = open_page(width=1024)
    opened(page, agents)
    page.get_by_text("Show the turns as a table").click()
    table = page.get_by_role("table", name="Turns of this session")
    expect(table.get_by_role("row")).to_have_count(61)
    expect(table.get_by_role("row").nth(21)).to_contain_text("prefix_mismatch")
    table.get_by_role("link", name="40", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Against the turn before it")


def test_new_turns_come_without_moving_what_is_read(open_page, agents):
    page, _ = open_page(width=800)
    opened(page, agents)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    lanes = page.locator("#lanes")
    lanes.evaluate("(lanes) => { lanes.scrollLeft = 40; }")
    count = agents.get("/api/sessions/key-main-thread")["figures"]["turns"]
    agents.advance(1)
    agents.write([turn(61, 0.5, chain="chain-2")])
    expect(page.locator("#lane-count")).to_have_text(f"{count + 1} turns")
    assert 40 == lanes.evaluate("(lanes) => lanes.scrollLeft")


def test_a_session_may_have_ten_thousand_turns(open_page, agents):
    page, _ = open_page()
    real = agents.get("/api/sessions/key-main-thread/turns")
    row = dict(zip(real["columns"], real["turns"][5], strict=True))
    many = [
        [*(row | {"turn_id": f"t{n}", "at": n * 60_000, "chain": n // 40 % 3}).values()]
        for n in range(10_000)
    ]
    page.route(
        re.compile("/turns[?]"),
        lambda route: route.fulfill(
            content_type="application/json",
            body=json.dumps(real | {"turns": many, "chains": ["a", "b", "c"]}),
        ),
    )
    opened(page, agents)
    expect(page.locator("#lane-count")).to_have_text("10 000 turns".replace(" ", "\u202f", 1))
    larger = page.get_by_role("button", name="Show fewer turns, larger")
    expect(larger).to_be_disabled()
    page.get_by_role("button", name="Show more turns").click()
    expect(larger).to_be_enabled()


def test_a_session_without_turns_in_the_range_offers_all_of_it(open_page, agents):
    page, _ = open_page(width=360, theme="dark")
    opened(page, agents, **{"from": "now-10s"})
    expect(page.get_by_text("No turn of this session in this view")).to_be_visible()
    page.get_by_role("button", name="Show all of it").click()
    expect(page.locator("#lane-count")).to_have_text(re.compile("^6[01] turns"))
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
