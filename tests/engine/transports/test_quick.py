"""Frames past the library's parser: what is received is what the library itself would receive."""

import asyncio
import contextlib
import random

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri
from websockets.utils import accept_key

from engine.transports.quick import QuickConnection

LIMIT = 70_000
HEAD = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"


class Wire(asyncio.Transport):
    """What a connection writes."""

    def __init__(self):
        super().__init__()
        self.written = []
        self.ended = False

    def write(self, data):
        self.written.append(bytes(data))

    def can_write_eof(self):
        return True

    def write_eof(self):
        self.ended = True

    def is_closing(self):
        return False

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def close(self):
        self.ended = True

    abort = close

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


def opened(kind, *cuts, early=b""):
    """A connection of ``kind`` whose upgrade was just accepted, by an answer that was cut."""
    protocol = ClientProtocol(parse_uri("ws://upstream.test"), max_size=LIMIT)
    connection = kind(protocol, ping_interval=None)
    wire = Wire()
    connection.connection_made(wire)
    protocol.send_request(protocol.connect())
    protocol.data_to_send()
    accept = accept_key(protocol.key).encode()
    answer = HEAD + b"sec-websocket-accept: " + accept + b"\r\n\r\n" + early
    at = 0
    for cut_at in (*cuts, len(answer)):
        connection.data_received(answer[at:cut_at])
        at = cut_at
    assert protocol.state is State.OPEN
    return connection, wire


def serialized(opcode, data, *, fin=True, mask=False):
    return Frame(opcode, data, fin).serialize(mask=mask)


async def outcome(kind, pieces, *, ends):
    """What one gets, what it is told of the end, and what was written to the peer."""
    connection, wire = opened(kind)
    with contextlib.suppress(EOFError):
        for piece in pieces:
            connection.data_received(piece)
        if ends:
            connection.eof_received()
            connection.connection_lost(None)
    got = []
    try:
        async with asyncio.timeout(0):
            while True:
                got.append(await _next(connection))
    except ConnectionClosed as error:
        got.append((error.rcvd, error.sent))
    except TimeoutError:
        got.append("still open")
    connection.connection_lost_waiter.cancel()
    # A mask is random: only the kind and the length of what was written can be compared.
    written = b"".join(wire.written)
    return got, connection.protocol.state, wire.ended, written[:1], len(written)


async def _next(connection):
    if isinstance(connection, QuickConnection):
        return await connection.receive()
    return await connection.recv(decode=False)


def stream(rng):
    frames = []
    for _ in range(rng.randrange(1, 12)):
        data = rng.randbytes(rng.choice((0, 1, 125, 126, 400, 65_535, 65_536)))
        frames.append(
            rng.choice(
                (
                    lambda d=data: serialized(Opcode.TEXT, d),
                    lambda d=data: serialized(Opcode.TEXT, d),
                    lambda d=data: serialized(Opcode.TEXT, d),
                    lambda d=data: serialized(Opcode.BINARY, d),
                    lambda d=data: serialized(Opcode.PING, d[:125]),
                    lambda d=data: serialized(Opcode.TEXT, d, fin=False),
                    lambda d=data: serialized(Opcode.CONT, d, fin=rng.random() < 0.7),
                )
            )()
        )
    odd = rng.random()
    if odd < 0.1:
        frames.append(serialized(Opcode.CLOSE, Close(1000, "bye").serialize()))
    elif odd < 0.2:
        frames.append(serialized(Opcode.TEXT, b"masked", mask=True))
    elif odd < 0.3:
        frames.append(serialized(Opcode.TEXT, bytes(LIMIT + 1)))
    elif odd < 0.4:
        frames.append(rng.randbytes(20))
    rng.shuffle(frames)
    return b"".join(frames)


def cut(rng, data):
    pieces, at = [], 0
    while at < len(data):
        size = rng.choice((1, 2, 3, 9, 100, 5_000, 70_000))
        pieces.append(data[at : at + size])
        at += size
    return pieces


@pytest.mark.parametrize("seed", range(60))
async def test_any_stream_cut_anywhere_is_received_as_by_the_library(seed):
    rng = random.Random(seed)
    pieces = cut(rng, stream(rng))
    ends = rng.random() < 0.5
    expected = await outcome(ClientConnection, pieces, ends=ends)
    assert expected == await outcome(QuickConnection, pieces, ends=ends)


@pytest.mark.parametrize("kept", [1, 3, 9])
async def test_what_the_end_of_a_frame_is_cut_off_from_is_told_as_by_the_library(kept):
    pieces = [serialized(Opcode.TEXT, b"whole"), serialized(Opcode.TEXT, bytes(300))[:kept]]
    expected = await outcome(ClientConnection, pieces, ends=True)
    assert b"whole" == expected[0][0]
    assert expected == await outcome(QuickConnection, pieces, ends=True)


async def test_plain_text_frames_never_reach_the_parser():
    connection, _ = opened(QuickConnection)
    connection.protocol.receive_data = None  # nobody can call it
    connection.data_received(serialized(Opcode.TEXT, b"one") + serialized(Opcode.TEXT, b"two"))
    assert [b"one", b"two"] == [await connection.receive() for _ in range(2)]


@pytest.mark.parametrize(
    ("cuts", "early", "quick"),
    [
        ((), b"", True),
        ((10,), b"", False),
        ((-2,), serialized(Opcode.TEXT, b"\r\n\r\n"), False),
        ((), serialized(Opcode.TEXT, b"early"), False),
        ((), serialized(Opcode.TEXT, b"half")[:3], False),
    ],
)
async def test_it_is_quick_only_where_the_library_is_known_to_be_between_two_frames(
    cuts, early, quick
):
    cuts = [cut_at - len(early) if cut_at < 0 else cut_at for cut_at in cuts]
    connection, _ = opened(QuickConnection, *cuts, early=early)
    assert connection._is_quick is quick


async def test_a_short_frame_is_sent_as_the_library_sends_it():
    connection, wire = opened(QuickConnection)
    assert connection.send_at_once(b'{"a":1}')
    [sent] = wire.written
    assert (0x81, 0x80 | 7, 2 + 4 + 7) == (sent[0], sent[1], len(sent))
    assert b'{"a":1}' == bytes(b ^ sent[2 + n % 4] for n, b in enumerate(sent[6:]))


async def test_where_something_is_to_be_waited_for_nothing_is_sent_at_once():
    connection, wire = opened(QuickConnection)
    assert not connection.send_at_once(bytes(32 * 1024 + 1))
    connection.send_in_progress = asyncio.get_running_loop().create_future()
    assert not connection.send_at_once(b"{}")
    connection.send_in_progress = None
    connection.pause_writing()
    assert not connection.send_at_once(b"{}")
    connection.resume_writing()
    connection.data_received(Frame(Opcode.CLOSE, Close(1000, "").serialize()).serialize(mask=False))
    wire.written.clear()
    assert not connection.send_at_once(b"{}")
    assert [] == wire.written
