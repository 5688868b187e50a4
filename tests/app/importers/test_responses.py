import contextlib
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings

from app.analysis.chains import judge_session
from app.importers import responses
from app.importers.formats import detect
from app.importers.importer import NotReadable, Remark, Skipped
from app.importers.responses import RESPONSES, recognizes
from app.ledger.rows import TurnRow
from tests.support.grown import differing
from tests.support.importing import imported, stored, torn

T = 1_800_000_000
T_MS = T * 1_000


def response(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": T + number,
        "completed_at": T + number + 2,
        "status": "completed",
        "model": "gpt-5.6",
        "instructions": "secret",
        "output": [{"type": "message", "content": "secret"}],
        "previous_response_id": None,
        "prompt_cache_key": "k1",
        "prompt_cache_diagnostics": None,
        "reasoning": {"effort": "high", "summary": "auto"},
        "service_tier": "default",
        "store": False,
        "error": None,
        "usage": {
            "input_tokens": 29_423,
            "input_tokens_details": {"cached_tokens": 28_928, "cache_write_tokens": 300},
            "output_tokens": 210,
            "output_tokens_details": {"reasoning_tokens": 150},
            "total_tokens": 29_633,
        },
    } | changes


def ended(number: int, word: str = "completed", **changes: Any) -> dict[str, Any]:
    return {"type": f"response.{word}", "response": response(number, status=word) | changes}


def began(number: int) -> dict[str, Any]:
    bare = {"id": f"resp_{number}", "object": "response", "created_at": T + number}
    return {"type": "response.created", "response": bare | {"status": "in_progress"}}


DELTA = {"type": "response.output_text.delta", "delta": "secret"}


def asked(**changes: Any) -> dict[str, Any]:
    return {"type": "response.create", "model": "gpt-5.6", "input": ["secret", "secret"]} | changes


def at(seconds: float, event: dict[str, Any]) -> dict[str, Any]:
    """A frame as a browser keeps it."""
    return {"type": "receive", "time": T + seconds, "opcode": 1, "data": json.dumps(event)}


def jsonl(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def stream(*events: dict[str, Any]) -> bytes:
    return b": hello\n\n" + b"".join(
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(event).encode())
        for event in events
    )


def split(data: bytes) -> list[Any]:
    return list(RESPONSES.read(RESPONSES.split(io.BufferedReader(io.BytesIO(data)))))


def of(*lines: dict[str, Any]) -> list[Any]:
    return split(jsonl(*lines))


def test_a_response_is_told_with_all_that_it_says_and_nothing_of_what_was_said():
    (row,) = of(response(1))
    assert ("import:responses", "k1", "k1", "gpt-5.6", "default", "high", "resp_1", False) == (
        row.source, row.session, row.prompt_cache_key, row.model, row.service_tier,
        row.reasoning_effort, row.response_id, row.store,
    )  # fmt: skip
    assert (29_423, 28_928, 495, 300, 210, 150, 29_633, "reported") == (
        row.input_tokens, row.cached_tokens, row.non_cached_tokens, row.cache_write_tokens,
        row.output_tokens, row.reasoning_tokens, row.total_tokens, row.usage_state,
    )  # fmt: skip
    assert (T_MS + 1_000, T_MS + 3_000, None, None) == (
        row.started_at, row.ended_at, row.ttft_ms, row.duration_ms
    )  # fmt: skip
    assert (None, None, None, "unknown") == (row.mode, row.reason, row.items_sent, row.upstream)
    assert "secret" not in str(row)


def test_objects_however_they_lie_in_a_file_make_the_same_rows():
    found = [response(1), response(2)]
    rows = of(*found)
    assert 2 == len(rows)
    printed = b"\n".join(json.dumps(one, indent=2).encode() for one in found)
    wrapped = jsonl(*({"request": {"input": "secret"}, "response": one} for one in found))
    for data in (json.dumps(found).encode(), printed, wrapped):
        assert recognizes(data)
        assert rows == split(data)


def test_a_stream_of_events_as_text_tells_each_response_once_and_no_times():
    found = split(stream(began(1), DELTA, ended(1), began(2), ended(2)) + b"data: [DONE]\n")
    assert ["resp_1", "resp_2"] == [row.response_id for row in found]
    assert {None} == {row.ttft_ms for row in found}


@pytest.mark.parametrize(
    ("word", "changes", "status", "code"),
    [
        ("completed", {}, "completed", None),
        ("incomplete", {}, "incomplete", None),
        ("failed", {"error": {"code": "server_error", "message": "secret"}}, "failed",
         "server_error"),
        ("failed", {"error": {"code": "rate_limit_exceeded"}}, "rate_limited",
         "rate_limit_exceeded"),
        ("cancelled", {}, "client_closed", None),
        ("done", {"status": None}, "completed", None),
    ],
)  # fmt: skip
def test_each_end_is_told_by_its_word_and_an_error_by_its_code(word, changes, status, code):
    (row,) = of(ended(1, word, **changes))
    assert (status, code) == (row.status, row.error_code)
    assert "secret" not in str(row)


