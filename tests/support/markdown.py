"""What stands in the documentation: sections and tables of it."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def section(file: str, title: str) -> str:
    """The text below a heading, up to the next one of its level."""
    text = (DOCS / file).read_text()
    found = re.search(
        rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{1,2}} |\Z)", text, re.DOTALL | re.MULTILINE
    )
    assert found is not None, f"{file} has no section {title!r}"
    return found[2]


def table(text: str) -> list[list[str]]:
    """The rows of the tables in a text, without header and rule."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    rules = [place for place, row in enumerate(rows) if set("".join(row)) <= set("-|: ")]
    skipped = {place for rule in rules for place in (rule, rule - 1)}
    return [row for place, row in enumerate(rows) if place not in skipped]
