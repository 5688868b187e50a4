"""The engine's words."""

import pytest

from engine.model import NOT_ELIGIBLE, Mode, Reason, Usage


def test_the_reasons_stand_in_the_order_in_which_they_are_tested():
    assert [str(reason) for reason in Reason] == [
        "continuation_off", "client_anchored", "payload_too_large", "ws_rejected", "ws_unavailable",
        "store_unsupported", "no_baseline", "epoch_reset", "non_input_fields_changed",
        "prefix_mismatch", "empty_delta", "missing_response_id", "missing_output_items",
        "output_conflict", "chain_busy", "connection_lost", "previous_response_not_found",
        "internal_error", "ok",
    ]  # fmt: skip


def test_turns_that_could_never_be_continued_are_the_first_reasons():
    assert set(list(Reason)[:8]) == NOT_ELIGIBLE


@pytest.mark.parametrize(("mode", "incremental"), [("ws_full", False), ("http_full", False), ("ws_incremental", True), ("http_incremental", True)])  # fmt: skip
def test_only_deltas_are_incremental(mode, incremental):
    assert Mode(mode).incremental == incremental


@pytest.mark.parametrize(
    ("given", "cached", "expected"),
    [(117231, 115584, 1647), (789, 9984, 0), (0, 0, 0), (None, 5, None), (5, None, None)],
)
def test_what_was_not_cached_is_never_negative_and_unknown_stays_unknown(given, cached, expected):
    assert Usage(input_tokens=given, cached_tokens=cached).non_cached_tokens == expected
