"""The shapes of IMPORTS 1.4 and 4.4, small and made by hand."""

import json

import pytest

from app.analysis.verdicts import judge
from app.importers.json_lines import inner
from tests.support.rollouts import (
    BEGAN,
    THREAD,
    Rollout,
    added,
    inputs,
    recorded,
    rows,
    skipped,
    thread,
    usage,
)

MS = round(BEGAN.timestamp() * 1_000)


def verdicts(found):
    judged = judge(found)
    return [str(judged[row.turn_id].verdict) for row in found]


# Counts


def test_each_count_is_one_request_however_often_it_is_written():
    file = Rollout().sent().counted(usage(5_000, 0)).counted(usage(5_000, 0), total=usage(5_000, 0))
    file.sent().counted(usage(5_400, 4_992))
    assert [5_000, 5_400] == inputs(rows(file))
    assert ["line 4: repeats a count that was there before"] == skipped(file)


def test_what_a_row_of_a_count_tells_and_what_it_does_not():
    file = Rollout(source="cli").context().sent().counted(
        usage(5_000, 4_096, 30, reasoning_output_tokens=20, cache_write_input_tokens=64), at=9
    )  # fmt: skip
    (row,) = rows(file)
    shown = {
        "source": "import:codex", "session": THREAD, "root_session": THREAD, "status": "completed",
        "client": "codex_cli_rs", "client_version": "0.99.0", "upstream": "openai",
        "model": "gpt-5.5", "reasoning_effort": "high", "kind": "generation", "epoch": 1,
        "epoch_turn": 1, "input_tokens": 5_000, "cached_tokens": 4_096, "cache_write_tokens": 64,
        "non_cached_tokens": 904, "output_tokens": 30, "reasoning_tokens": 20,
        "total_tokens": 5_030, "usage_state": "reported", "started_at": MS + 2_000,
        "ended_at": MS + 9_000, "tenant": "", "session_key": "", "eligible": False,
    }  # fmt: skip
    assert shown == {name: getattr(row, name) for name in shown}
    unknown = (
        "mode reason ttft_ms duration_ms response_id prompt_cache_key attempts service_tier "
        "client_transport turn_group previous_response_id store epoch_reset_reason error_code"
    )
    assert {None} == {getattr(row, name) for name in unknown.split()}


def test_a_count_of_rate_limits_alone_is_no_request():
    file = Rollout().event("token_count", info=None, rate_limits={}).sent().counted(usage(2_000))
    assert [2_000] == inputs(rows(file))


def test_the_estimate_after_a_compaction_is_no_request():
    file = Rollout().sent().counted(usage(90_000))
    file.line("compacted", {"message": "", "replacement_history": []})
    file.counted({**usage(0, 0, 0), "total_tokens": 6_064}, total=file.total)
    file.counted(usage(0, 0, 0), total={**usage(0, 0, 0), "total_tokens": 12_000})
    file.sent().counted(usage(7_000))
    found = rows(file)
    assert ([90_000, 7_000], [None, "compaction"]) == (
        inputs(found),
        [row.epoch_reset_reason for row in found],
    )


def test_a_compaction_that_lowers_the_total_charges_what_was_used():
    """Five requests; the one after the compaction by its own figures."""
    file = Rollout()
    for given, cached in ((20_000, 0), (21_000, 19_968), (22_000, 20_992)):
        file.sent().counted(usage(given, cached))
    file.line("compacted", {"message": ""}).event("context_compacted")
    lowered = usage(30_000, 20_000)
    file.sent().counted(usage(9_000, 0), total=lowered)
    file.sent().counted(usage(9_500, 8_960), total=added(lowered, usage(9_500, 8_960)))
    found = rows(file)
    assert [20_000, 21_000, 22_000, 9_000, 9_500] == inputs(found)
    assert [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)] == [(r.epoch, r.epoch_turn) for r in found]
    assert ["cold_start", "hit", "hit", "history_rewrite", "hit"] == verdicts(found)
    assert "proven" == judge(found)[found[3].turn_id].grade


def test_a_rollback_is_told_to_the_next_request():
    file = Rollout().sent().counted(usage(5_000)).sent().counted(usage(5_100))
    file.event("thread_rolled_back", num_turns=1).sent().counted(usage(5_050))
    assert [None, None, "rollback"] == [row.epoch_reset_reason for row in rows(file)]


def test_days_get_what_was_used_on_them():
    """CASES 93."""
    day = 86_400
    file = Rollout().counted(None, total=usage(1_000, out=0), at=0)
    file.counted(None, total=usage(1_600, out=0), at=2 * day)
    assert [(MS, 1_000), (MS + 2 * day * 1_000, 600)] == [
        (row.started_at, row.input_tokens) for row in rows(file)
    ]


