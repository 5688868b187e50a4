"""docs/field-reports.md names tests that exist."""

import re

from tests.support.markdown import DOCS, table

ROOT = DOCS.parent
REPORTS = table((DOCS / "field-reports.md").read_text())


def test_every_report_has_a_test_or_a_reason() -> None:
    assert REPORTS
    for report, _, answer in REPORTS:
        assert "::" in answer or answer.startswith("does not apply: "), report


def test_every_test_that_is_named_is_there() -> None:
    named = [entry for _, _, answer in REPORTS for entry in re.findall(r"`(tests/[^`]+)`", answer)]
    assert named
    for entry in named:
        file, _, name = entry.partition("::")
        assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), entry
