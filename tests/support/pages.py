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
_FADED = """async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const fading = document.getAnimations().filter((one) => one instanceof CSSTransition);
  await Promise.allSettled(fading.map((one) => one.finished));
}"""


PANEL = "dialog[open], [role=dialog]"


def violations(page: Page, axe: str, *, within: str = "html") -> list[str]:
    """What ``axe``, the source of axe-core, finds against WCAG 2.2 AA in what is shown now.

    ``within``: the selector of the part to look at; a page behind an open panel was looked at before.
    """
    page.evaluate(axe)
    return _found(page, {"type": "tag", "values": list(RULES)}, within)


def violations_in_both_themes(page: Page, axe: str, *, within: str = "html") -> list[str]:
    """The same for a page that is light, and then dark. It stays dark."""
    found = violations(page, axe, within=within)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.evaluate(_FADED)
    return found + _found(page, {"type": "rule", "values": list(OF_COLOUR)}, within)


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
