"""Waiting for a page of the dashboard."""

from __future__ import annotations

from playwright.sync_api import Page, expect


def settled(page: Page) -> None:
    """Returns when the page shows all that it was asked for."""
    expect(page.get_by_role("main")).to_have_attribute("aria-busy", "false")
    if page.get_by_role("heading", level=1).inner_text() == "Overview":
        # the last chart of the page is drawn last
        expect(page.locator("figure[data-slug=ttft-over-time] .main-svg").first).to_be_visible()
    elif page.get_by_role("heading", level=1).inner_text() == "Requests":
        expect(page.get_by_role("row").nth(3)).to_be_visible()
