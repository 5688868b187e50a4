import pytest

from app.analysis.verdict_words import GRADES, HELD, WORDS, words
from app.analysis.verdicts import LOSSES, Grade, Verdict


def test_every_verdict_and_every_grade_has_its_words():
    assert set(Verdict) == set(WORDS)
    assert list(Grade) == list(GRADES)


def test_each_loss_has_a_remedy_and_nothing_else_has():
    assert LOSSES == {verdict for verdict, said in WORDS.items() if said.remedy}


def test_all_turns_had_something_to_read_but_those_that_nothing_came_before():
    assert {
        Verdict.UNUSABLE,
        Verdict.COLD_START,
        Verdict.COLD_CONTINUATION,
        Verdict.SHARED_PREFIX,
        Verdict.HISTORY_REWRITE,
    } == set(Verdict) - HELD


@pytest.mark.parametrize("verdict", sorted(LOSSES))
@pytest.mark.parametrize("grade", list(Grade))
def test_a_sentence_fits_its_column_of_the_terminal(verdict, grade):
    assert len(words(verdict, grade).sentence) <= 46
    assert words(verdict, grade).sentence.endswith(".")


@pytest.mark.parametrize("verdict", [Verdict.ONE_OFF_FULL, Verdict.ONE_OFF_PARTIAL])
def test_the_provider_is_named_alone_only_where_that_is_proven(verdict):
    assert words(verdict, "proven").sentence.startswith("The provider lost")
    assert "an edit" in words(verdict, "possible").sentence
    assert words(verdict, None) == words(verdict, "unknown") == WORDS[verdict]


def test_a_reason_of_the_providers_own_is_told_as_such():
    assert "The provider names a reason of its own." == words("unknown", "reported").sentence
