import json
from typing import Any

import pytest
from hypothesis import given, settings

from app.analysis.verdicts import judge
from app.importers.importer import Around, Remark, Skipped
from app.importers.lingtai import LINGTAI, read, read_around
from app.ledger.rows import TurnRow
from tests.support.grown import differing
from tests.support.importing import imported, lines_of, stored, torn

T_MS = 1_800_000_000_000


def record(second: int = 0, /, **changes: Any) -> dict[str, Any]:
    minutes, seconds = divmod(second, 60)
    return {
        "source": "main",
        "codex_session_id": "s1",
        "codex_prompt_cache_key": "s1",
        "codex_transport": "websocket",
        "codex_request_mode": "ws_incremental",
        "codex_transfer_mode": "incremental",
        "codex_store": "false",
        "codex_ws_delta_reason": "ok",
        "codex_ws_baseline_len": "41",
        "codex_ws_cur_input_len": "43",
        "codex_ws_delta_len": "2",
        "codex_ws_mismatch_index": "-1",
        "codex_previous_response_id": "resp_1",
        "api_call_id": f"api_{second}",
        "ts": f"2027-01-15T08:{minutes:02}:{seconds:02}Z",
        "input": 90_412,
        "output": 611,
        "thinking": 402,
        "cached": 89_088,
        "model": "gpt-5.5",
        "endpoint": "https://user:secret@chatgpt.com/backend-api/codex",
    } | changes


FULL = {"codex_request_mode": "ws_full", "codex_transfer_mode": "full", "codex_ws_delta_len": "0"}
REST = {"codex_transport": "rest", "codex_previous_response_id": ""}


def jsonl(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(given).encode() + b"\n" for given in records)


def items(*records: dict[str, Any], events: list[dict[str, Any]] | None = None) -> list[Any]:
    beside = {"events.jsonl": jsonl(*({"type": "x"}, *(events or [])))}
    around = Around(beside=lambda name: lines_of(beside[name]))
    return list(read_around(lines_of(jsonl(*records)), around))


def rows(*records: dict[str, Any], events: list[dict[str, Any]] | None = None) -> list[TurnRow]:
    found = items(*records, events=events)
    assert all(isinstance(item, TurnRow) for item in found), found
    return found


def test_a_call_is_told_with_all_that_its_line_says():
    (row,) = rows(record())
    assert ("import:lingtai", "lingtai", "s1", "gpt-5.5", "chatgpt.com") == (
        row.source, row.client, row.session, row.model, row.upstream
    )  # fmt: skip
    assert (90_412, 89_088, 1_324, 611, 402, 91_023, "reported") == (
        row.input_tokens, row.cached_tokens, row.non_cached_tokens, row.output_tokens,
        row.reasoning_tokens, row.total_tokens, row.usage_state,
    )  # fmt: skip
    assert ("ws_incremental", "ok", True, None, None) == (
        row.mode, row.reason, row.eligible, row.shadow_mode, row.fallback_reason
    )  # fmt: skip
    assert (41, 43, 2, "resp_1", "s1", False) == (
        row.baseline_items, row.items_total, row.items_sent, row.previous_response_id,
        row.prompt_cache_key, row.store,
    )  # fmt: skip
    assert (T_MS, T_MS, None, None) == (row.started_at, row.ended_at, row.ttft_ms, row.duration_ms)
    assert (1, 1, None) == (row.epoch, row.epoch_turn, row.epoch_reset_reason)
    assert "secret" not in str(row)


def test_over_rest_the_plan_is_no_wire_delta_but_tells_whether_the_prefix_was_unchanged():
    same, changed = rows(
        record(0, **REST, codex_request_mode="rest_incremental"),
        record(1, **REST, **FULL | {"codex_request_mode": "rest_full"},
               codex_ws_delta_reason="prefix_mismatch"),
    )  # fmt: skip
    assert ("http_full", "continuation_off", "ws_incremental", "ok", False, 43, None) == (
        same.mode, same.reason, same.shadow_mode, same.shadow_reason, same.eligible,
        same.items_sent, same.previous_response_id,
    )  # fmt: skip
    assert ("http_full", "continuation_off", "ws_full", "prefix_mismatch") == (
        changed.mode, changed.reason, changed.shadow_mode, changed.shadow_reason
    )  # fmt: skip


