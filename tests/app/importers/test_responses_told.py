import json
from typing import Any

import msgspec
import pytest

from app.importers.responses_told import CREATE, WHOLE, Told, error_of, has_output, look, moment

T_MS = 1_800_000_000_000
RESPONSE = {"id": "resp_1", "object": "response", "model": "gpt-5.6", "status": "completed"}
EVENT = {"type": "response.completed", "sequence_number": 9, "response": RESPONSE}


def told(value: Any) -> Told:
    found = look(json.dumps(value).encode())
    assert found is not None
    return found


@pytest.mark.parametrize(
    "line",
    [
        RESPONSE,
        {"response": RESPONSE},
        {"request": {"model": "gpt-5.6"}, "response": {"status": 200, "body": RESPONSE}},
        {"custom_id": "a", "response": {"status_code": 200, "body": RESPONSE}},
        {"event": "response", "data": json.dumps(RESPONSE)},
    ],
)
def test_an_object_is_found_in_whatever_a_logger_wraps_it_in(line):
    found = told(line)
    assert (WHOLE, "resp_1", "completed") == (
        found.type, found.response.id, found.response.status
    )  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        EVENT,
        {"ts": 1_800_000_000, "dir": "in", "event": EVENT},
        {"event": "response.completed", "data": EVENT},
        {"type": "receive", "time": 1_800_000_000.0, "opcode": 1, "data": json.dumps(EVENT)},
        {"type": "frame", "payload": {"body": json.dumps(EVENT)}},
    ],
)
def test_an_event_is_found_bare_wrapped_and_in_a_text(line):
    found = told(line)
    assert ("response.completed", "resp_1") == (found.type, found.response.id)
    assert EVENT == json.loads(found.data)


def test_what_is_no_response_is_told_apart_from_events_of_other_kinds():
    assert look(b'{"level":"info","message":"response.completed"}') is None
    assert "" == told({"type": "keepalive"}).type
    with pytest.raises(msgspec.DecodeError):
        look(b'[{"object":"response"}]')
    deep: Any = RESPONSE
    for _ in range(9):
        deep = {"data": deep}
    assert look(json.dumps(deep).encode()) is None


def test_a_request_is_a_frame_of_its_own_or_stands_beside_its_response():
    frame = {"type": CREATE, "model": "gpt-5.6", "input": [{}, {}], "generate": False}
    assert (CREATE, 2, False) == (
        told(frame).type, told(frame).request.items, told(frame).request.generate
    )  # fmt: skip
    beside = {"request": {"headers": {}, "body": json.dumps(frame)}, "response": RESPONSE}
    assert (WHOLE, 2) == (told(beside).type, told(beside).request.items)
    assert told({"type": CREATE, "input": "hello"}).request.items is None


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        (1_800_000_000, T_MS),
        (1_800_000_000.5, T_MS + 500),
        (T_MS + 7, T_MS + 7),
        ("2027-01-15T08:00:00Z", T_MS),
        ("2027-01-15T08:00:00", None),
        (0.35, None),
        (True, None),
        (None, None),
        ([], None),
    ],
)
def test_a_time_is_iso_or_of_the_epoch_and_a_time_since_the_start_of_a_log_is_none(value, ms):
    assert ms == moment(value)
    assert ms == told({"timestamp": value, "event": EVENT}).at


@pytest.mark.parametrize(
    ("event", "output"),
    [
        ({"type": "response.output_text.delta", "delta": "a"}, True),
        ({"type": "response.output_text.delta", "delta": ""}, False),
        ({"type": "response.function_call_arguments.delta", "delta": "{"}, True),
        ({"type": "response.output_item.added", "item": {"type": "message"}}, False),
        ({"type": "response.output_item.done", "item": {"type": "reasoning"}}, False),
        ({"type": "response.output_item.done", "item": {"type": "message"}}, True),
        ({"type": "response.output_item.done", "item": {"type": "custom_tool_call"}}, True),
        ({"type": "response.output_item.done"}, False),
    ],
)
def test_output_is_what_the_model_said_and_no_announcement(event, output):
    assert output == has_output(told({"t": 1_800_000_000, "data": event}))


def test_an_error_is_its_code_wherever_that_stands():
    nested = {"type": "error", "status": 400, "error": {"code": "a", "message": "secret"}}
    assert "a" == error_of(told(nested))["code"]
    assert {"code": "b"} == error_of(told({"type": "error", "code": "b", "message": "secret"}))
