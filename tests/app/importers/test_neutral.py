import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.importers.importer import NotReadable, Remark, Skipped
from app.importers.neutral import COLUMNS
from app.importers.neutral import read as read_neutral
from app.ledger.rows import TurnRow
from tests.support.grown import differing
from tests.support.importing import read, torn

T = "2027-01-15T08:00:00.250Z"
T_MS = 1_800_000_000_250
FULL: dict[str, Any] = {
    "t": T, "id": "7", "chain": "c1", "session": "s1", "root": "r", "turn": "u", "model": "gpt-5.6",
    "upstream": "openai", "effort": "high", "tier": "flex", "client": "tool", "client_version": "1",
    "mode": "ws_full", "reason": "prefix_mismatch", "reset": "summarize", "changed_fields": "tools",
    "response_id": "resp_2", "prev_response_id": "resp_1", "cache_key": "k",
    "miss_reason": "tools_changed", "kind": "generation", "status": "incomplete", "error": "e",
    "input": 5_000, "cached": 4_096, "cache_write": 500, "cache_write_long": 100, "output": 70,
    "reasoning": 20, "http_status": 200, "ttft_ms": 410.5, "duration_ms": 2_000,
}  # fmt: skip


def of(*records: dict[str, Any]) -> list[Any]:
    return read(read_neutral, b"".join(json.dumps(record).encode() + b"\n" for record in records))


def as_csv(*records: dict[str, Any]) -> bytes:
    names = list(records[0])
    rows = [names, *([str(record.get(name, "")) for name in names] for record in records)]
    return "".join(",".join(row) + "\n" for row in rows).encode()


def test_each_column_of_the_format_has_its_place():
    (row,) = of(FULL)
    assert FULL.keys() == set(COLUMNS)
    assert (T_MS, T_MS + 2_000, "import:neutral") == (row.started_at, row.ended_at, row.source)
    assert ("s1", "c1", "r", "u") == (row.session, row.chain, row.root_session, row.turn_group)
    assert ("gpt-5.6", "openai", "high", "flex") == (
        row.model, row.upstream, row.reasoning_effort, row.service_tier
    )  # fmt: skip
    assert ("ws_full", "prefix_mismatch", "summarize", "tools", True) == (
        row.mode, row.reason, row.epoch_reset_reason, row.changed_fields, row.eligible
    )  # fmt: skip
    assert ("resp_2", "resp_1", "k", "tools_changed") == (
        row.response_id, row.previous_response_id, row.prompt_cache_key, row.provider_miss_reason
    )  # fmt: skip
    assert ("generation", "incomplete", "e", 200) == (
        row.kind, row.status, row.error_code, row.http_status
    )  # fmt: skip
    assert (5_000, 4_096, 500, 100, 904, 70, 20, 5_070, "reported") == (
        row.input_tokens, row.cached_tokens, row.cache_write_tokens, row.cache_write_long_tokens,
        row.non_cached_tokens, row.output_tokens, row.reasoning_tokens, row.total_tokens,
        row.usage_state,
    )  # fmt: skip
    assert (410.5, 2_000.0, "tool", "1") == (
        row.ttft_ms, row.duration_ms, row.client, row.client_version
    )  # fmt: skip


def test_csv_and_ndjson_of_one_record_are_one_row():
    assert of(FULL) == read(read_neutral, as_csv(FULL))
    plain = {"t": 1_800_000_000.25, "input": 10}
    assert of(plain) == read(read_neutral, b"input,t\n10,1800000000.25\n")


def test_what_is_not_told_is_unknown_and_not_zero():
    (row,) = of({"t": T, "input": 10})
    assert (10, None, None, None, "unknown", "completed") == (
        row.input_tokens, row.cached_tokens, row.output_tokens, row.mode, row.upstream, row.status
    )  # fmt: skip
    (row,) = of({"t": T, "input": None, "output": None})
    assert ("missing", None) == (row.usage_state, row.input_tokens)
    (row,) = of({"t": T, "input": 0, "cached": 0, "output": 0})
    assert ("reported", 0, 0) == (row.usage_state, row.input_tokens, row.cached_tokens)


def test_a_chain_names_its_session_and_a_session_its_chain():
    assert [("c", "c"), ("s", "s"), ("s", "c"), (None, None)] == [
        (row.session, row.chain)
        for row in of(
            {"t": T, "input": 1, "chain": "c"},
            {"t": T, "input": 1, "session": "s"},
            {"t": T, "input": 1, "session": "s", "chain": "c"},
            {"t": T, "input": 1},
        )
    ]


