import json

import pytest

from app.importers.codex_lines import TORN, Told, recognizes, told
from app.importers.importer import Skipped
from app.importers.lines import Line
from tests.support.importing import lines_of

AT = "2026-11-01T10:00:00.000Z"


def line(kind, payload, **more):
    return {"timestamp": AT, **more, "type": kind, "payload": payload}


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


def read(*data):
    return list(told(lines_of(b"".join(part + b"\n" for part in data))))


def events(*data):
    return [(found.type, found.event) for found in read(*data)]


@pytest.mark.parametrize(
    ("record", "event"),
    [
        (line("response_item", {"type": "message", "role": "user", "content": []}), "input"),
        (line("response_item", {"type": "message", "role": "developer"}), "input"),
        (line("response_item", {"type": "message", "id": "m", "role": "assistant"}), "output"),
        (line("response_item", {"type": "reasoning", "summary": []}), "output"),
        (line("response_item", {"type": "function_call", "name": "role"}), "output"),
        (line("response_item", {"type": "function_call_output", "output": "x"}), "input"),
        (line("event_msg", {"type": "user_message", "message": "x"}), "input"),
        (line("event_msg", {"type": "agent_message", "message": "x"}), "output"),
        (line("event_msg", {"type": "context_compacted"}), "context_compacted"),
        (line("event_msg", {"type": "thread_rolled_back", "num_turns": 1}), "thread_rolled_back"),
        (line("event_msg", {"type": "token_count", "info": None}), "token_count"),
        (line("event_msg", {"type": "task_started"}, ordinal=7), "task_started"),
        (line("compacted", {"compaction_response_id": "r"}), None),
        (line("turn_context", {"model": "m"}), None),
        (line("token_usage_record", {"usage": {}}), None),
    ],
)
def test_what_a_line_is_does_not_hang_on_how_it_is_written(record, event):
    turned = dict(reversed(record.items()))
    for data in (compact(record), json.dumps(record).encode(), compact(turned)):
        assert [(record["type"], event)] == events(data)
        assert [AT] == [found.time for found in read(data)]


@pytest.mark.parametrize(
    "record",
    [
        line("response_item", {"type": "ghost_snapshot"}),
        line("response_item", {"type": "message", "content": []}),
        line("event_msg", {"type": "exec_command_end", "stdout": "x"}),
        line("world_state", {"full": True}),
    ],
)
def test_what_tells_nothing_of_usage_is_passed_over(record):
    assert [] == read(compact(record), json.dumps(record).encode())


def test_only_what_is_needed_of_a_line_is_decoded():
    broken = compact(line("response_item", {"type": "reasoning", "text": "x"}))[:-3]
    assert [("response_item", "output")] == events(broken)
    assert ["is not one JSON object"] == [
        found.reason for found in read(compact(line("turn_context", {"model": "x"}))[:-3])
    ]


def test_a_compaction_tells_its_response_and_nothing_of_its_history():
    (found,) = read(compact(line("compacted", {"replacement_history": [{"a": 1}] * 99})))
    assert {"response": None} == found.payload
    (found,) = read(compact(line("compacted", {"compaction_response_id": "r", "message": "x"})))
    assert {"response": "r"} == found.payload


def test_a_record_that_begins_in_a_torn_line_is_read():
    event = compact(line("event_msg", {"type": "token_count", "info": {"a": 1}}))
    text = compact(line("response_item", {"type": "reasoning", "text": "x" * 99}))
    for cut in (1, 20, len(text) - 1):
        first, second = read(text[:cut] + event)
        assert Skipped(1, TORN) == first
        assert ("token_count", {"type": "token_count", "info": {"a": 1}}) == (
            second.event, second.payload,
        )  # fmt: skip
    assert [TORN, TORN, None] == [
        getattr(found, "reason", None) for found in read(text[:30] + text[:90] + event)
    ]


def test_a_line_of_nothing_but_torn_records_is_given_up():
    text = compact(line("event_msg", {"type": "token_count"}))[:-2]
    reasons = [found.reason for found in read(text * 999)]
    assert [TORN] * 100 + ["is not one JSON object"] == reasons


def test_a_record_inside_of_a_whole_one_is_its_content():
    inner = line("event_msg", {"type": "token_count", "info": {}})
    whole = line("event_msg", {"type": "mcp_tool_call_end", "result": [inner]})
    assert [] == read(compact(whole))
    quoted = line("response_item", {"type": "reasoning", "text": compact(inner).decode()})
    assert [("response_item", "output")] == events(compact(quoted))
    meta = line("session_meta", {"timestamp": AT, "id": "s"})
    assert [("session_meta", None)] == events(compact(meta))


def test_bytes_that_power_left_are_taken_off():
    event = compact(line("event_msg", {"type": "token_count"}))
    assert 1 == len(read(b"\x00" * 40 + event))
    assert 1 == len(read(b"\xef\xbb\xbf" + event))
    assert 1 == len(read(event + b"\r"))
    assert ["holds nothing but NUL bytes"] == [found.reason for found in read(b"\x00\x00")]
    assert [] == read(b"", b"  ")


def test_lines_that_are_too_long_or_not_at_their_end_are_told():
    cut = compact(line("turn_context", {"model": "x"}))[:-3]
    lines = [Line(1, b"", too_long=True), Line(2, cut, whole=False)]
    assert ["is too long", "ends within its record"] == [found.reason for found in told(lines)]


@pytest.mark.parametrize(
    "data", [b"[1]", b'{"a":1}', b'{"timestamp":"t","type":"new","payload":{}}', b"\xff{"]
)
def test_a_line_of_anything_else_is_told(data):
    (found,) = read(data)
    assert isinstance(found, Skipped)


def test_lines_of_the_oldest_files_have_nothing_around_them():
    assert ["bare"] * 3 == [
        found.type
        for found in read(
            b'{"id":"s","timestamp":"t","instructions":null}',
            b'{"record_type":"state"}',
            b'{"type":"function_call_output","output":"x"}',
        )
        if isinstance(found, Told)
    ]


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"type":"session","version":3}', b"\x00"])
def test_what_is_no_rollout_is_not_recognized(data):
    assert not recognizes(data)
