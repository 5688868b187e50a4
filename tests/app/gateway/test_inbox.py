import asyncio
import json
import threading

import pytest

from app.gateway.departure import Departure
from app.gateway.identity import identify, peek
from app.gateway.inbox import MAX_FRAMES, Inbox
from engine.aside import LARGE
from tests.support.fake_driver import KEYS, Edge


class Client:
    def __init__(self, max_body_bytes=100):
        self.messages = asyncio.Queue()
        self.departure = Departure()
        self.begun = []
        self.edge = Edge(max_body_bytes=max_body_bytes, on_begin=self.begun.append)
        self.inbox = Inbox(
            self.edge.gateway._context, "default", lambda fields: identify(KEYS, (), fields)
        )
        self.shown = []
        self.takes = False
        self.reading = asyncio.ensure_future(
            self.inbox.read(self.messages.get, self.departure, self.beside)
        )

    async def beside(self, frame):
        self.shown.append(frame.fields.type)
        return self.takes

    def say(self, *frames):
        for frame in frames:
            text = json.dumps(frame) if isinstance(frame, dict) else frame
            self.messages.put_nowait({"type": "websocket.receive", "text": text})

    async def leave(self):
        self.messages.put_nowait({"type": "websocket.disconnect"})
        await self.reading


@pytest.mark.parametrize(
    ("frame", "is_create"),
    [
        ({"type": "response.create"}, True),
        ({"type": "response.create", "stream_id": "a"}, False),
        ({"type": "response.create", "stream_id": ""}, False),
        ({"type": "response.steer"}, False),
        ({"type": "anything.new"}, False),
    ],
)
async def test_only_plain_creates_are_turns(frame, is_create):
    client = Client()
    client.say(frame)
    assert (await client.inbox.next()).is_create is is_create
    await client.leave()


async def test_frames_come_in_order_and_none_after_the_end():
    client = Client()
    client.say({"type": "a"}, {"type": "b"})
    assert [(await client.inbox.next()).fields.type for _ in range(2)] == ["a", "b"]
    client.say({"type": "c"})
    await client.leave()
    assert await client.inbox.next() is None
    assert [frame.fields.type for frame in client.inbox.left_over()] == ["c"]
    assert client.departure.gone


async def test_a_turn_begins_when_its_frame_has_come_also_behind_another():
    client = Client(max_body_bytes=400)
    client.say(
        {"type": "response.create", "prompt_cache_key": "one"},
        {"type": "response.steer"},
        {"type": "response.create", "stream_id": "a", "prompt_cache_key": "two"},
        "no JSON",
        {"type": "response.create", "input": "x" * 400},
    )
    await client.leave()
    assert ["one", "two"] == [facts.session for facts in client.begun]
    turns = [frame.receipt.turn_id for frame in client.inbox.left_over() if frame.is_turn]
    assert turns == [facts.turn_id for facts in client.begun]


async def test_reading_goes_on_while_nobody_takes():
    client = Client()
    client.say({"type": "a"}, {"type": "b"})
    await client.leave()
    assert client.departure.gone


async def test_a_frame_as_large_as_the_limit_passes_and_what_would_wait_beside_it_is_refused():
    client = Client()
    client.say('{"type":"x","input":"' + "y" * 77 + '"}', {"type": "b"})
    first, second = await client.inbox.next(), await client.inbox.next()
    assert (len(first.body), first.refusal) == (100, None)
    await client.leave()
    assert second.refusal.status == 429


async def test_a_bound_of_frames_ends_the_reading():
    client = Client()
    client.say(*["x"] * (MAX_FRAMES + 1))
    await client.reading
    assert client.inbox.overflown
    assert client.departure.gone


async def test_frames_about_another_response_are_shown_and_kept_unless_taken():
    client = Client()
    client.say({"type": "response.steer"}, {"type": "response.create"}, "no json")
    await client.inbox.next()
    client.takes = True
    client.say({"type": "response.interrupt"})
    await client.leave()
    assert client.shown == ["response.steer", "response.interrupt"]
    assert [frame.fields.type for frame in client.inbox.left_over()] == ["response.create", None]


async def test_a_large_frame_is_looked_at_in_a_thread(monkeypatch):
    """A fault of the field (docs/field-reports.md): every other stream would wait."""
    here, where = threading.get_ident(), []

    def note(body):
        where.append(threading.get_ident())
        return peek(body)

    monkeypatch.setattr("app.gateway.inbox.peek", note)
    client = Client()
    client.edge.gateway._context.max_body_bytes = 2 * LARGE
    for size in (1, LARGE):
        client.say({"type": "response.create", "input": "x" * size})
        assert (await client.inbox.next()).is_create
    assert [True, False] == [ident == here for ident in where]
