import json

import pytest

from app.gateway.wire import Refusal, error_frame, extension, refuse, refuse_upgrade, respond

REFUSAL = Refusal(
    413, "request_too_large", "Too large.", param="input", headers=(("retry-after", "1"),)
)


def test_an_extension_that_the_server_does_not_have_is_none():
    assert [None, None, None, 1] == [
        extension(scope, "name")
        for scope in ({}, {"extensions": None}, {"extensions": {}}, {"extensions": {"name": 1}})
    ]


def test_a_refusal_has_the_shape_of_an_error_of_the_provider():
    assert json.loads(REFUSAL.body) == {
        "error": {
            "message": "Too large.",
            "type": "invalid_request_error",
            "param": "input",
            "code": "request_too_large",
        }
    }
    assert json.loads(Refusal(502, "x", "y").body)["error"]["type"] == "server_error"


def test_on_a_websocket_it_is_nested_and_carries_its_status():
    frame = json.loads(REFUSAL.frame)
    assert (frame["type"], frame["status"]) == ("error", 413)
    assert frame["error"] == json.loads(REFUSAL.body)["error"]


def test_a_providers_error_body_becomes_a_frame_with_all_that_it_says():
    body = b'{"error":{"message":"m","type":"rate_limit_error","code":"slow_down","resets_in_seconds":9}}'
    assert json.loads(error_frame(429, body)) == {
        "type": "error",
        "status": 429,
        "error": {
            "message": "m",
            "type": "rate_limit_error",
            "code": "slow_down",
            "resets_in_seconds": 9,
        },
    }


def test_an_error_that_is_a_text_becomes_its_message():
    assert json.loads(error_frame(400, b'{"error":"no"}'))["error"]["message"] == "no"


@pytest.mark.parametrize(
    "body", [b"<html>canary</html>", b"", b"[]", b'{"error":null}', b"[" * 100_000]
)
def test_a_body_of_another_shape_is_not_quoted(body):
    frame = json.loads(error_frame(503, body))
    assert frame["status"] == 503
    assert frame["error"]["type"] == "server_error"
    assert "canary" not in json.dumps(frame)


class Sent(list):
    async def __call__(self, message):
        self.append(message)


async def test_an_answer_states_its_length():
    sent = Sent()
    await respond(sent, 200, [(b"a", b"b")], b"12345")
    assert sent[0]["headers"] == [(b"a", b"b"), (b"content-length", b"5")]
    assert sent[1] == {"type": "http.response.body", "body": b"12345", "more_body": False}


async def test_a_refused_request_gets_status_type_and_extra_headers():
    sent = Sent()
    await refuse(sent, REFUSAL, [(b"x-more", b"1")])
    assert sent[0]["status"] == 413
    assert {
        (b"content-type", b"application/json"),
        (b"retry-after", b"1"),
        (b"x-more", b"1"),
    } < set(sent[0]["headers"])


async def test_an_upgrade_is_refused_with_a_status_before_it_is_accepted():
    sent = Sent()
    await refuse_upgrade({"extensions": {"websocket.http.response": {}}}, sent, REFUSAL)
    assert [m["type"] for m in sent] == [
        "websocket.http.response.start",
        "websocket.http.response.body",
    ]
    assert (sent[0]["status"], sent[1]["body"]) == (413, REFUSAL.body)


async def test_a_server_that_cannot_say_why_closes_instead():
    sent = Sent()
    await refuse_upgrade({}, sent, REFUSAL)
    assert sent == [{"type": "websocket.close", "code": 1008}]