def test_a_first_request_may_read_what_other_sessions_share():
    file = Rollout().sent().counted({}, total=usage(11_500, 11_008, cache_write_input_tokens=200))
    file.sent().counted({}, total=usage(23_300, 22_400, 20, cache_write_input_tokens=0))
    found = rows(file)
    assert [(11_500, 11_008, 200), (11_800, 11_392, 0)] == [
        (row.input_tokens, row.cached_tokens, row.cache_write_tokens) for row in found
    ]
    assert ["shared_prefix", "hit"] == verdicts(found)


def test_cached_tokens_that_are_not_told_are_unknown_and_more_than_all_are_cut():
    file = Rollout().sent().counted(usage(5_000, None)).sent().counted(usage(5_000, 9_000))
    one, other = rows(file)
    assert (None, None, "reported") == (one.cached_tokens, one.non_cached_tokens, one.usage_state)
    assert (5_000, 0, "inconsistent") == (
        other.cached_tokens, other.non_cached_tokens, other.usage_state,
    )  # fmt: skip


def test_lines_that_go_back_in_time_end_before_they_begin_nowhere():
    file = Rollout().sent().counted(usage(5_000), at=-0.4)
    (row,) = rows(file)
    assert row.started_at == row.ended_at == MS - 400


# Records


def test_where_there_are_records_counts_tell_nothing_more():
    found = rows(recorded("turn-1"))
    assert [("resp_1", 9_000), ("resp_2", 9_500), ("resp_3", 9_900)] == [
        (row.response_id, row.input_tokens) for row in found
    ]
    assert {"turn-1"} == {row.turn_group for row in found}
    assert [] == skipped(recorded("turn-1"))


def test_a_record_that_a_compaction_repeats_is_none():
    file = recorded()
    record = inner(json.loads(file.lines[-3]).get("payload"))
    file.line(
        "compacted", {"compaction_response_id": "resp_3", "latest_token_usage_record": record}
    )
    found = rows(file.sent().recorded(usage(2_000), "resp_4"))
    assert ["generation", "generation", "compaction", "generation"] == [row.kind for row in found]
    assert [None, None, None, "compaction"] == [row.epoch_reset_reason for row in found]


def test_a_record_that_is_written_again_counts_once():
    file = recorded()
    number = next(n for n, line in enumerate(file.lines) if b"resp_2" in line)
    file.raw(file.lines[number])
    assert 3 == len(rows(file))
    assert [f"line {len(file.lines)}: repeats a record that was there before"] == skipped(file)


def test_ids_that_a_provider_uses_again_do_not_make_one_of_two_responses():
    file = Rollout().recorded(usage(2_000), "").recorded(usage(2_000), "").recorded(usage(9), "r")
    assert 3 == len({row.turn_id for row in rows(file)})
    other = Rollout(thread(2)).recorded(usage(2_000), "")
    assert not {row.turn_id for row in rows(other)} & {row.turn_id for row in rows(file)}


def test_a_client_that_was_updated_between_two_turns_loses_and_doubles_nothing():
    file = Rollout().sent().counted(usage(5_000)).sent().counted(usage(5_500))
    file.sent().recorded(usage(6_000), "resp_1").counted(usage(6_000), total=file.total)
    found = rows(file)
    assert [5_000, 5_500, 6_000] == inputs(found)
    assert [None, None, "resp_1"] == [row.response_id for row in found]


def test_a_response_that_both_sources_tell_of_where_they_meet_counts_once():
    file = Rollout().sent().counted(usage(5_000))
    file.total = {}
    assert [("resp_1", 5_000)] == [
        (row.response_id, row.input_tokens) for row in rows(file.recorded(usage(5_000), "resp_1"))
    ]


def test_usage_of_zeros_is_no_usage():
    (row,) = rows(Rollout().recorded(usage(0, 0, 0), "resp_1"))
    assert ("missing", None, None) == (row.usage_state, row.input_tokens, row.cached_tokens)


def test_the_root_of_a_sub_agent_is_the_session_that_it_names():
    file = Rollout(thread(2), session_id=THREAD).recorded(usage(2_000), "r", session_id=THREAD)
    assert [(thread(2), THREAD)] == [(row.session, row.root_session) for row in rows(file)]
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": THREAD, "depth": 1}}}
    older = Rollout(thread(2), source=spawned).sent().counted(usage(2_000))
    assert [(thread(2), THREAD)] == [(row.session, row.root_session) for row in rows(older)]


# Turns


def test_time_to_first_token_is_that_of_the_first_request_of_its_turn():
    file = recorded("turn-1").done("turn-1", time_to_first_token_ms=78, duration_ms=741)
    file.started("turn-2").sent().answered().recorded(usage(9_999), "r")
    file.done("turn-2", time_to_first_token_ms={"secs": 1, "nanos": 5_000_000})
    assert [78.0, None, None, 1_005.0] == [row.ttft_ms for row in rows(file)]
    assert {None} == {row.duration_ms for row in rows(file)}