def test_an_error_ends_the_response_that_is_going_on():
    error = {"type": "error", "code": "rate_limit_exceeded", "message": "secret"}
    row, stray = of(began(1), error, error)
    assert ("resp_1", "rate_limited", "rate_limit_exceeded", "missing") == (
        row.response_id, row.status, row.error_code, row.usage_state
    )  # fmt: skip
    assert "line 3: tells of no response" == str(stray)


@pytest.mark.parametrize(
    ("told", "word"),
    [
        ({"type": "cache_miss", "reason": "tools_changed", "cache_missed_tokens": 9},
         "tools_changed"),
        ({"type": "cache_hit"}, "cache_hit"),
        ({"type": "unavailable"}, "unavailable"),
        (None, None),
    ],
)  # fmt: skip
def test_the_providers_diagnosis_is_kept(told, word):
    (row,) = of(response(1, prompt_cache_diagnostics=told))
    assert word == row.provider_miss_reason


def test_frames_with_times_tell_how_long_it_took_and_how_it_was_sent():
    first, second = of(
        at(10, asked()), at(10.2, began(1)), at(10.3, {"type": "response.in_progress"}),
        at(10.5, DELTA | {"delta": ""}), at(15, DELTA), at(15.5, DELTA), at(16, ended(1)),
        at(20, asked(previous_response_id="resp_1", generate=False)), at(20.1, began(2)),
        at(21, ended(2, previous_response_id="resp_1")),
    )  # fmt: skip
    assert (T_MS + 10_000, T_MS + 16_000, 200, 5_000, 6_000) == (
        first.started_at, first.ended_at, first.first_event_ms, first.ttft_ms, first.duration_ms
    )  # fmt: skip
    assert ("ws_full", 2, 2, "generation", None) == (
        first.mode, first.items_sent, first.items_total, first.kind, first.previous_response_id
    )  # fmt: skip
    assert ("ws_incremental", 2, None, "warmup", "resp_1", None) == (
        second.mode, second.items_sent, second.items_total, second.kind,
        second.previous_response_id, second.ttft_ms,
    )  # fmt: skip


def test_without_the_requests_time_nothing_is_measured_from_the_responses():
    (row,) = of(at(10.2, began(1)), at(15, DELTA), at(16, ended(1)))
    assert (None, None, None, None, T_MS + 1_000, T_MS + 16_000) == (
        row.ttft_ms, row.first_event_ms, row.duration_ms, row.mode, row.started_at, row.ended_at
    )  # fmt: skip


def test_where_two_could_be_meant_nothing_is_put_together():
    first, second = of(
        at(1, asked()), at(1, asked()), at(2, began(1)), at(2, began(2)), at(3, DELTA),
        at(4, ended(1)), at(5, DELTA), at(6, ended(2)),
    )  # fmt: skip
    assert [(None, None, None)] * 2 == [
        (row.mode, row.ttft_ms, row.duration_ms) for row in (first, second)
    ]


def test_three_responses_of_one_socket_are_three_rows_and_a_repeated_end_is_told():
    found = of(*(ended(n) for n in (1, 2, 2, 3)))
    assert ["resp_1", "resp_2", None, "resp_3"] == [
        getattr(item, "response_id", None) for item in found
    ]
    assert "line 3: repeats a response that was there before" == str(found[2])


def test_a_response_is_one_row_in_whichever_file_and_form_it_stands():
    alone, event = of(response(1))[0], of(at(5, ended(1)))[0]
    assert alone.turn_id == event.turn_id
    assert alone.turn_id == split(stream(ended(1)))[0].turn_id


def test_what_is_remembered_of_a_log_is_bounded(monkeypatch):
    monkeypatch.setattr(responses, "_REMEMBERED", 2)
    found = of(*(began(n) for n in range(4)), *(ended(n) for n in range(4)))
    assert [f"line {n}: {responses.NO_END}" for n in (1, 2)] == [str(item) for item in found[:2]]
    assert ["resp_0", "resp_1", "resp_2", "resp_3"] == [row.response_id for row in found[2:]]


def test_an_id_that_a_provider_uses_again_is_of_another_response():
    found = of(response(1), response(1, created_at=T + 60))
    assert 2 == len({row.turn_id for row in found})


def test_responses_without_an_id_are_known_by_what_they_say():
    found = of(response(1, id=""), response(2, id=None), response(3, id=""))
    assert 3 == len({row.turn_id for row in found})
    assert {None} == {row.response_id for row in found}


def test_what_is_no_ended_response_is_told_and_other_events_are_nothing():
    found = of(
        response(1, status="in_progress"),
        {"level": "info"},
        {"type": "keepalive"},
        response(2, created_at=None, completed_at=None),
        began(3),
    )
    assert [
        "line 1: is a response that has not ended",
        "line 2: tells of no response",
        "line 4: is a response without a time",
        "line 5: begins a response whose end is not in the file",
    ] == [str(item) for item in found]


