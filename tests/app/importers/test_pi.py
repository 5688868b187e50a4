import json
from typing import Any

import pytest
from hypothesis import given, settings

from app.importers.importer import Remark, Skipped
from app.importers.pi import PI, recognizes
from app.importers.pi import read as read_session
from app.ledger.rows import TurnRow
from tests.support.grown import differing
from tests.support.importing import read, torn

T_MS = 1_800_000_000_000
HEADER = {
    "type": "session", "version": 3, "id": "s1", "timestamp": "2027-01-15T08:00:00.000Z",
    "cwd": "/secret",
}  # fmt: skip


def at(second: int) -> str:
    return f"2027-01-15T08:{second // 60:02}:{second % 60:02}.000Z"


def entry(kind: str, second: int, parent: Any, **changes: Any) -> dict[str, Any]:
    """An entry whose id is its second."""
    return {
        "type": kind,
        "id": str(second),
        "parentId": None if parent is None else str(parent),
        "timestamp": at(second),
    } | changes


def asked(second: int, parent: Any) -> dict[str, Any]:
    return entry("message", second, parent, message={"role": "user", "content": "secret"})


def answer(second: int, parent: Any, **changes: Any) -> dict[str, Any]:
    usage = {
        "input": 100,
        "output": 20,
        "cacheRead": 9_000,
        "cacheWrite": 400,
        "totalTokens": 9_520,
    }
    message = {
        "role": "assistant",
        "content": [{"type": "text", "text": "secret"}],
        "provider": "openai-codex",
        "model": "gpt-5.5",
        "usage": usage | changes.pop("usage", {}),
        "stopReason": "stop",
        "responseId": f"resp_{second}",
        "timestamp": T_MS + second * 1_000 - 2_500,
    } | changes
    return entry("message", second, parent, message=message)


def of(*entries: dict[str, Any], header: dict[str, Any] = HEADER) -> list[Any]:
    return read(
        read_session, b"".join(json.dumps(found).encode() + b"\n" for found in (header, *entries))
    )


def resets(*entries: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(row.epoch, row.epoch_turn, row.epoch_reset_reason) for row in of(*entries)]


def test_an_answer_is_a_request_and_its_input_counts_the_cache_in():
    (row,) = of(asked(1, None), answer(5, 1, usage={"cacheWrite1h": 50, "reasoning": 7}))
    assert (9_500, 9_000, 500, 400, 50, 20, 7, 9_520, "reported") == (
        row.input_tokens, row.cached_tokens, row.non_cached_tokens, row.cache_write_tokens,
        row.cache_write_long_tokens, row.output_tokens, row.reasoning_tokens, row.total_tokens,
        row.usage_state,
    )  # fmt: skip
    assert ("import:pi", "pi", "s1", "openai-codex", "gpt-5.5", "resp_5") == (
        row.source, row.client, row.session, row.upstream, row.model, row.response_id
    )  # fmt: skip
    assert (T_MS + 2_500, T_MS + 5_000, None, None, None) == (
        row.started_at, row.ended_at, row.ttft_ms, row.duration_ms, row.mode
    )  # fmt: skip
    assert "secret" not in str(row)


def test_oh_my_pi_tells_the_time_to_the_first_token_and_the_duration():
    (row,) = of(answer(5, None, ttft=410.5, duration=2_400))
    assert ("oh-my-pi", 410.5, 2_400.0) == (row.client, row.ttft_ms, row.duration_ms)
    assert (T_MS + 2_500, T_MS + 5_000) == (row.started_at, row.ended_at)


def test_a_line_of_answers_is_one_epoch():
    found = [asked(1, None), answer(2, 1), asked(3, 2), answer(4, 3), answer(5, 4)]
    assert [(1, 1, None), (1, 2, None), (1, 3, None)] == resets(*found)
    assert 1 == len({row.chain for row in of(*found)})


def test_who_goes_back_goes_on_from_there_and_not_from_the_line_before():
    assert [
        (1, 1, None), (1, 2, None), (2, 1, "branch"), (2, 2, None), (3, 1, "branch"),
    ] == resets(
        asked(1, None), answer(2, 1), asked(3, 2), answer(4, 3),
        asked(5, 2), answer(6, 5), answer(7, 6),  # back before 3
        asked(8, 4), answer(9, 8),  # and forth again
    )  # fmt: skip
    assert [(1, 1, None), (2, 1, "branch")] == resets(answer(1, None), answer(2, None))


def test_compactions_summaries_of_branches_and_resets_rewrite_what_is_sent_next():
    assert [
        (1, 1, None), (2, 1, "compaction"), (2, 2, None), (3, 1, "branch"), (4, 1, "reset"),
    ] == resets(
        answer(1, None), entry("compaction", 2, 1, tokensBefore=9), asked(3, 2), answer(4, 3),
        answer(5, 4), entry("branch_summary", 6, 1, fromId="5"), answer(7, 6),
        entry("reset_boundary", 8, 7), answer(9, 8),
    )  # fmt: skip


