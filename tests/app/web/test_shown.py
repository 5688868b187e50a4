from app.analysis.verdict_words import WORDS
from app.ledger.rows import COLUMNS
from app.web.shown import WHY, shown
from tests.support.rows import make_row


def test_a_row_is_shown_with_every_column_and_why():
    found = shown(make_row(status="client_closed"))
    assert tuple(found) == (*COLUMNS, *WHY)
    assert found["why"] == "The client left before the answer was complete."
    assert found["why_kind"] == "expected"
    assert (found["why_cause"], found["why_remedy"]) == (None, None)
    assert (found["cache_why"], found["cache_remedy"]) == (None, None)


def test_a_break_is_shown_with_its_usual_cause_and_remedy():
    found = shown(
        make_row(mode="ws_full", reason="non_input_fields_changed", changed_fields="model")
    )
    assert found["why_cause"] == "The session goes on with another model."
    assert found["why_remedy"].startswith("None is needed")


def test_what_became_of_the_cache_is_told_beside():
    lost = {"cache_verdict": "idle", "cache_grade": "likely", "missed_tokens": 13_952}
    found = shown(make_row(**lost))
    assert "13,952 tokens that could have been read were not." in found["cache_why"]
    assert found["cache_remedy"]
    warm = shown(make_row(cache_verdict="hit", cache_grade="proven", missed_tokens=0))
    assert (warm["cache_why"], warm["cache_remedy"]) == (WORDS["hit"].sentence, None)
