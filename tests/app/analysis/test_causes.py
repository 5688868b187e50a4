from app.analysis.causes import Cause, cause_of
from tests.support.reported import judged, some_turns


def test_where_the_requests_are_what_a_verdict_is_of_their_change_is_part_of_the_cause():
    found = cause_of(some_turns()[5])
    assert Cause("prefix_changed", "proven", "metadata_moved") == found
    assert found.words.title == "Prefix changed"
    assert "`freeze`" in (found.words.remedy or "")


def test_the_requests_are_no_cause_of_another_verdict():
    row = judged("idle", "likely", 9, 0, reason="prefix_mismatch", mode="ws_full")
    found = cause_of(row)
    assert Cause("idle", "likely", None) == found
    assert "The cache ran out in the pause before." == found.words.sentence


def test_what_was_only_observed_counts_as_much():
    row = judged(
        "identity_change", "proven", 9, 0, reason="continuation_off",
        shadow_reason="non_input_fields_changed", changed_fields="model",
    )  # fmt: skip
    assert "model" == cause_of(row).change


def test_a_change_that_is_not_named_leaves_the_verdict():
    row = judged("prefix_changed", "reported", 9, 0, provider_miss_reason="input_changed")
    assert Cause("prefix_changed", "reported", None) == cause_of(row)
