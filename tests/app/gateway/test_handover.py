import asyncio

import pytest

from app.gateway.handover import Seat, SharedConnection, SharedSockets
from engine.errors import ConnectionLost
from tests.support.fake_driver import FakeConnection, FakeSockets


async def shared(up=None):
    up = up or FakeConnection()
    connection = await SharedSockets(FakeSockets(up)).connect("ws://u", [], 1.0)
    return up, connection


async def in_seat(seat, connection, frame=b"x"):
    """As a client socket's task does it: what is noted is noted for its own seat only."""

    async def task():
        seat.occupy()
        await connection.send(frame)

    await asyncio.ensure_future(task())


async def test_frames_and_events_pass_as_on_the_connection_itself():
    up, connection = await shared()
    up.say({"type": "a"})
    await connection.send(b"x")
    assert (up.sent, await connection.receive()) == ([b"x"], b'{"type": "a"}')
    assert await connection.ping(1.0)
    await connection.close()
    assert (up.closed, connection.closed) == (True, True)


async def test_a_connection_is_noted_where_the_task_that_sends_sits():
    seat, other = Seat(), Seat()
    up, connection = await shared()
    await in_seat(seat, connection)
    assert other.take() is None
    assert seat.take() is up


async def test_sending_outside_of_any_seat_is_noted_nowhere():
    up, connection = await shared()
    await connection.send(b"x")
    assert up.sent == [b"x"]


async def test_a_taken_connection_is_closed_to_the_engine_but_lives():
    seat = Seat()
    up, connection = await shared()
    await in_seat(seat, connection)
    seat.take()
    assert connection.closed
    with pytest.raises(ConnectionLost) as caught:
        await connection.send(b"y")
    assert caught.value.sent is False
    await connection.close()
    assert (up.closed, up.sent) == (False, [b"x"])


async def test_it_is_taken_once_and_never_when_it_has_ended():
    seat = Seat()
    up, connection = await shared()
    await in_seat(seat, connection)
    assert (seat.take(), seat.take()) == (up, None)
    seat.note(connection)
    assert seat.take() is None
    seat.note(SharedConnection(FakeConnection()))
    seat.note(None)
    assert seat.take() is None


async def test_a_frame_beside_the_turn_goes_out_on_its_connection():
    seat = Seat()
    up, connection = await shared()
    assert await seat.send_beside(b"early") is False
    await in_seat(seat, connection)
    assert await seat.send_beside(b"interrupt") is True
    assert up.sent == [b"x", b"interrupt"]
    await up.close()
    assert await seat.send_beside(b"late") is False


async def test_a_connection_lost_at_that_moment_took_nothing():
    class Losing(FakeConnection):
        async def send(self, frame):
            if frame == b"interrupt":
                raise ConnectionLost(1006, sent=False)

    seat = Seat()
    _, connection = await shared(Losing())
    await in_seat(seat, connection)
    assert await seat.send_beside(b"interrupt") is False
