"""What every page says of a ledger that is locked, gone, silent or lossy, without a reload."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from app.ledger.journal.journal import JournalState
from app.ledger.probe import NO_ANSWER, Probe, Reading
from tests.support.live_server import LiveServer
from tests.support.pages import fits, settled, violations_in_both_themes
from tests.support.rows import make_row

pytestmark = pytest.mark.browser

PAGES = ("/", "/requests", "/alerts", "/settings")


@contextmanager
def locked(server: LiveServer) -> Iterator[None]:
    """Somebody else writes to the ledger and does not end."""
    holder = sqlite3.connect(str(server.site.engine.url.database), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.close()


@contextmanager
def gone(server: LiveServer) -> Iterator[None]:
    """The ledger's folder is away for whoever opens it anew, as everyone does now."""
    folder = Path(str(server.site.engine.url.database)).parent
    away = folder.with_name(f"{folder.name}-away")
    folder.rename(away)
    server.site.engine.dispose()
    try:
        yield
    finally:
        away.rename(folder)


@pytest.fixture
def probe(server: LiveServer) -> Iterator[Probe]:
    made = Probe(server.site.engine, server.site.clock)
    server.site.web.reading = made.state
    yield made
    made.close()


def look_again(page: Page) -> None:
    """What a page does every few seconds."""
    page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")


def strip(page: Page) -> Locator:
    return page.get_by_role("region", name="State of the ledger")


def test_a_locked_ledger_is_told_and_the_rows_come_when_it_is_free(open_page, server, probe):
    page, _ = open_page()
    page.goto(f"{server.url}/requests")
    settled(page)
    with locked(server):
        server.site.writer.record(make_row(turn_id="waited", started_at=server.now))
        server.advance(12)
        probe.ask()
        look_again(page)
        expect(strip(page)).to_contain_text("No row has been written since")
        expect(strip(page)).to_contain_text("1 row waits to be written.")
        expect(page.locator("#announcer")).to_contain_text("No row has been written")
    assert server.site.writer.flush(30)
    look_again(page)
    expect(strip(page)).to_be_hidden()
    expect(page.locator("tr[data-turn=waited]")).to_be_visible()


def test_a_ledger_that_is_gone_is_told_on_every_page_and_fetched_anew_when_it_is_back(
    open_page, server, probe
):
    page, watch = open_page()
    watch.allow("status 503", "503 (Service Unavailable)")
    with gone(server):
        probe.ask()
        server.site.writer.record(make_row(started_at=server.now))
        for path in PAGES:
            page.goto(server.url + path)
            expect(strip(page)).to_contain_text("The ledger cannot be read since")
            expect(strip(page)).to_contain_text("The database says OperationalError. Check that it runs, is not locked and has room.")  # fmt: skip
            expect(strip(page)).to_contain_text("1 row waits to be written.")
            expect(strip(page)).to_contain_text("Turns are served")
        page.goto(f"{server.url}/requests")
        expect(page.get_by_role("alert")).to_contain_text("The ledger cannot be read")
    assert server.site.writer.flush()
    probe.ask()
    look_again(page)
    expect(strip(page)).to_be_hidden()
    settled(page)
    expect(page.locator("#fault")).to_be_hidden()


def test_a_service_that_does_not_answer_is_told_until_it_does(open_page, server):
    page, watch = open_page()
    watch.allow("failed", "Failed to load", "ERR_")
    page.goto(f"{server.url}/settings")
    settled(page)
    page.route("**/api/status", lambda route: route.abort("connectionrefused"))
    look_again(page)
    expect(strip(page)).to_contain_text("Warmline does not answer.")
    page.unroute("**/api/status")
    look_again(page)
    expect(strip(page)).to_be_hidden()


LOST = {"dropped": 1_284, "rejected": 2}
FULL = JournalState(
    bytes=1, recovered=0, process_ended=0, missed=3, torn=0, last_error="No space left on device"
)


def test_what_was_lost_stays_told_and_so_does_a_journal_that_cannot_be_written(open_page, server):
    state = replace(server.site.writer.state(), **LOST, journal=FULL)
    server.site.web.writer_state = lambda: state  # a site of this test alone
    page, _ = open_page()
    page.goto(f"{server.url}/settings")
    expect(strip(page)).to_contain_text("The ledger is not whole.")
    expect(strip(page)).to_contain_text("1 284 found memory and journal full, 2 were refused by the database")  # fmt: skip
    expect(strip(page)).to_contain_text("The journal cannot be written (No space left on device)")


def test_the_worst_of_states_is_readable_and_no_wider_than_the_screen(
    open_page, server, monkeypatch, axe
):
    at = server.now - 90_000
    state = replace(
        server.site.writer.state(), **LOST, journal=FULL, queued=20_412, on_disk=412, retrying=True,
        last_error="OperationalError", waiting_since=at,
    )  # fmt: skip
    silent = Reading(readable=False, since=at, error=NO_ANSWER)
    web = server.site.web
    monkeypatch.setattr(web, "writer_state", lambda: state)
    page, _ = open_page(width=360)
    page.goto(f"{server.url}/settings")
    settled(page)
    for level, words, reading in (
        ("warn", "The ledger cannot be written since", None),
        ("bad", "The database does not answer.", lambda: silent),
    ):
        monkeypatch.setattr(web, "reading", reading)
        look_again(page)
        expect(strip(page)).to_have_attribute("data-level", level)
        expect(strip(page)).to_contain_text(words)
        expect(strip(page)).to_contain_text("20 412 rows wait to be written, 412 of them in the journal alone.")  # fmt: skip
        assert fits(page, 360)
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        assert [] == violations_in_both_themes(page, axe, within="#health")
