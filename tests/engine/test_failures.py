"""Errors of the provider in all their shapes, and what is done about them."""

import json

import pytest

from engine import failures
from engine.failures import Remedy, read


def error(**fields):
    return {"type": "invalid_request_error", "code": None, "message": "m", "param": None, **fields}


def shapes(inner):
    """One rejection: nested, flat, and inside a failed response."""
    flat = {name: value for name, value in inner.items() if name != "type"}
    return [
        {"type": "error", "error": inner},
        {"type": "error", "status": 400, "error": inner},
        {"type": "error", "status_code": 400, "error": inner},
        {"type": "error", "sequence_number": 1, **flat},
        {"type": "response.failed", "response": {"id": "r", "status": "failed", "error": inner}},
        {"error": inner},
    ]


def remedy(event, *, continued=True):
    return read(json.dumps(event).encode()).remedy(continued=continued)


NOT_FOUND = error(code="previous_response_not_found", param="previous_response_id")
REJECTIONS = [
    NOT_FOUND,
    error(message="Invalid previous_response_id."),
    error(param="previous_response_id", message="no such thing"),
    error(message="Previous response with id 'resp_1' not found."),
]


@pytest.mark.parametrize("event", [shape for inner in REJECTIONS for shape in shapes(inner)])
def test_a_rejected_continuation_is_sent_in_full_whatever_its_shape(event):
    assert remedy(event) is Remedy.NOT_FOUND
    assert remedy(event, continued=False) is Remedy.RELAY


@pytest.mark.parametrize(
    "inner",
    [error(message="Invalid value for 'temperature'.", param="temperature"), error(), error(message=None),
     error(code="context_length_exceeded"), error(type="authentication_error", param="previous_response_id")],
)  # fmt: skip
def test_an_error_about_anything_else_is_the_clients_to_see(inner):
    assert remedy({"type": "error", "status": 400, "error": inner}) is Remedy.RELAY


@pytest.mark.parametrize("event", shapes(error(code="websocket_connection_limit_reached")))
@pytest.mark.parametrize("continued", [True, False])
def test_a_connection_that_is_too_old_is_replaced(event, continued):
    assert remedy(event, continued=continued) is Remedy.LIMIT_REACHED


def test_only_a_bare_server_error_is_sent_again():
    bare = {"type": "server_error", "message": "m"}
    assert remedy({"type": "error", "error": bare}) is Remedy.SERVER_ERROR
    assert remedy({"type": "error", "status": 500, "error": bare}) is Remedy.RELAY
    assert remedy({"type": "error", "error": {**bare, "code": "x"}}) is Remedy.RELAY


@pytest.mark.parametrize(
    ("event", "status"),
    [
        ({"status": 418, "error": {}}, 418), ({"status_code": 402, "error": {}}, 402),
        ({"status": "failed", "error": {}}, 500), ({"status": True, "error": {}}, 500),
        ({"status": 7, "error": {}}, 500), ({"status": 600, "error": {}}, 500),
        ({"error": {"code": "rate_limit_exceeded"}}, 429), ({"error": {"type": "permission_error"}}, 403),
        ({"error": {"code": "slow_down", "type": "invalid_request_error"}}, 503),
        ({"error": {"code": 5, "type": []}}, 500), ({"error": NOT_FOUND}, 400), ({}, 500),
    ],
)  # fmt: skip
def test_the_status_is_the_given_one_or_what_the_words_stand_for(event, status):
    assert read(json.dumps({"type": "error", **event}).encode()).status == status


@pytest.mark.parametrize(
    "data", [b"", b"text", b"[]", b"5", b'"\xff"', b"[" * 5000, b'{"error":"text"}', b"null"]
)
def test_what_cannot_be_read_is_a_server_fault_without_words(data):
    failure = read(data)
    assert (failure.status, failure.code, failure.type, failure.message) == (500, None, None, "")
    assert failure.remedy(continued=True) is Remedy.RELAY


def test_the_frame_and_the_body_repeat_the_error_as_it_came():
    inner = error(code="x", extra={"a": [1]})
    failure = read(json.dumps({"type": "error", "status": 409, "error": inner}).encode())
    assert json.loads(failure.body) == {"error": inner}
    assert json.loads(failure.frame()) == {"type": "error", "status": 409, "error": inner}


def test_a_flat_error_is_nested_for_the_client():
    failure = read(b'{"type":"error","code":"x","message":"m","sequence_number":3}')
    assert json.loads(failure.body) == {"error": {"code": "x", "message": "m"}}


def test_headers_are_read_from_both_places_and_the_frame_wins():
    failure = read(json.dumps({
        "type": "error", "headers": {"Retry-After": 7, "A": "frame"},
        "error": {"headers": {"a": "inner", "b": "2"}},
    }).encode())  # fmt: skip
    assert dict(failure.headers) == {"retry-after": "7", "a": "frame", "b": "2"}
    assert failure.retry_after == "7"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(12.7, "12"), (0, "0"), (-1, None), ("5", None), (None, None), (True, None)],
)
def test_the_time_to_wait_may_stand_in_the_error(seconds, expected):
    event = {"type": "error", "error": {"resets_in_seconds": seconds}}
    assert read(json.dumps(event).encode()).retry_after == expected


@pytest.mark.parametrize(
    ("status", "type_"), [(413, "invalid_request_error"), (502, "server_error")]
)
def test_errors_of_our_own_have_the_providers_shape(status, type_):
    assert json.loads(failures.synthetic(status, "c", "m")) == {
        "error": {"message": "m", "type": type_, "param": None, "code": "c"}
    }


def test_an_unknown_anchor_is_answered_as_the_provider_would():
    body = json.loads(failures.not_found("resp_1"))
    assert body["error"]["code"] == "previous_response_not_found"
    assert "resp_1" in body["error"]["message"]
    assert remedy(body) is Remedy.NOT_FOUND


def test_a_lost_stream_ends_in_one_failed_event():
    event = json.loads(failures.failed_event("r1", "c", "m"))
    assert (event["type"], event["response"]["id"]) == ("response.failed", "r1")
    assert event["response"]["error"] == {"code": "c", "message": "m"}