def test_a_socket_that_could_not_be_opened_was_a_post_whatever_the_tool_calls_it():
    (row,) = rows(record(**FULL, codex_fallback_error_type="TimeoutError"))
    assert ("http_full", "ws_unavailable", "TimeoutError", False, 43) == (
        row.mode, row.reason, row.fallback_reason, row.eligible, row.items_sent
    )  # fmt: skip


@pytest.mark.parametrize(
    ("word", "transport", "transfer", "mode", "fallback"),
    [
        ("ws_full", "websocket", "full", "ws_full", None),
        ("http_full", None, None, "http_full", None),
        ("rest_full", "rest", "full", "http_full", None),
        ("rest_full_fallback", "rest", "full", "http_full", "rest_full_fallback"),
        ("rest_full_self_heal", "rest", "full", "http_full", "rest_full_self_heal"),
        ("stateless_full_fallback", None, None, "http_full", "stateless_full_fallback"),
        ("stateless_full_store_forced_false", None, None, "http_full", None),
        ("of_2030", "websocket", "incremental", "ws_incremental", None),
        ("of_2030", "rest", "incremental", "http_full", None),
        ("of_2030", None, None, None, None),
        (None, None, None, None, None),
    ],
)
def test_each_mode_is_the_wire_that_it_was(word, transport, transfer, mode, fallback):
    (row,) = rows(
        record(
            codex_request_mode=word, codex_transport=transport, codex_transfer_mode=transfer
        )
    )  # fmt: skip
    assert (mode, fallback) == (row.mode, row.fallback_reason)


@pytest.mark.parametrize(
    ("word", "reason", "could"),
    [
        ("ok", "ok", True),
        ("no_baseline", "no_baseline", False),
        ("prefix_mismatch", "prefix_mismatch", True),
        ("non_input_fields_changed", "non_input_fields_changed", True),
        ("missing_output_items", "missing_output_items", True),
        ("empty_delta_rejected", "empty_delta", True),
        ("missing_baseline_request", "missing_baseline_request", False),
        ("epoch_reset", "epoch_reset", False),
        ("", None, False),
    ],
)
def test_reasons_keep_their_words_where_we_have_no_other(word, reason, could):
    (row,) = rows(record(**FULL, codex_ws_delta_reason=word))
    assert (reason, could) == (row.reason, row.eligible)


def test_a_mismatch_says_where_without_what():
    parted, shorter, fields = rows(
        record(0, **FULL, codex_ws_delta_reason="prefix_mismatch", codex_ws_mismatch_index="17",
               codex_ws_mismatch_prev_type="function_call_output", codex_ws_mismatch_cur_type="",
               codex_ws_mismatch_cur_role="user", codex_ws_mismatch_prev_hash="0a91c4e2b7d3"),
        record(1, **FULL | {"codex_ws_cur_input_len": "30"}, codex_ws_mismatch_index="30"),
        record(2, **FULL, codex_ws_delta_reason="non_input_fields_changed",
               codex_ws_changed_fields="tools,include"),
    )  # fmt: skip
    assert (17, "function_call_output", None) == (
        parted.diverged_at, parted.diverged_kind, parted.diverged_class
    )  # fmt: skip
    assert {
        "index": 17, "kind_before": "function_call_output", "kind_now": "message:user",
        "length_before": 41, "length_now": 43,
    } == parted.evidence_object  # fmt: skip
    assert (30, "truncated_tail") == (shorter.diverged_at, shorter.diverged_class)
    assert (None, ("tools", "include")) == (fields.evidence, fields.changed_field_names)


