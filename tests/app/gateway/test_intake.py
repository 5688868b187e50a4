"""What is known of a turn before anybody serves it; refusals are in the tests of its two users."""

import pytest

from app.gateway.intake import take
from app.gateway.upstreams import Target
from engine.driver import Upstream
from tests.support.fake_driver import Edge

TARGET = Target(Upstream("u", "https://h.example/v1"), "/responses")
SCOPE = {
    "path": "/v1/responses",
    "headers": [(b"authorization", b"Bearer sk-a"), (b"session-id", b"s")],
}


def giving(*messages):
    waiting = list(messages)

    async def receive():
        return waiting.pop(0)

    return receive


async def sent_nothing(message):
    raise AssertionError(f"{message['type']} was sent")


async def taken(edge, *messages, **options):
    return await take(
        edge.gateway._context, TARGET, SCOPE, giving(*messages), sent_nothing, **options
    )


@pytest.mark.parametrize("compaction", [False, True])
async def test_body_sender_and_time_of_receipt_are_known(compaction):
    edge = Edge()
    body = {"type": "http.request", "body": b'{"stream":true}', "more_body": False}
    found = await taken(edge, body, compaction=compaction)
    assert (b'{"stream":true}', True) == (found.body, found.fields.stream)
    assert ("s", compaction) == (found.identity.session, found.identity.compaction)
    assert ("u", edge.clock.now()) == (found.receipt.upstream, found.receipt.at)
    assert ("session-id", "s") in found.headers
    assert edge.facts == []


async def test_half_a_request_is_no_turn():
    edge = Edge()
    half = {"type": "http.request", "body": b"{", "more_body": True}
    assert await taken(edge, half, {"type": "http.disconnect"}) is None
    assert edge.facts == []


async def test_a_body_is_read_once_for_the_gateway_and_the_engine():
    edge = Edge()
    body = {"type": "http.request", "body": b'{"stream":true,"input":[]}', "more_body": False}
    found = await taken(edge, body)
    assert found.request.body is found.body
    assert found.fields.stream


async def test_a_body_that_the_engine_cannot_read_is_looked_at_all_the_same():
    edge = Edge()
    twice = b'{"stream":true,"input":[],"input":[]}'
    found = await taken(edge, {"type": "http.request", "body": twice, "more_body": False})
    assert (found.request, found.fields.stream) == (None, True)


async def test_a_compaction_is_no_turn_of_the_engine_and_not_read_for_it():
    body = {"type": "http.request", "body": b'{"input":[]}', "more_body": False}
    assert (await taken(Edge(), body, compaction=True)).request is None
