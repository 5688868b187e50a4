import json
from typing import Any

import pytest
from hypothesis import given, settings

from app.importers.claude_code import CLAUDE_CODE, recognizes
from app.importers.claude_code import read as read_transcript
from app.importers.importer import Remark, Skipped
from app.ledger.rows import TurnRow
from tests.support.grown import differing
from tests.support.importing import imported, read, stored, torn

T_MS = 1_800_000_000_000


def at(second: int) -> str:
    return f"2027-01-15T08:{second // 60:02}:{second % 60:02}.000Z"


def line(kind: str, second: int, **changes: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": f"{kind}-{second}",
        "parentUuid": None,
        "sessionId": "s1",
        "isSidechain": False,
        "version": "2.1.12",
        "timestamp": at(second),
    } | changes


def answer(
    number: int, second: int, output: int = 5, *, usage: Any = None, **changes: Any
) -> dict[str, Any]:
    """A line of the request ``number``."""
    told = {
        "input_tokens": 3,
        "cache_read_input_tokens": 88_936,
        "cache_creation_input_tokens": 406,
        "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 106},
        "output_tokens": output,
        "service_tier": "standard",
    }
    message = {
        "id": f"msg_{number}",
        "model": "claude-sonnet-4-5",
        "role": "assistant",
        "content": [{"type": "text", "text": "secret"}],
        "stop_reason": changes.pop("stop", None),
        "usage": told if usage is None else usage,
    } | changes.pop("message", {})
    given: dict[str, Any] = {"requestId": f"req_{number}", "message": message} | changes
    return line("assistant", second, **given)


def jsonl(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(found).encode() + b"\n" for found in lines)


def of(*lines: dict[str, Any]) -> list[Any]:
    return read(read_transcript, jsonl(*lines))


def test_seven_lines_of_three_requests_are_three_requests_with_their_last_output():
    found = of(
        answer(1, 1, 1), answer(1, 2, 4), answer(1, 3, 20),
        answer(2, 4, 7), answer(2, 5, 3),
        answer(3, 6, 8), answer(3, 7, 8),
    )  # fmt: skip
    assert ["msg_1", "msg_2", "msg_3"] == [row.response_id for row in found]
    assert [20, 7, 8] == [row.output_tokens for row in found]
    assert 3 * (3 + 88_936 + 406) == sum(row.input_tokens for row in found)


def test_input_counts_the_cache_in_and_writes_of_both_lengths_are_told():
    (row,) = of(answer(1, 1))
    assert (89_345, 88_936, 409, 406, 106, 5, 89_350, "reported") == (
        row.input_tokens, row.cached_tokens, row.non_cached_tokens, row.cache_write_tokens,
        row.cache_write_long_tokens, row.output_tokens, row.total_tokens, row.usage_state,
    )  # fmt: skip
    assert ("import:claude-code", "s1", "claude-sonnet-4-5", "anthropic", "2.1.12", "standard") == (
        row.source, row.session, row.model, row.upstream, row.client_version, row.service_tier
    )  # fmt: skip
    assert (None, None, None, None, False) == (
        row.mode, row.reason, row.ttft_ms, row.duration_ms, row.eligible
    )  # fmt: skip
    assert "secret" not in str(row)


def test_what_an_answer_does_not_tell_of_the_cache_is_unknown():
    (row,) = of(answer(1, 1, usage={"input_tokens": 9, "output_tokens": 2}))
    assert (9, None, None, None) == (
        row.input_tokens, row.cached_tokens, row.cache_write_tokens, row.cache_write_long_tokens
    )  # fmt: skip


def test_a_request_begins_with_the_line_that_it_answers_and_ends_with_its_last():
    asked = line("user", 10)
    (row,) = of(
        asked, answer(1, 13, parentUuid="user-10"), answer(1, 15, parentUuid="assistant-13")
    )
    assert (T_MS + 10_000, T_MS + 15_000) == (row.started_at, row.ended_at)
    (unknown,) = of(answer(1, 13, parentUuid="gone"))
    assert T_MS + 13_000 == unknown.started_at


def test_lines_of_requests_that_answer_at_the_same_time_are_told_apart():
    found = of(
        answer(1, 1, 1),
        answer(2, 2, 1, isSidechain=True, agentId="a"),
        line("user", 3),
        answer(1, 4, 9),
        answer(2, 5, 8, isSidechain=True, agentId="a"),
    )
    assert [("msg_1", 9), ("msg_2", 8)] == [(row.response_id, row.output_tokens) for row in found]


def test_side_chains_are_conversations_of_their_own_in_their_session():
    found = of(
        answer(1, 1),
        answer(2, 2, isSidechain=True, agentId="a"),
        answer(3, 3, isSidechain=True, agentId="b"),
        answer(4, 4, isSidechain=True, agentId="a"),
        line("user", 5, isSidechain=True),
        answer(5, 6, isSidechain=True, parentUuid="user-5"),
        answer(6, 7, isSidechain=True, parentUuid="assistant-6"),
        answer(7, 8),
    )
    names = [row.chain for row in found]
    assert names[0] == names[6]
    assert names[1] == names[3]
    assert names[4] == names[5]
    assert 4 == len(set(names))
    assert {"s1"} == {row.session for row in found}


