"""docs/report.md says what report and check do."""

import importlib
import re
from pathlib import Path

from app.analysis.compaction import LISTED
from app.analysis.remedies import Policy
from app.analysis.verdict_words import GRADES, HELD, WORDS
from app.analysis.verdicts import LOSSES, SLACK
from app.analysis.warm import AT_LEAST
from app.reporting.gate import EXIT
from app.reporting.gather import WORST
from tests.support.markdown import section, table

FILE = Path(__file__).resolve().parents[2] / "docs" / "report.md"


def test_every_verdict_and_grade_is_documented_with_its_words():
    rows = table(section("report.md", "The missed rate"))
    losses = [row for row in rows if len(row) == 4 and row[0].startswith("`")]
    assert [
        [f"`{verdict}`", said.title, said.sentence, said.remedy]
        for verdict, said in WORDS.items()
        if verdict in LOSSES
    ] == losses
    text = section("report.md", "The missed rate")
    for grade, why in GRADES.items():
        assert f"| `{grade}` | {why} |" in text


def test_what_the_missed_rate_counts_is_documented():
    text = section("report.md", "The missed rate")
    (beside,) = re.findall(r"and those with `(\w+)` or `(\w+)`", text)
    assert set(beside) == HELD - LOSSES
    assert f"more than {SLACK:,} tokens" in text


def test_the_numbers_and_options_of_the_text_are_those_of_the_code():
    text = section("report.md", "Check")
    options = {
        option.opts[0]: option.default
        for option in importlib.import_module("app.commands.check").command.params
        if option.opts[0] in ("--min-requests", "--max-missed-rate", "--max-mismatch-rate")
    }
    assert options == {
        name: float(value)
        for name, value in re.findall(r"^- `(--[\w-]+)` \(([\d.]+)\)", text, re.MULTILINE)
    }
    for outcome in EXIT:
        assert f"`{outcome}`" in text
    assert [str(code) for code in EXIT.values()] == [row[0] for row in table(text)]
    assert 10 == WORST
    assert "ten worst sessions" in FILE.read_text("utf-8")


def test_every_remedy_and_the_bounds_of_estimates_are_documented():
    rows = table(section("verdicts.md", "What a remedy would have saved"))
    policies = [policy for policy in Policy if policy != Policy.NONE]
    assert [f"`{policy}`" for policy in policies] == [row[0] for row in rows]
    assert f"fewer than {AT_LEAST} warm turns" in section("verdicts.md", "What a miss costs")
    api = section("api.md", "`GET /api/causes`")
    assert all(f"`{policy}`" in api for policy in policies)
    assert 50 == LISTED
    assert "fifty resets" in section("api.md", "`GET /api/resets`")
    assert all(f"`{word}`" in section("verdicts.md", "What a condensed history saves")
               for word in ("turn_count", "connection_age", "manual"))  # fmt: skip
