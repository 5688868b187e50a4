import time
from collections import Counter, defaultdict

import pytest

from app.analysis.continuity import Share, spikes
from app.demo.history import DAY, HOUR, MISMATCHES, QUIET, REFUSALS, generate
from app.ledger.rows import to_ms
from engine.model import NOT_ELIGIBLE
from tests.support.clock import START

NOW = START + 9.5 * HOUR
"""17:30 UTC: this day's planted hours have passed."""


@pytest.fixture(scope="module")
def rows():
    return list(generate(NOW))


def test_the_same_seed_and_time_give_the_same_rows(rows):
    assert rows == list(generate(NOW))
    assert rows != list(generate(NOW, seed="other"))


def test_it_spans_three_days_and_leaves_the_last_minute_to_the_live_agents(rows):
    assert to_ms(NOW - 3 * DAY) <= rows[0].started_at < to_ms(NOW - 3 * DAY + 2 * HOUR)
    assert to_ms(NOW - HOUR) < rows[-1].started_at
    assert max(row.ended_at for row in rows) <= to_ms(NOW - QUIET)
    assert rows == sorted(rows, key=lambda row: row.started_at)


def test_it_is_made_in_less_than_five_seconds():
    before = time.process_time()
    assert len(list(generate(NOW))) > 2_000
    assert time.process_time() - before < 5


def test_every_row_is_a_sample_with_an_id_of_its_own(rows):
    assert {row.source for row in rows} == {"sample"}
    assert len({row.turn_id for row in rows}) == len(rows)
    assert len({row.response_id for row in rows}) == len(rows)


def test_tokens_add_up(rows):
    for row in rows:
        assert 0 <= row.cached_tokens <= row.input_tokens
        assert row.input_tokens == row.cached_tokens + row.non_cached_tokens
        assert row.total_tokens == row.input_tokens + row.output_tokens
        assert row.reasoning_tokens <= row.output_tokens
        assert row.usage_state == "reported"


def test_mode_reason_and_eligible_agree(rows):
    for row in rows:
        assert (row.mode == "ws_incremental") == (row.reason == "ok")
        assert (row.mode == "http_full") == (row.reason == "ws_rejected")
        assert row.eligible == (row.reason not in NOT_ELIGIBLE)
        assert (row.evidence is not None) == (row.reason == "prefix_mismatch")
        assert (row.epoch_reset_reason is not None) == (row.reason == "epoch_reset")
        assert (row.connection is None) == (row.mode == "http_full")
        assert row.first_event_ms < row.ttft_ms <= row.duration_ms
        assert 0 < row.items_sent <= row.items_total
        assert row.bytes_sent <= row.bytes_total


def test_a_continued_turn_continues_the_turn_before_it(rows):
    last = {}
    for row in rows:
        before = last.get(row.session)
        if row.mode == "ws_incremental":
            assert row.previous_response_id == before.response_id
            assert row.prefix_digest == before.baseline_digest
            assert row.items_total == row.baseline_items + row.items_sent
            assert row.chain == before.chain
            assert row.connection == before.connection
        else:
            assert row.previous_response_id is None
            assert row.items_sent == row.items_total
        last[row.session] = row


def test_a_session_has_one_key_and_its_first_turn_has_nothing_to_continue(rows):
    keys = defaultdict(set)
    first = {}
    for row in rows:
        keys[row.session].add(row.session_key)
        first.setdefault(row.session, row)
    assert {len(found) for found in keys.values()} == {1}
    assert {row.reason for row in first.values()} == {"no_baseline", "ws_rejected"}


def test_one_afternoon_has_a_spike_of_mismatches(rows):
    hours = defaultdict(Counter)
    for row in rows:
        if row.eligible:
            hours[row.started_at // 3_600_000][row.reason] += 1
    ordered = sorted(hours)
    shares = [Share(hours[h]["prefix_mismatch"], hours[h].total()) for h in ordered]
    marked = {hour for hour, spike in zip(ordered, spikes(shares), strict=True) if spike}
    today = int(NOW // DAY) * 24
    assert marked == {today + hour for hour in range(*MISMATCHES)}


def test_one_morning_everything_goes_over_http(rows):
    today = NOW // DAY * DAY
    begin, end = (to_ms(today + hour * HOUR) for hour in REFUSALS)
    inside = [row for row in rows if begin <= row.started_at < end]
    outside = [row for row in rows if not begin <= row.started_at < end]
    assert len(inside) > 50
    assert {(row.mode, row.fallback_reason) for row in inside} == {("http_full", "upgrade_426")}
    assert {row.upstream for row in outside if row.mode == "http_full"} == {"http_only"}


@pytest.mark.parametrize("hour", range(24))
def test_the_planted_hours_are_whole_at_any_time_of_day(hour):
    rows = list(generate(START // DAY * DAY + hour * HOUR, days=2))
    assert sum(row.reason == "prefix_mismatch" for row in rows) > 20
    refused = [row for row in rows if row.upstream == "default" and row.reason == "ws_rejected"]
    assert len(refused) > 50


def test_rows_differ_in_what_they_say(rows):
    assert {row.reason for row in rows} >= {
        "ok",
        "no_baseline",
        "prefix_mismatch",
        "epoch_reset",
        "connection_lost",
        "non_input_fields_changed",
        "ws_rejected",
    }