def test_the_request_that_made_a_summary_is_counted_where_it_is_told():
    tail = [answer(1, None)["message"]]
    usage = {"input": 5_000, "output": 300, "cacheRead": 0, "cacheWrite": 0}
    first, summary, last = of(
        answer(1, None), entry("compaction", 2, 1, usage=usage, retainedTail=tail), answer(3, 2)
    )
    assert ("compaction", 5_000, 0, 300, "openai-codex") == (
        summary.kind, summary.input_tokens, summary.cached_tokens, summary.output_tokens,
        summary.upstream,
    )  # fmt: skip
    assert first.chain == summary.chain == last.chain


@pytest.mark.parametrize(
    ("stop", "status"),
    [
        ("stop", "completed"), ("toolUse", "completed"), (None, "completed"),
        ("length", "incomplete"), ("error", "error"), ("aborted", "client_closed"),
    ],
)  # fmt: skip
def test_how_an_answer_stopped_is_its_status(stop, status):
    (row,) = of(answer(1, None, stopReason=stop))
    assert status == row.status


def test_what_failed_is_not_in_the_history_of_its_retry():
    failed = {
        "stopReason": "error",
        "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    found = of(answer(1, None), asked(2, 1), answer(3, 2, **failed), answer(4, 2), answer(5, 4))
    assert [None] * 4 == [row.epoch_reset_reason for row in found]
    assert ("missing", None) == (found[1].usage_state, found[1].input_tokens)
    after = of(answer(1, None), asked(2, 1), answer(3, 2, **failed), answer(4, 3))
    assert [None] * 3 == [row.epoch_reset_reason for row in after]
    compacted = [answer(1, None), entry("compaction", 2, 1), answer(3, 2, **failed), answer(4, 2)]
    assert [(1, 1, None), (1, 2, None), (2, 1, "compaction")] == resets(*compacted)


def test_effort_and_tier_are_those_of_the_entrys_own_path():
    high, back, flex = (
        (row.reasoning_effort, row.service_tier)
        for row in of(
            entry("thinking_level_change", 1, None, thinkingLevel="low"),
            entry("service_tier_change", 2, 1, serviceTier="priority"),
            entry("thinking_level_change", 3, 2, thinkingLevel="high"),
            answer(4, 3),
            answer(5, 1),
            entry("service_tier_change", 6, 5, serviceTier={"openai": "flex", "google": "x"}),
            answer(7, 6),
        )
    )
    assert (("high", "priority"), ("low", None), ("low", "flex")) == (high, back, flex)


def test_old_files_without_a_tree_are_read_in_their_order_and_known_again_when_they_have_one():
    tree = [asked(1, None), answer(2, 1), answer(3, 2)]
    old = [{k: v for k, v in found.items() if k not in ("id", "parentId")} for found in tree]
    renamed = [found | {"id": f"x{found['id']}", "parentId": None} for found in tree[1:2]]
    assert of(*tree) == of(*old)
    assert of(*tree)[0].turn_id == of(*renamed)[0].turn_id


def test_where_the_line_before_is_missing_the_order_stands_in():
    assert [(1, 1, None), (1, 2, None)] == resets(answer(1, None), answer(3, 2))


def test_what_a_forked_session_has_copied_is_the_other_sessions():
    (original,) = of(answer(5, None))
    fork = HEADER | {
        "id": "s2", "timestamp": at(60), "parentSession": "/secret/2027-01-15T08-00_s1.jsonl",
    }  # fmt: skip
    copied, own = of(answer(5, None), answer(70, 5), header=fork)
    assert original == copied
    assert ("s2", None) == (own.session, own.epoch_reset_reason)
    assert own.chain != copied.chain


@pytest.mark.parametrize(
    ("told", "session"),
    [
        ("s1", "s1"),
        ("C:\\secret\\2027_s1.jsonl", "s1"),
        ("/secret/another.jsonl", "s2"),
        (None, "s2"),
    ],
)
def test_a_fork_names_its_parent_by_id_or_by_file(told, session):
    fork = HEADER | {"id": "s2", "timestamp": at(60), "parentSession": told}
    (copied,) = of(answer(5, None), header=fork)
    assert session == copied.session


def test_an_answer_without_a_time_is_told_and_other_entries_are_nothing():
    broken = answer(1, None) | {"timestamp": 5}
    (skipped,) = of(broken, entry("custom", 2, 1), entry("of_2030", 3, 2))
    assert "line 2: timestamp is no time in ISO 8601 with Z or an offset" == str(skipped)


def test_the_header_tells_what_it_is():
    assert recognizes(json.dumps(HEADER).encode() + b"\n")
    assert not recognizes(b'{"type":"session"}\n')
    assert not recognizes(b'{"type":"session_meta","id":"x","timestamp":"t"}\n')


FILE = b"".join(
    json.dumps(found).encode() + b"\n" for found in (HEADER, answer(1, None), answer(2, 1))
)


def test_what_is_read_while_it_is_written_changes_nothing_when_it_is_read_again():
    failed = answer(3, 2, stopReason="error")
    data = FILE + b"".join(
        json.dumps(found).encode() + b"\n"
        for found in (failed, answer(4, 2), entry("compaction", 5, 4), answer(6, 5), answer(7, 1))
    )
    assert [] == differing(read_session, data)


@settings(max_examples=60)
@given(torn(FILE))
def test_whatever_has_become_of_a_file_it_is_read_or_told(data: bytes):
    found = read(PI.read, data)
    assert all(isinstance(item, TurnRow | Skipped | Remark) for item in found)