def test_the_end_of_another_turn_ends_nothing():
    file = recorded("turn-1").done("turn-0", time_to_first_token_ms=78)
    assert {None} == {row.ttft_ms for row in rows(file)}
    file.done("turn-1", time_to_first_token_ms=5)
    assert [5.0, None, None] == [row.ttft_ms for row in rows(file)]


def test_a_turn_that_began_with_a_compaction_tells_no_time_to_first_token():
    file = Rollout().started("t").recorded(usage(9_000), "c")
    file.line("compacted", {"compaction_response_id": "c"}).sent().recorded(usage(2_000), "r")
    file.done("t", time_to_first_token_ms=78)
    assert [("compaction", None), ("generation", None)] == [
        (row.kind, row.ttft_ms) for row in rows(file)
    ]


def test_a_turn_that_ended_with_an_error_of_the_request_is_a_row_of_it():
    file = Rollout().context().started("t").sent().answered()
    file.event("token_count", info=None).answered()
    file.done("t", time_to_first_token_ms=51, error={"message": "x", "codex_error_info": "other"})
    (row,) = rows(file)
    assert ("error", "other", "missing", 51.0, "t", "gpt-5.5", None) == (
        row.status, row.error_code, row.usage_state, row.ttft_ms, row.turn_group, row.model,
        row.input_tokens,
    )  # fmt: skip
    assert (MS + 2_000, MS + 7_000) == (row.started_at, row.ended_at)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ("usage_limit_exceeded", ("rate_limited", "usage_limit_exceeded", None)),
        (
            {"http_connection_failed": {"http_status_code": 429}},
            ("rate_limited", "http_connection_failed", 429),
        ),
        (
            {"response_stream_disconnected": {"http_status_code": None}},
            ("error", "response_stream_disconnected", None),
        ),
        ("sandbox_error", None),
        (None, None),
    ],
)
def test_an_error_is_a_request_only_where_one_is_known_to_have_been_sent(info, expected):
    file = Rollout().started("t").sent()
    file.event("error", message="x", codex_error_info=info).done("t")
    found = [(row.status, row.error_code, row.http_status) for row in rows(file)]
    assert found == ([] if expected is None else [expected])


def test_a_turn_that_was_aborted_while_it_was_answered_is_a_row():
    file = recorded("t").sent().answered().event("turn_aborted", turn_id="t", reason="interrupted")
    assert ["completed"] * 3 + ["client_closed"] == [row.status for row in rows(file)]
    quiet = recorded("t").sent().event("turn_aborted", turn_id="t", reason="interrupted")
    assert ["completed"] * 3 == [row.status for row in rows(quiet)]


def test_items_that_older_files_write_after_their_count_are_no_request():
    file = Rollout().started("t").sent().counted(usage(5_000)).sent().answered()
    file.event("turn_aborted", turn_id="t", reason="interrupted")
    assert ["completed"] == [row.status for row in rows(file)]


def test_an_answer_without_usage_is_a_request_of_unknown_usage():
    file = Rollout().started("t").sent().answered().done("t")
    (row,) = rows(file)
    assert ("completed", "missing", None) == (row.status, row.usage_state, row.input_tokens)


def test_model_and_effort_are_those_of_the_turn_and_the_tier_that_of_the_thread():
    file = Rollout()
    chosen = {"model": "one", "service_tier": "flex", "reasoning_effort": "xhigh"}
    file.event("thread_settings_applied", thread_settings=chosen).counted(usage(5_000))
    file.context("two").counted(usage(5_001))
    mode = {"collaboration_mode": {"settings": {"reasoning_effort": "low"}}}
    file.line("turn_context", {"model": "three", **mode}).counted(usage(5_002))
    file.event("thread_settings_applied", thread_settings={"model": "four"})
    file.counted(usage(5_003)).line("turn_context", {"model": "four"}).counted(usage(5_004))
    assert [
        ("one", "xhigh", "flex"),
        ("two", "high", "flex"),
        ("three", "low", "flex"),
        ("three", "low", None),
        ("four", None, None),
    ] == [(row.model, row.reasoning_effort, row.service_tier) for row in rows(file)]


def test_rows_of_an_endless_turn_do_not_all_wait_for_its_end(monkeypatch):
    monkeypatch.setattr("app.importers.codex_rows._HELD", 2)
    file = Rollout().started("t")
    for number in range(5):
        file.sent().recorded(usage(2_000 + number), f"r{number}")
    file.done("t", time_to_first_token_ms=9)
    assert [(2_000 + n, None) for n in range(5)] == [
        (row.input_tokens, row.ttft_ms) for row in rows(file)
    ]