def test_resets_and_compactions_begin_epochs_and_tell_the_tools_word():
    reset = {"codex_ws_delta_reason": "epoch_reset"}
    found = rows(
        record(0, codex_ws_delta_reason="no_baseline"),
        record(1),
        record(2, **FULL, **reset, codex_ws_epoch_reset_reason="summarize_delayed"),
        record(3),
        record(4, **FULL, **reset, codex_ws_epoch_reset_reason=""),
        record(5, codex_compacted="true"),
        record(6, codex_compacted="true"),
    )
    assert [
        (1, 1, None),
        (1, 2, None),
        (2, 1, "summarize_delayed"),
        (2, 2, None),
        (3, 1, "epoch_reset"),
        (4, 1, "compaction"),
        (4, 2, None),
    ] == [(row.epoch, row.epoch_turn, row.epoch_reset_reason) for row in found]


def test_molts_and_refreshes_of_the_events_are_resets_of_the_agents_own_talk_only():
    epoch = T_MS / 1000
    found = rows(
        record(0),
        record(2, source="soul"),
        record(4),
        record(6),
        events=[{"type": "psyche_molt", "ts": epoch + 1.5}, {"type": "refresh_complete", "ts": epoch + 5}],
    )  # fmt: skip
    assert [None, None, "molt", "refresh"] == [row.epoch_reset_reason for row in found]


def test_the_events_tell_how_long_a_call_took_and_which_figures_are_estimates():
    timed, estimate = items(
        record(5),
        record(6),
        events=[
            {"type": "llm_response", "api_call_id": "api_5", "provider_wait_ms": 2_500},
            {"type": "llm_response", "api_call_id": "api_6", "estimated": True},
        ],
    )
    assert (T_MS + 2_500, T_MS + 5_000, 2_500.0) == (
        timed.started_at, timed.ended_at, timed.duration_ms
    )  # fmt: skip
    assert "line 2: is an estimate of the tool's, not the provider's figure" == str(estimate)


def test_without_the_events_it_is_said_what_is_not_known():
    remark, row = read(lines_of(jsonl(record())))
    assert isinstance(remark, Remark)
    assert "no events.jsonl" in remark.text
    assert isinstance(row, TurnRow)


def test_the_soul_and_summaries_are_no_turns_of_the_agents_talk():
    sources = [None, "main", "tc_wake", "heal", "notification_sync", "soul", "summarize"]
    found = rows(*(record(at, source=source) for at, source in enumerate(sources)))
    assert 1 == len({row.chain for row in found[:5]})
    assert 3 == len({row.chain for row in found})
    assert {"s1"} == {row.session for row in found}
    assert ["generation"] * 6 + ["compaction"] == [row.kind for row in found]


def test_a_daemons_call_is_one_row_whichever_ledger_it_is_read_from():
    daemon = {"source": "daemon", "em_id": "e", "run_id": "run_7", "codex_session_id": None}
    parents = record(3, **daemon, api_call_id="api_x")
    own = record(3, **daemon, api_call_id=None)
    (one,), (other,) = rows(parents), rows(own)
    assert one.turn_id == other.turn_id
    assert "run_7" == one.session
    twice = rows(own, own, record(3, **daemon | {"run_id": "run_8"}))
    assert 3 == len({row.turn_id for row in twice})


def test_old_rows_have_what_they_have():
    old = {"ts": "2026-01-15T08:00:00Z", "input": 3, "output": 4}
    first, again, zero = rows(old, old, old | {"input": 0, "output": 0})
    assert (3, None, 4, None, None, None, "unknown", False) == (
        first.input_tokens, first.cached_tokens, first.output_tokens, first.mode, first.reason,
        first.model, first.upstream, first.eligible,
    )  # fmt: skip
    assert first.turn_id != again.turn_id
    assert ("missing", None) == (zero.usage_state, zero.input_tokens)
    assert first.session == again.session
    assert first.session.startswith("ledger-")
    (elsewhere,) = rows(old | {"input": 5})
    assert elsewhere.session != first.session


