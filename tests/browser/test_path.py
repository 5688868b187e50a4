"""The whole way down: from a bar of a chart to what a turn differs in, and back up again."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.overview import chart, query
from tests.support.pages import settled

pytestmark = pytest.mark.browser

MODEL, MODE = "gpt-5.6", "ws_full"
CELL = 18
"""Pixels of a turn in a lane as it is first drawn."""


def test_from_a_bar_over_its_rows_and_their_session_to_a_difference_and_back(open_page, seeded):
    page, _ = open_page(height=1400)  # the bar is in sight
    page.goto(f"{seeded.url}/?model={MODEL}")
    settled(page)
    mismatches = seeded.get("/api/requests", model=MODEL, reason="prefix_mismatch")["rows"]
    broken = mismatches[len(mismatches) // 2]  # within the spike
    turn, key = broken["turn_id"], broken["session_key"]
    bucket = bucket_of(seeded, broken["started_at"])
    range_ = {"from": [bucket["from"]], "to": [bucket["to"]]}
    page.mouse.click(*middle_of_bar(page, bucket["at"]))

    # the rows of this bar and no others, each filter a chip
    expect(page.get_by_role("heading", level=1)).to_have_text("Requests")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(bucket[MODE])
    filters = query(page)
    chosen = {"model": [MODEL], "mode": [MODE], "kind": ["generation"]}
    assert range_ | chosen | {"status": ["completed", "incomplete"]} == filters
    chips = ["Kind is generation", f"Mode is {MODE}", f"Model is {MODEL}"]
    chips += ["Status is completed", "Status is incomplete"]
    assert chips == chips_of(page)

    page.locator(f"tr[data-turn={turn}]").click()
    panel = page.get_by_role("dialog")
    expect(panel).to_contain_text(turn)
    assert filters | {"turn": [turn]} == query(page)

    # its session in the same range, with all turns of it: a filter would hide what came before
    panel.get_by_role("link", name="Open its session").click()
    settled(page)
    expect(page).to_have_url(re.compile(f"/sessions/{key}[?]"))
    assert range_ | {"turn": [turn]} == query(page)
    differs(page, seeded, key, turn)

    # a turn in the lane, by the pointer
    within = {"from": bucket["from"], "to": bucket["to"]}
    told = seeded.get(f"/api/sessions/{key}/turns", **within)
    ids = [one[told["columns"].index("turn_id")] for one in told["turns"]]
    other = next(one for one in reversed(ids) if one != turn)
    page.locator("#lanes").click(position={"x": (ids.index(other) + 0.5) * CELL, "y": 50})
    expect(page).to_have_url(re.compile(f"turn={other}"))
    assert range_ | {"turn": [other]} == query(page)
    differs(page, seeded, key, other)
    panel.get_by_role("button", name="Open the turn before").click()
    before = seeded.get(f"/api/sessions/{key}/turns/{other}")["before"]["turn_id"]
    expect(page).to_have_url(re.compile(f"turn={before}"))
    address = page.url

    # and back, with all that was open
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Requests")
    expect(panel).to_contain_text(turn)
    expect(rows).to_have_count(bucket[MODE])
    assert filters | {"turn": [turn]} == query(page)
    assert chips == chips_of(page)
    page.go_back()
    expect(panel).to_be_hidden()
    assert filters == query(page)
    assert chips == chips_of(page)
    page.go_forward()
    expect(panel).to_contain_text(turn)
    assert filters | {"turn": [turn]} == query(page)
    page.go_forward()
    settled(page)
    assert address == page.url
    differs(page, seeded, key, before)
    for _ in range(3):
        page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    assert {"model": [MODEL]} == query(page)
    assert [f"Model is {MODEL}"] == chips_of(page)


def bucket_of(seeded, at: str) -> dict:
    """The bar that holds an instant: its cells, and its place among the others."""
    table = seeded.get("/api/charts/modes", model=MODEL)["table"]
    keys = [column["key"] for column in table["columns"]]
    bars = [dict(zip(keys, row, strict=True)) | {"at": n} for n, row in enumerate(table["rows"])]
    return next(bar for bar in bars if bar["from"] <= at < bar["to"])


def middle_of_bar(page: Page, at: int) -> tuple[float, float]:
    bars = chart(page, "modes").locator(".barlayer .trace").nth(1)
    box = bars.locator(".point").nth(at).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    return x, y


def chips_of(page: Page) -> list[str]:
    chips = page.get_by_label("Filters in force").get_by_role("listitem")
    expect(chips.first).to_be_visible()
    return sorted(chips.all_inner_texts())


def differs(page: Page, seeded, key: str, turn: str) -> None:
    """The panel tells of this turn all that differs from the one before it."""
    panel = page.get_by_role("dialog")
    expect(panel).to_contain_text(turn)
    told = seeded.get(f"/api/sessions/{key}/turns/{turn}")["differences"]
    said = panel.locator(".difference li")
    expect(said).to_have_count(len(told))
    words = [re.sub(r"^Notable:|\W", "", text.strip()) for text in said.all_inner_texts()]
    assert [re.sub(r"\W", "", one["sentence"]) for one in told] == words
