"""docs/formats.md says what the importers do."""

import re

from app.importers.formats import IMPORTERS
from app.importers.own_row import REQUIRED
from app.importers.run import FUTURE
from app.ledger.imports import DELETED, PURGED, TOO_OLD
from tests.support.markdown import section, table


def test_every_format_is_documented():
    text = section("formats.md", "Formats")
    rows = table(text.split("\n### ")[0])
    assert {f"`{one.name}`": one.title for one in IMPORTERS} == {row[0]: row[1] for row in rows}
    assert {one.name for one in IMPORTERS} == set(re.findall(r"^### (\S+)$", text, re.MULTILINE))


def test_the_columns_that_a_turn_needs_are_named():
    text = section("formats.md", "Formats")
    (needed,) = re.findall(r"cannot do without: (.*?)\. Of", text)
    assert list(REQUIRED) == re.findall(r"`(\w+)`", needed)


def test_every_reason_of_a_ledger_is_documented():
    text = section("formats.md", "What is taken, and what is not")
    for reason in (DELETED, PURGED, TOO_OLD, FUTURE):
        assert f"`{reason}`" in text
