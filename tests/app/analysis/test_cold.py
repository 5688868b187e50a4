import pytest

from app.analysis.cold import told
from app.analysis.verdict_words import GRADES, words
from app.analysis.verdicts import Grade, Verdict
from tests.support.rows import make_row


def said(verdict: str | None, grade: str | None = "possible", missed: int | None = 0):
    return told(make_row(cache_verdict=verdict, cache_grade=grade, missed_tokens=missed))


def test_what_nobody_judged_is_not_told():
    assert said(None, None, None) is None


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("grade", [*Grade, None])
def test_every_verdict_is_one_sentence(verdict, grade):
    found = said(verdict, grade, 13_952)
    assert found.sentence.endswith("; 13,952 tokens that could have been read were not.")
    assert 1 == found.sentence.count(".")


def test_how_sure_a_loss_is_stands_beside_it():
    assert f"({GRADES['possible']})" in said("idle").sentence
    assert f"({GRADES['reported']})" in said("prefix_changed", "reported").sentence
    assert "(" not in said("unknown", "unknown").sentence
    assert "(" not in said("hit", "proven").sentence


def test_what_helps_depends_on_how_sure_it_is():
    proven, possible = said("one_off_full", "proven"), said("one_off_full", "possible")
    assert words("one_off_full", "proven").remedy == proven.remedy != possible.remedy


def test_a_word_of_another_version_is_shown_as_it_stands():
    assert "Recorded as “new_word”." == said("new_word").sentence
    assert said("hit", "proven", 1).sentence.endswith(
        "; 1 token that could have been read was not."
    )