@pytest.mark.parametrize("odd", [[], {}, 7, True, "", "x" * 999])
def test_values_of_another_type_than_they_should_have_are_unknown(odd):
    names = [name for name in response(1) if name not in ("object", "created_at", "status")]
    (row,) = of(response(1, **dict.fromkeys(names, odd)))
    assert "completed" == row.status
    assert "missing" == row.usage_state
    for name in names:
        of({"type": "response.completed", "response": response(1) | {name: odd, "status": odd}})
    (skipped,) = of(response(1, status=odd))
    assert isinstance(skipped, Skipped)


def test_missing_usage_is_not_zero_and_zeros_are_a_row():
    none, zeros = of(response(1, usage=None), response(2, usage={"input_tokens": 0}))
    assert [(None, "missing"), (0, "reported")] == [
        (row.input_tokens, row.usage_state) for row in (none, zeros)
    ]


def talk(number: int, cached: int, **changes: Any) -> dict[str, Any]:
    """A response with a history that has grown by 1,000 tokens."""
    given = 20_000 + 1_000 * number
    usage = {"input_tokens": given, "input_tokens_details": {"cached_tokens": cached}}
    return response(10 * number, usage=usage, **{"prompt_cache_key": None} | changes)


def verdicts(*found: dict[str, Any]) -> list[str]:
    rows = of(*found)
    judged = judge_session(rows)
    return [judged[row.turn_id].verdict for row in rows]


def test_a_chain_is_known_by_the_response_that_it_goes_on_from():
    assert ["cold_start", "cold_start", "hit", "hit"] == verdicts(
        talk(1, 0), talk(2, 0),
        talk(3, 20_992, previous_response_id="resp_10"),
        talk(4, 21_888, previous_response_id="resp_20"),
    )  # fmt: skip


def test_else_by_its_conversation_or_its_cache_key_and_else_not_at_all():
    assert ["cold_start", "cold_start", "hit", "hit"] == verdicts(
        talk(1, 0, prompt_cache_key="a"), talk(2, 0, conversation={"id": "b"}),
        talk(3, 20_992, prompt_cache_key="a"), talk(4, 21_888, conversation={"id": "b"}),
    )  # fmt: skip
    assert ["cold_start", "shared_prefix"] == verdicts(talk(1, 0), talk(2, 2_432))


@pytest.mark.parametrize(
    "data",
    [
        b'{"timestamp":"t","type":"response_item","payload":{"type":"message"}}\n',
        b'{"timestamp":"t","type":"event_msg","payload":{"type":"error"}}\n',
        b'{"ts":"t","input":3,"output":4,"data":{"object":"response"}}\n',
        b'{"log":{"entries":[{"response":{"content":{"text":"{}"}}}]}}',
        b'{"type":"error","code":"x"}\n',
        b"event: message_start\ndata: {}\n",
        b'{"id":"c","object":"chat.completion"}\n',
        b'The answer: {"object":"response"}\n',
    ],
)
def test_files_of_others_are_left_to_them(data: bytes):
    with contextlib.suppress(NotReadable):
        assert "responses" != detect(data).name


def test_it_is_recognized_also_where_its_first_object_is_longer_than_what_is_looked_at():
    long = response(1, instructions="x" * 99_000)
    for data in (jsonl(long), json.dumps([long]).encode(), jsonl(at(1, ended(1)), long)):
        assert "responses" == detect(data[:65_536]).name
    assert "responses" == detect(stream(began(1))).name


def test_what_is_read_while_it_is_written_changes_nothing_when_it_is_read_again():
    data = jsonl(at(1, asked()), at(2, began(1)), at(3, DELTA), at(4, ended(1)), response(2))
    assert [] == differing(RESPONSES.read, data)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_log_and_what_was_retrieved_of_it_later_are_one_row_each(engine, tmp_path):
    files = [tmp_path / "a.json", tmp_path / "b.sse"]
    files[0].write_bytes(json.dumps([response(1), response(2)], indent=2).encode())
    files[1].write_bytes(stream(began(1), ended(1), began(3), ended(3)))
    report = imported(engine, tmp_path)
    assert ["responses"] * 2 == [file.format for file in report.files]
    assert {"resp_1", "resp_2", "resp_3"} == {row.response_id for row in stored(engine)}
    assert 3 == len(stored(engine))


_FILES = (
    jsonl(at(1, asked()), at(2, began(1)), at(3, DELTA), at(4, ended(1)), response(2)),
    stream(began(1), DELTA, ended(1)),
    json.dumps([response(1), response(2)], indent=1).encode(),
)


@settings(max_examples=60)
@given(torn(_FILES[0]) | torn(_FILES[1]) | torn(_FILES[2]))
def test_whatever_has_become_of_a_file_it_is_read_or_told(data: bytes):
    assert all(isinstance(item, TurnRow | Skipped | Remark) for item in split(data))
