"""Waiting for a page of the dashboard."""

from __future__ import annotations

from playwright.sync_api import Page, expect

RULES = ("wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice")


def settled(page: Page) -> None:
    """Returns when the page shows all that it was asked for."""
    expect(page.get_by_role("main")).to_have_attribute("aria-busy", "false")
    if page.get_by_role("heading", level=1).inner_text() == "Overview":
        # what is in sight is drawn last
        expect(page.locator("figure[data-slug] .main-svg").first).to_be_visible()
    elif page.get_by_role("heading", level=1).inner_text() == "Requests":
        expect(page.get_by_role("row").nth(3)).to_be_visible()


OF_COLOUR = ("color-contrast", "link-in-text-block")
"""The rules that the other theme may break: it changes colours and nothing else."""
_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


PANEL = "dialog[open], [role=dialog]"


def violations(page: Page, axe: str, *, within: str = "html") -> list[str]:
    """What ``axe``, the source of axe-core, finds against WCAG 2.2 AA in what is shown now.

    ``within``: the selector of the part to look at; a page behind an open panel was looked at before.
    """
    page.evaluate(axe)
    return _found(page, {"type": "tag", "values": list(RULES)}, within)


def violations_in_both_themes(page: Page, axe: str, *, within: str = "html") -> list[str]:
    """The same for a page that is light, and then dark. It stays dark."""
    return violations(page, axe, within=within) + violations_in_the_dark(page, within=within)


def violations_in_the_dark(page: Page, *, within: str = "html") -> list[str]:
    """What the dark theme adds to what ``violations`` has found on the page; it stays dark."""
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.evaluate(_DRAWN)
    return _found(page, {"type": "rule", "values": list(OF_COLOUR)}, within)


def fits(page: Page, width: int) -> bool:
    """Whether the page, on a screen of this width, scrolls up and down only."""
    return bool(page.evaluate("() => document.documentElement.scrollWidth") <= width)


def _found(page: Page, rules: dict[str, object], within: str) -> list[str]:
    page.wait_for_selector(within)  # axe says nothing of a part that is not there
    found = page.evaluate(
        "([rules, part]) => axe.run({include: [[part]]}, {runOnly: rules})", [rules, within]
    )
    return [
        f"{fault['id']}: {node['html'][:160]} {node['failureSummary'][:240]}"
        for fault in found["violations"]
        for node in fault["nodes"]
    ]
