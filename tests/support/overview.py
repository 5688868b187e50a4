"""Parts of the overview, as a reader finds them."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page


def figure(page: Page, title: str) -> Locator:
    return (
        page.locator(".figure").filter(has=page.get_by_text(title, exact=True)).locator("dd").first
    )


def chart(page: Page, slug: str) -> Locator:
    return page.locator(f"figure[data-slug={slug}]")


def number(text: str) -> int:
    return int(re.sub(r"\D", "", text))


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def grouped(value: int) -> str:
    return f"{value:,}".replace(",", "\u202f")