def test_a_copy_of_a_history_is_the_same_requests():
    (original,) = of(answer(1, 1))
    (resumed,) = of(answer(1, 1, sessionId="s2"))
    (replayed,) = of(answer(1, 1, isSidechain=True, agentId="a"))
    assert original.turn_id == resumed.turn_id == replayed.turn_id
    (forked,) = of(answer(1, 1, sessionId="s2", forkedFrom={"sessionId": "s1"}))
    assert original == forked


@pytest.mark.parametrize("backwards", [False, True])
def test_a_side_chain_that_repeats_its_parent_takes_nothing_from_it(engine, tmp_path, backwards):
    replay = [answer(number, number, isSidechain=True, agentId="a") for number in (1, 3)]
    files = [tmp_path / "s1.jsonl", tmp_path / "agent-a.jsonl"]
    files[0].write_bytes(jsonl(answer(1, 1), answer(2, 2)))
    files[1].write_bytes(jsonl(*replay))
    for path in reversed(files) if backwards else files:
        imported(engine, path)
    found = sorted(stored(engine), key=lambda row: row.started_at)
    assert ["msg_1", "msg_2", "msg_3"] == [row.response_id for row in found]
    assert found[0].chain == found[1].chain != found[2].chain


def test_a_compaction_is_a_reset_of_the_next_request_of_its_chain_only():
    boundary = line("system", 3, subtype="compact_boundary", compactMetadata={"preTokens": 9})
    found = of(
        answer(1, 1),
        answer(2, 2),
        boundary,
        answer(3, 4, isSidechain=True, agentId="a"),
        answer(4, 5),
        answer(5, 6),
        line("system", 7, subtype="microcompact_boundary"),
        answer(6, 8),
    )
    assert [
        (1, 1, None), (1, 2, None), (1, 1, None), (2, 1, "compaction"), (2, 2, None),
        (3, 1, "microcompaction"),
    ] == [(row.epoch, row.epoch_turn, row.epoch_reset_reason) for row in found]  # fmt: skip


def test_what_is_no_request_is_told():
    found = of(
        answer(1, 1, message={"model": "<synthetic>"}),
        answer(2, 2, message={"usage": None}),
        answer(3, 3, timestamp="soon"),
        {"type": "file-history-snapshot"},
        {"type": "summary", "leafUuid": "x"},
    )
    assert [
        "line 1: is an answer that the tool wrote itself",
        "line 2: is an answer without usage",
        "line 3: timestamp is no time in ISO 8601 with Z or an offset",
    ] == [str(item) for item in found]


def test_an_answer_that_was_cut_is_incomplete_and_the_providers_diagnosis_is_kept():
    why = {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 5}}
    first, second = of(
        answer(1, 1, stop="max_tokens"),
        answer(2, 2, stop="end_turn", message={"diagnostics": why}),
    )
    assert ("incomplete", None) == (first.status, first.provider_miss_reason)
    assert ("completed", "tools_changed") == (second.status, second.provider_miss_reason)


def test_an_answer_without_ids_is_known_by_its_line():
    bare = {"requestId": None, "message": {"id": None}}
    found = of(answer(1, 1, **bare), answer(1, 2, **bare))
    assert 2 == len({row.turn_id for row in found})


def test_a_row_is_the_same_whatever_was_before_it():
    lines = [answer(number, number) for number in range(1, 100)]
    whole = of(*lines)
    assert 99 == len(whole)
    assert whole[98].turn_id == of(lines[98])[0].turn_id


def test_it_is_recognized_also_behind_other_lines_and_in_a_line_that_is_too_long():
    assert recognizes(jsonl({"type": "summary", "leafUuid": "x"}, line("user", 1)))
    compact = json.dumps(line("user", 1, message="x" * 99), separators=(",", ":")).encode()
    assert recognizes(compact[:-50])
    assert not recognizes(b'{"sessionId":"s"}\n')
    assert not recognizes(jsonl({"text": compact.decode()}))


def test_what_is_read_while_it_is_written_changes_nothing_when_it_is_read_again():
    data = jsonl(
        line("user", 1),
        answer(1, 2, 1, parentUuid="user-1"),
        answer(2, 3, 1, isSidechain=True, agentId="a"),
        answer(1, 4, 30, stop="max_tokens"),
        line("system", 5, subtype="compact_boundary"),
        answer(2, 6, 8, isSidechain=True, agentId="a"),
        answer(3, 7, 9),
    )
    assert [] == differing(read_transcript, data)


@settings(max_examples=60)
@given(torn(jsonl(answer(1, 1), line("user", 2), answer(1, 3), answer(2, 4, isSidechain=True))))
def test_whatever_has_become_of_a_file_it_is_read_or_told(data: bytes):
    found = read(CLAUDE_CODE.read, data)
    assert all(isinstance(item, TurnRow | Skipped | Remark) for item in found)
