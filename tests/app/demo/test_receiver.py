import json
from datetime import UTC, datetime

import aiohttp
import pytest
from standardwebhooks import Webhook

from app.demo.receiver import KEPT, receiving
from tests.support.clock import ManualClock

BODY = {"type": "cache.alert.firing", "data": {"title": "Firing: Mismatches"}}


@pytest.fixture
async def served():
    async with receiving(ManualClock()) as receiver, aiohttp.ClientSession() as http:
        yield receiver, http


def signed(secret, body, number=1):
    now = datetime.now(UTC)  # the library reads the clock itself
    return {
        "webhook-id": f"msg_{number}",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(f"msg_{number}", now, body),
    }


async def post(http, url, body, headers):
    async with http.post(url, data=body, headers=headers) as answer:
        return answer.status


async def test_what_is_signed_well_is_kept_as_verified(served):
    receiver, http = served
    body = json.dumps(BODY)
    assert await post(http, receiver.url, body, signed(receiver.secret, body)) == 204
    assert receiver.received() == [
        {
            "at": "2027-01-15T08:00:00.000Z",
            "webhook_id": "msg_1",
            "verified": True,
            "type": "cache.alert.firing",
            "title": "Firing: Mismatches",
            "body": BODY,
        }
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-id": "msg_2"},
        {"webhook-signature": "v1,bm8="},
        {"webhook-signature": "v1,x"},
        {"webhook-signature": "nonsense"},
        {"webhook-timestamp": "1"},
        {"webhook-timestamp": "now"},
        {"webhook-signature": ""},
    ],
)
async def test_what_is_not_signed_well_is_refused_and_shown_as_such(served, change):
    receiver, http = served
    body = json.dumps(BODY)
    headers = signed(receiver.secret, body) | change
    assert await post(http, receiver.url, body, headers) == 401
    assert [each["verified"] for each in receiver.received()] == [False]


async def test_another_secret_does_not_verify(served):
    receiver, http = served
    body = json.dumps(BODY)
    headers = signed("whsec_" + "b3RoZXIgc2VjcmV0IG9mIDMyIGJ5dGVzIGxlbmd0aA==", body)
    assert await post(http, receiver.url, body, headers) == 401


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[1]", b"no json", b"\xff\xfe", b"[" * 15_000),
        *(b'{"type": "\\ud800"}', b'{"value": NaN}', b'{"value": 1e999}', b'{"a": "\xff"}'),
    ],
)
async def test_what_is_no_message_is_refused_and_not_kept(served, body):
    receiver, http = served
    assert await post(http, receiver.url, body, {}) == 400
    assert receiver.received() == []


async def test_a_message_of_another_shape_has_no_title(served):
    receiver, http = served
    for body in ('{"type": 5, "data": []}', '{"data": {"title": {}}}'):
        assert await post(http, receiver.url, body, signed(receiver.secret, body)) == 204
    assert {(each["type"], each["title"]) for each in receiver.received()} == {("", "")}


async def test_the_newest_are_kept_and_come_first(served):
    receiver, http = served
    for number in range(KEPT + 2):
        body = json.dumps(BODY)
        await post(http, receiver.url, body, signed(receiver.secret, body, number))
    ids = [each["webhook_id"] for each in receiver.received()]
    assert ids == [f"msg_{number}" for number in range(KEPT + 1, 1, -1)]


async def test_only_its_own_path_takes_anything(served):
    receiver, http = served
    body = json.dumps(BODY)
    headers = signed(receiver.secret, body)
    origin = receiver.url.removesuffix(receiver.path)
    for path in ("/", "/hooks", "/hooks/", receiver.path + "x"):
        assert await post(http, origin + path, body, headers) == 404
    assert receiver.received() == []


async def test_no_more_than_a_webhook_may_hold_is_read(served):
    receiver, http = served
    body = json.dumps(BODY | {"x": "x" * 20_000})
    assert await post(http, receiver.url, body, signed(receiver.secret, body)) == 413


async def test_each_start_has_another_path_and_another_secret():
    async with receiving(ManualClock()) as one, receiving(ManualClock()) as other:
        assert one.path != other.path
        assert one.secret != other.secret
        assert one.url.startswith("http://127.0.0.1:")


async def test_it_takes_nothing_after_its_end():
    async with receiving(ManualClock()) as receiver:
        pass
    async with aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.ClientConnectionError):
            await post(http, receiver.url, b"{}", {})
