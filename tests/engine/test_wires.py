from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from engine.errors import ConnectionLost
from engine.turn import Event
from engine.wires import HttpWire, SocketWire, end_to_end, is_stream, local_warmup


class Body:
    """An answer whose body comes in these chunks."""

    status = 200
    headers = ()

    def __init__(self, *chunks: bytes, breaks: bool = False) -> None:
        self._chunks, self._breaks = chunks, breaks
        self.closed = False

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk
        if self._breaks:
            raise ConnectionLost(None, sent=True)

    async def close(self) -> None:
        self.closed = True


async def test_events_keep_their_exact_bytes():
    wire = HttpWire(Body(b": hi\n\ndata: {}\r", b"\n\r\ndata: [DONE]\n\n"))
    comment, event, done = [await wire.next() for _ in range(3)]
    assert Event(b"", b": hi\n\n") == comment
    assert Event(b"{}", b"data: {}\r\n\r\n") == event
    assert Event(b"", b"data: [DONE]\n\n") == done


async def test_a_last_event_without_its_blank_line_is_an_event():
    assert b'{"type":"x"}' == (await HttpWire(Body(b'data: {"type":"x"}')).next()).data


async def test_a_stream_cut_in_the_middle_of_an_event_is_lost_without_it():
    wire = HttpWire(Body(b'data: {"type":"x"}\n\ndata: {"ty'))
    await wire.next()
    with pytest.raises(ConnectionLost):
        await wire.next()


async def test_a_comment_that_the_end_cuts_off_is_no_event():
    wire = HttpWire(Body(b": still wor"))
    with pytest.raises(ConnectionLost):
        await wire.next()


async def test_what_follows_the_terminal_event_is_given_to_its_end():
    wire = HttpWire(Body(b"data: {}\n\ndata: [DONE]\n\n"))
    await wire.next()
    assert [b"data: [DONE]\n\n"] == [event.raw async for event in wire.rest()]
    broken = HttpWire(Body(b"data: {}\n\n", breaks=True))
    await broken.next()
    assert [] == [event async for event in broken.rest()]


async def test_a_whole_body_is_joined_and_closing_gives_the_answer_back():
    body = Body(b"ab", b"c")
    wire = HttpWire(body)
    assert b"abc" == await wire.whole()
    await wire.close()
    assert body.closed


async def test_a_socket_gives_frames_and_nothing_after_the_terminal_one():
    class One:
        async def receive(self) -> bytes:
            return b"{}"

        def take(self) -> bytes | None:
            return None

    wire = SocketWire(One())
    assert Event(b"{}") == await wire.next()
    assert wire.rest() is None
    await wire.close()


async def test_a_local_warm_up_is_created_and_completed_with_nothing_made():
    wire = local_warmup("resp_1", "m")
    first = await wire.next()
    rest = [event async for event in wire.rest()]
    await wire.close()
    assert b"response.created" in first.data
    assert 1 == len(rest)
    assert b'"output": []' in rest[0].data


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [("text/event-stream", True), ("", True), ("application/json; charset=utf-8", False)],
)
def test_only_a_json_body_is_no_stream(content_type, expected):
    assert expected is is_stream([("content-type", content_type)])


def test_headers_of_the_hop_are_not_the_clients():
    given = [("content-length", "3"), ("date", "x"), ("x-request-id", "r"), ("retry-after", "1")]
    assert [("x-request-id", "r"), ("retry-after", "1")] == end_to_end(given)
