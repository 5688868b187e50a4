from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.alerts import links
from app.alerts.causes import Details, TopCause, details
from app.alerts.groups import labels_of
from app.alerts.measures import windows
from app.alerts.signals import Signal
from app.ledger import queries
from app.ledger.rows import TurnRow
from app.ledger.writer import write_rows
from tests.support.alerts import MINUTE, bad_row, good_row, make_rule
from tests.support.measuring import BEGIN, rows, some_rules

many = settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)
RATES = (
    Signal.MISMATCH_RATE,
    Signal.BREAK_RATE,
    Signal.INCREMENTAL_RATE,
    Signal.ERROR_RATE,
)


def told(engine: Engine, found: list[TurnRow], labels: Any = (), **rule: Any) -> Details:
    write_rows(engine, found)
    return details(engine, make_rule(**rule), dict(labels), BEGIN, BEGIN + MINUTE)


def edited(item: int = 3, **changes: Any) -> TurnRow:
    where = {
        "diverged_at": item,
        "diverged_kind": "message",
        "diverged_path": "content.0.text",
        "diverged_class": "edited",
    }
    return bad_row(BEGIN, **(where | changes))


def test_the_cause_is_told_in_the_words_of_the_turns_page(engine: Engine):
    found = told(engine, [edited(), edited(), edited(fingerprint="fp-2", diverged_path="role")])
    assert (
        TopCause(
            "Sent in full: item 4 (message) was edited at content.0.text.",
            "prefix_mismatch",
            "fp-1",
            2,
        ),
        TopCause(
            "Sent in full: item 4 (message) was edited at role.", "prefix_mismatch", "fp-2", 1
        ),
    ) == found.top_causes
    assert (3, ("fp-1", "fp-2")) == (found.rows, found.top_fingerprints)


def test_turns_of_a_cause_that_parted_at_other_items_are_told_of_together(engine: Engine):
    found = told(engine, [edited(3), edited(9)])
    assert [
        TopCause(
            "Sent in full: an earlier item (message) was edited at content.0.text.",
            "prefix_mismatch",
            "fp-1",
            2,
        )
    ] == list(found.top_causes)


def test_details_in_which_the_turns_of_a_cause_differ_are_an_example(engine: Engine):
    found = told(engine, [edited(3), edited(9, diverged_path="role")])
    assert [
        TopCause(
            "For example: Sent in full: item 10 (message) was edited at role.",
            "prefix_mismatch",
            "fp-1",
            2,
        )
    ] == list(found.top_causes)


def test_the_three_most_frequent_causes_are_told_and_the_newest_of_equals_first(engine: Engine):
    names = ["a", "b", "b", "b", "c", "d", "d"]
    found = told(engine, [bad_row(BEGIN, fingerprint=name) for name in names])
    assert ["b", "d", "c"] == [cause.fingerprint for cause in found.top_causes]
    assert ("b", "d", "c") == found.top_fingerprints
    assert 7 == found.rows


def test_the_newest_turns_are_named(engine: Engine):
    numbers = (3, 1, 6, 2, 5, 4)
    found = told(engine, [bad_row(BEGIN + number, turn_id=f"t{number}") for number in numbers])
    assert ("t6", "t5", "t4", "t3", "t2") == found.sample_turn_ids


def test_turns_without_a_fingerprint_have_a_cause_all_the_same(engine: Engine):
    lost = {"reason": "connection_lost", "fallback_reason": "closed", "fingerprint": None}
    found = told(engine, [bad_row(BEGIN, **lost)], signal="break_rate")
    cause = TopCause(
        "Sent in full: the connection that held the conversation had been closed.",
        "connection_lost",
        None,
        1,
    )
    assert ((cause,), ()) == (found.top_causes, found.top_fingerprints)


def test_nothing_offending_is_nothing_to_tell(engine: Engine):
    assert Details() == told(engine, [good_row(BEGIN)])


def test_only_the_rows_of_the_window_and_the_group_are_told_of(engine: Engine):
    found = told(
        engine,
        [
            bad_row(BEGIN - 1, model="a"),
            bad_row(BEGIN, model="a", turn_id="this"),
            bad_row(BEGIN, model="b"),
            bad_row(BEGIN, model="a", source="import:x"),
            bad_row(BEGIN + MINUTE, model="a"),
        ],
        labels={"model": "a"},
        group_by=["model"],
    )
    assert (1, ("this",)) == (found.rows, found.sample_turn_ids)