def test_figures_that_cannot_be_are_marked_and_reasoning_outside_the_output_is_not_counted():
    (net,) = rows(record(input=100, cached=5_000))
    assert ("inconsistent", 100) == (net.usage_state, net.cached_tokens)
    (outside,) = rows(record(output=5, thinking=50))
    assert (None, 5, "reported") == (
        outside.reasoning_tokens, outside.output_tokens, outside.usage_state
    )  # fmt: skip


def test_a_line_without_a_time_is_skipped_and_a_torn_one_is_told():
    data = jsonl({"ts": "now", "input": 1, "output": 1}, record()) + b'{"ts":'
    _, no_time, row, torn_line = read(lines_of(data))
    assert "line 1: ts is no time in ISO 8601 with Z or an offset" == str(no_time)
    assert isinstance(row, TurnRow)
    assert Skipped(3, "ends within its record") == torn_line


def test_a_row_is_the_same_whatever_was_before_it_in_the_file():
    whole = rows(*(record(at) for at in range(4)))
    (last,) = rows(record(3))
    assert last.turn_id == whole[3].turn_id


def test_an_import_of_a_folder_opens_the_events_beside_the_ledger(engine, tmp_path):
    folder = tmp_path / "agents"
    logs = folder / "a" / "logs"
    logs.mkdir(parents=True)
    (logs / "token_ledger.jsonl").write_bytes(jsonl(record(5)))
    events = jsonl({"type": "llm_response", "api_call_id": "api_5", "provider_wait_ms": 700})
    (logs / "events.jsonl").write_bytes(events)
    (folder / "events.jsonl").write_bytes(events)
    report = imported(engine, folder)
    assert 1 == report.ignored, "the one with no ledger beside it"
    assert [700.0] == [row.duration_ms for row in stored(engine)]
    assert ["lingtai"] == [file.format for file in report.files]
    assert [] == report.files[0].remarks


def test_what_is_read_while_it_is_written_changes_nothing_when_it_is_read_again():
    old = {"ts": "2026-01-15T08:00:00Z", "input": 3, "output": 4}
    reset = {"codex_ws_delta_reason": "epoch_reset"}
    data = jsonl(old, old, record(1), record(2, **reset), record(3, source="daemon", run_id="r"))
    assert [] == differing(read, data)


def test_what_the_tool_found_over_rest_is_what_the_verdicts_are_made_of():
    def rest(second: int, tokens: int, cached: int, reason: str = "ok", **changes: Any) -> Any:
        word = "rest_incremental" if reason == "ok" else "rest_full"
        told = {"codex_request_mode": word, "codex_ws_delta_reason": reason}
        return record(second, **REST, **told, input=tokens, cached=cached, **changes)

    found = rows(
        rest(0, 20_000, 0, "no_baseline"),
        rest(10, 21_000, 19_968),
        rest(20, 22_000, 0),
        rest(30, 23_000, 21_888),
        rest(40, 24_000, 5_000, "prefix_mismatch"),
        rest(50, 25_000, 23_936),
        rest(60, 20_000, 2_000, "epoch_reset", codex_ws_epoch_reset_reason="summarize_delayed"),
    )
    judged = judge(found)
    assert [
        ("cold_start", "proven"), ("hit", "proven"), ("one_off_full", "proven"), ("hit", "proven"),
        ("prefix_changed", "proven"), ("hit", "proven"), ("history_rewrite", "proven"),
    ] == [
        (judged[row.turn_id].verdict, judged[row.turn_id].grade) for row in found
    ]  # fmt: skip


@settings(max_examples=60)
@given(torn(jsonl(record(0), record(1, **FULL), record(2, source="daemon", run_id="r"))))
def test_whatever_has_become_of_a_file_it_is_read_or_told(data: bytes):
    found = list(LINGTAI.read(lines_of(data)))
    assert all(isinstance(item, TurnRow | Skipped | Remark) for item in found)
