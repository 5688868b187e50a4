"""The page of settings: what is in force, where it comes from, and each upstream's counters."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.live_server import LiveServer, serve
from tests.support.pages import fits
from tests.support.rows import make_row

pytestmark = pytest.mark.browser

TOML = """
log_level = "error"
token_file = "{token}"

[upstreams.edge]
base_url = "https://ai-gateway.vercel.sh/v1"
preset = "vercel"
max_frame_bytes = 3000000
"""


@pytest.fixture(scope="module")
def set_up(tmp_path_factory):
    folder = tmp_path_factory.mktemp("settings")
    (folder / "token").write_text("a-secret-of-the-dashboard")
    toml = TOML.format(token=folder / "token")
    rows = [make_row(mode="ws_incremental", reason="ok", items_sent=2, items_total=9)]
    with serve(folder, rows, toml=toml) as server:
        yield server


def opened(open_page, server: LiveServer, **options) -> Page:
    page, _ = open_page(**options)
    page.goto(f"{server.url}/settings")
    expect(page.get_by_role("main")).to_have_attribute("aria-busy", "false")
    return page


def test_each_value_stands_beside_where_it_comes_from(open_page, set_up):
    page = opened(open_page, set_up)
    service = page.get_by_role("table", name="Settings of the service")
    row = service.get_by_role("row").filter(has=page.get_by_role("rowheader", name="log_level"))
    expect(row).to_contain_text("error")
    expect(row).to_contain_text("warmline.toml")
    secret = service.get_by_role("row", name=re.compile("^token "))
    expect(secret).to_contain_text("••••")
    assert "a-secret-of-the-dashboard" not in page.content()


def test_an_upstream_shows_its_counters_its_preset_and_all_of_its_policy(open_page, set_up):
    page = opened(open_page, set_up)
    edge = page.get_by_role("article", name="edge")
    expect(edge).to_contain_text("preset vercel")
    given = edge.get_by_role("table", name="What is set for edge")
    expect(given.get_by_role("row", name=re.compile("^one_model"))).to_contain_text("close 1008")
    expect(given.get_by_role("row", name=re.compile("^tools "))).to_have_count(0)
    edge.get_by_text(re.compile("^All .* keys")).click()
    whole = edge.get_by_role("table", name="Policy of edge")
    expect(whole.get_by_role("row", name=re.compile("^tools "))).to_contain_text("default")
    page.set_viewport_size({"width": 360, "height": 800})
    assert fits(page, 360)
    default = page.get_by_role("article", name="default")
    counted = default.locator("dl div").filter(has_text="Items in full")
    expect(counted).to_contain_text("9")
    set_up.write([make_row(turn_id="t2", mode="ws_incremental", reason="ok", items_total=4)])
    page.keyboard.press("r")
    expect(counted).to_contain_text("13")