def test_a_record_is_known_by_its_id_else_the_responses_else_by_all_it_says():
    def ids(*records: dict[str, Any]) -> int:
        return len(
            {row.turn_id for row in of(*({"t": T, "input": 1} | given for given in records))}
        )

    assert 1 == ids({"id": "a", "output": 1}, {"id": "a", "output": 2})
    assert 2 == ids({"id": "a", "chain": "x"}, {"id": "a", "chain": "y"})
    assert 2 == ids({"id": "a", "response_id": "r"}, {"id": "b", "response_id": "r"})
    assert 1 == ids({"response_id": "r", "output": 1}, {"response_id": "r", "output": 2})
    assert 1 == ids({"output": 1, "cached": None}, {"output": 1})
    assert 2 == ids({"output": 1}, {"output": 0})
    assert 2 == ids({"mode": "ws_full"}, {"reason": "ws_full"})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"t": "2027-01-15T08:00:00"}, "t is no time in ISO 8601 with Z or an offset"),
        ({"t": 1_800_000_000_250}, "t is no time in epoch seconds: divide milliseconds by 1000"),
        ({"t": True}, "t is no number"),
        ({"t": None}, "t is missing"),
        ({"input": "10"}, "input is no whole number"),
        ({"input": 1.5}, "input is no whole number"),
        ({"output": -1}, "output is below 0 or too great"),
        ({"model": 5}, "model is no text"),
        ({"ttft_ms": "fast"}, "ttft_ms is no number"),
        ({"mode": "rest_full"},
         "mode is none of http_full, http_incremental, ws_full, ws_incremental"),
        ({"cached": 11}, "cached is more than input, which has to count it, too"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_told_and_the_others_go_on(given: dict[str, Any], why: str):
    good = {"t": T, "input": 10}
    first, skipped, last = of(good, good | given, good)
    assert isinstance(first, TurnRow)
    assert first == last
    assert f"line 2: {why}" == str(skipped)


def test_bad_cells_of_a_csv_are_told_too():
    data = b"t,input,ttft_ms\nx,1,\n5,x,\n5,1,x\n5,1\n5,1,\n"
    *skipped, row = read(read_neutral, data)
    assert [
        "line 2: t is no time in ISO 8601 with Z or an offset",
        "line 3: input is no whole number",
        "line 4: ttft_ms is no number",
        "line 5: has not 3 cells as the first line has",
    ] == [str(found) for found in skipped]
    assert 5_000 == row.started_at


def test_unknown_columns_are_told_once():
    record = {"t": T, "input": 1, "colour": 1}
    remark, first, second = of(record, record)
    assert isinstance(remark, Remark)
    assert "'colour'" in remark.text
    assert first == second
    assert [remark, first] == read(read_neutral, as_csv(record))


def test_a_csv_with_other_separators_or_a_column_twice_is_refused():
    with pytest.raises(NotReadable, match="commas"):
        read(read_neutral, b"t;input\n5;1\n")
    with pytest.raises(NotReadable, match="'t' twice"):
        read(read_neutral, b"t,input,t\n5,1,5\n")


def test_reasons_may_be_other_words_but_only_ours_tell_that_a_turn_could_be_continued():
    words = ["prefix_mismatch", "ok", "no_baseline", "ws_rejected", "their_word", None]
    assert [True, True, False, False, False, False] == [
        row.eligible
        for row in of(*({"t": T, "input": 1, "mode": "ws_full", "reason": word} for word in words))
    ]
    (row,) = of({"t": T, "input": 1, "reason": "ok"})
    assert not row.eligible


def test_what_is_read_while_it_is_written_changes_nothing_when_it_is_read_again():
    data = json.dumps(FULL).encode() + b"\n" + b'{"t":5,"input":12,"reset":"compaction"}\n'
    assert [] == differing(read_neutral, data)
    assert [] == differing(read_neutral, as_csv(FULL, {"t": 5, "input": 12}))


@settings(max_examples=60)
@given(st.one_of(torn(as_csv(FULL, FULL)), torn(json.dumps(FULL).encode() + b"\n")))
def test_whatever_has_become_of_a_file_it_is_read_or_told(data: bytes):
    try:
        found = read(read_neutral, data)
    except NotReadable:
        return
    assert all(isinstance(item, TurnRow | Skipped | Remark) for item in found)