@many
@given(some_rules(RATES), st.lists(rows, max_size=25))
def test_the_rows_told_of_are_those_behind_the_link(holding, rule, found):
    engine = holding(found)
    at = BEGIN + MINUTE
    end = at - rule.delay * 1_000
    start = end - rule.window * 1_000
    for key in next(windows(engine, rule, at, at))[1]:
        told_of = details(engine, rule, labels_of(key), start, end)
        expected = queries.count(engine, links.offending(rule, labels_of(key), start, end))
        assert expected == told_of.rows
        assert sum(cause.turns for cause in told_of.top_causes) <= expected
        assert min(expected, 5) == len(told_of.sample_turn_ids)


def test_of_the_incremental_rate_the_turns_not_continued_are_told_of(engine: Engine):
    first = {"mode": "ws_full", "reason": "no_baseline", "eligible": False, "epoch_turn": 1}
    found = told(
        engine,
        [good_row(BEGIN), good_row(BEGIN, **first, epoch=0), bad_row(BEGIN, mode=None)],
        signal="incremental_rate",
    )
    assert ["no_baseline"] == [cause.reason for cause in found.top_causes]
    assert 1 == found.rows


def test_of_the_cached_ratio_the_turns_that_missed_the_cache_are_told_of(engine: Engine):
    found = told(
        engine,
        [
            good_row(BEGIN),
            good_row(BEGIN, cached_tokens=0, turn_id="miss"),
            bad_row(BEGIN, cached_tokens=500, turn_id="partial"),
            bad_row(BEGIN, cached_tokens=None),
        ],
        signal="cached_ratio",
    )
    assert (2, ("partial", "miss")) == (found.rows, found.sample_turn_ids)
    assert ["prefix_mismatch", "ok"] == [cause.reason for cause in found.top_causes]


def test_of_times_to_first_token_those_beyond_the_threshold_are_told_of(engine: Engine):
    found = told(
        engine,
        [
            good_row(BEGIN, ttft_ms=1_000.0),
            bad_row(BEGIN, ttft_ms=1_000.5),
            bad_row(BEGIN, ttft_ms=12_345.6),
            bad_row(BEGIN, ttft_ms=None),
            good_row(BEGIN, ttft_ms=2_000.0, mode=None, reason=None),
        ],
        signal="ttft_p95",
        threshold=1_000,
    )
    assert (
        TopCause(
            "Sent as ws_full (prefix_mismatch): first token after up to 12,346 ms.",
            "prefix_mismatch",
            None,
            2,
        ),
        TopCause("Sent in an unknown mode: first token after up to 2,000 ms.", None, None, 1),
    ) == found.top_causes
    assert 3 == found.rows


def test_errors_are_told_of_by_status_and_code(engine: Engine):
    limited = {"status": "rate_limited", "http_status": 429, "error_code": "rate_limit_exceeded"}
    found = told(
        engine,
        [
            good_row(BEGIN, **limited),
            good_row(BEGIN, **limited),
            good_row(BEGIN, status="failed", error_code="server_error"),
            good_row(BEGIN, status="client_closed"),
            good_row(BEGIN),
        ],
        signal="error_rate",
    )
    assert (
        TopCause(
            "The provider refused the turn because of its rate limit "
            "(HTTP 429, rate_limit_exceeded).",
            "rate_limited",
            None,
            2,
        ),
        TopCause("The provider ended the turn with a failure (server_error).", "failed", None, 1),
    ) == found.top_causes


def test_missed_tokens_are_told_of_by_verdict(engine: Engine):
    found = told(
        engine,
        [
            good_row(BEGIN, cache_verdict="expired", missed_tokens=1_200),
            good_row(BEGIN, cache_verdict="expired", missed_tokens=34),
            good_row(BEGIN, cache_verdict="idle", missed_tokens=7),
            good_row(BEGIN, missed_tokens=1),
            good_row(BEGIN, cache_verdict="warm", missed_tokens=0),
            good_row(BEGIN, missed_tokens=None),
        ],
        signal="missed_tokens",
        threshold=5,
    )
    assert (
        TopCause("Cache verdict “expired”: 1,234 tokens missed.", "expired", None, 2),
        TopCause("No verdict on the cache: 1 token missed.", None, None, 1),
        TopCause("Cache: long pause: 7 tokens missed.", "idle", None, 1),
    ) == found.top_causes


@pytest.mark.parametrize("signal", list(Signal))
def test_every_signal_has_something_to_say_of_the_group_of_the_others(
    engine: Engine, signal: Signal
):
    """Its rows are those of the whole rule."""
    worst = {"ttft_ms": 9.0, "missed_tokens": 5, "cached_tokens": 0}
    found = told(
        engine,
        [bad_row(BEGIN, **worst), bad_row(BEGIN, status="error", eligible=False)],
        labels={"client": "other"},
        group_by=["client"],
        signal=signal.value,
    )
    assert (1, 1) == (found.rows, len(found.top_causes))
