"""Importing through the page, from the files to their rows and back; and what a client is shown."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.support.clock import START
from tests.support.live_server import LiveServer, serve
from tests.support.pages import violations_in_both_themes
from tests.support.rows import make_row

pytestmark = pytest.mark.browser

TOML = """
gateway_token_file = "{token}"

[upstreams.edge]
base_url = "https://ai-gateway.vercel.sh/v1"
preset = "vercel"
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    (folder / "token").write_text("canary-of-the-gateway")
    with serve(folder, toml=TOML.format(token=folder / "token")) as server:
        yield server


def opened(open_page, server: LiveServer, path: str, **options) -> Page:
    page, _ = open_page(**options)
    page.goto(f"{server.url}{path}")
    expect(page.get_by_role("main")).to_have_attribute("aria-busy", "false")
    return page


def log(*turns: int) -> bytes:
    lines = (
        {"t": START - 86_400 + 60 * turn, "chain": "c", "id": f"r{turn}", "input": 2_000 + turn}
        for turn in turns
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def file(name: str, content: bytes) -> dict:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def test_files_become_rows_that_can_be_looked_at_and_taken_back(open_page, started, axe):
    page = opened(open_page, started, "/import", reduced_motion="reduce")
    expect(page.get_by_role("heading", name="Nothing was imported yet")).to_be_visible()
    files = [
        file("log.jsonl", log(*range(12)) + b'{"t": "soon", "input": 1}\n'),
        file("more.jsonl.gz", gzip.compress(log(11, 12))),
        file("notes.txt", b"hello"),
    ]
    page.get_by_label("Choose files").set_input_files(files)
    came = page.get_by_role("article", name="log.jsonl, more.jsonl.gz")
    expect(came).to_contain_text("13 new rows, 1 known, 1 skipped")
    expect(came).to_contain_text("Done")
    expect(came.get_by_role("table", name="Skipped")).to_contain_text("log.jsonl, line 13")
    expect(came.get_by_role("table", name="Files")).to_contain_text("It is not a format")
    assert [] == violations_in_both_themes(page, axe)

    came.get_by_role("link", name="Show 13 rows").click()
    expect(page.get_by_role("heading", name="Requests")).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(14)
    page.go_back()

    came.get_by_role("button", name=re.compile("Undo")).click()
    page.get_by_role("alertdialog").get_by_role("button", name="Undo").click()
    expect(came).to_contain_text("Undone")
    assert started.get("/api/summary", **{"from": "now-30d"})["turns"]["total"] == 0


def test_what_is_too_large_is_said_before_it_is_sent_and_what_is_called_off_leaves_nothing(
    open_page, started, monkeypatch
):
    monkeypatch.setattr(started.site.web.imports.uploads, "limit", 1_000)
    page = opened(open_page, started, "/import", width=360)
    expect(page.get_by_text("up to")).to_contain_text("1.00")
    held = []  # however long the list takes, whoever reads of a refusal can choose again at once
    page.route("**/api/import", lambda route: held.append(route) if lists(route) else route.continue_())  # fmt: skip
    page.get_by_label("Choose files").set_input_files([file("log.jsonl", b"x" * 1_001)])
    expect(page.get_by_role("alert").first).to_contain_text("import_bytes")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360

    page.route("**/files?name=*", lambda route: None)  # it never gets on
    page.get_by_label("Choose files").set_input_files([file("slow.jsonl", log(1))])
    expect(page.get_by_role("progressbar", name="All files")).to_be_visible()
    page.unroute("**/api/import")
    for route in held:
        route.continue_()
    page.get_by_role("button", name="Cancel").first.click()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_text("Being sent")).to_have_count(0)


def lists(route: Route) -> bool:
    return route.request.method == "GET"


def test_a_client_gets_the_settings_for_this_server_and_the_first_request_turns_the_page_green(
    open_page, started, axe
):
    page = opened(open_page, started, "/connect#pi", reduced_motion="reduce")
    expect(page.get_by_label("pi", exact=True)).to_be_checked()
    expect(page.get_by_text("$WARMLINE_TOKEN")).to_be_visible()
    page.get_by_label("Codex").check()
    settings = page.get_by_role("group", name="~/.codex/config.toml")
    expect(settings).to_contain_text(f'base_url = "{started.url}/v1"')
    page.get_by_label("Upstream").select_option("/u/edge/v1")
    expect(settings).to_contain_text(f'base_url = "{started.url}/u/edge/v1"')
    assert "canary-of-the-gateway" not in page.content()

    arrival = page.get_by_role("region", name="Waiting for the first request")
    expect(arrival.get_by_text("Listening")).to_be_visible()
    started.write([make_row(turn_id="sample", source="sample", started_at=started.now)])
    row = make_row(turn_id="first", client="codex_exec", client_version="0.171.0")
    started.write([row])
    connected = page.get_by_role("region", name="Connected")
    expect(connected).to_contain_text("codex_exec 0.171.0")
    assert [] == violations_in_both_themes(page, axe)
    page.set_viewport_size({"width": 360, "height": 780})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    connected.get_by_role("link", name="Show its row").click()
    expect(page).to_have_url(re.compile("turn=first"))
