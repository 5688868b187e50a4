import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
import uvicorn

from app.http_connection import NOTICE, HeadWithBody, HttpConnection

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}


class Transport(asyncio.Transport):
    """What is written to it, and whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = self.paused = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class Client:
    """A connection of ``HttpConnection`` without a socket."""

    def __init__(self, app) -> None:
        config = uvicorn.Config(app, http=HttpConnection, lifespan="off", log_config=None)
        config.load()
        self.state = uvicorn.server.ServerState()
        self.protocol = HttpConnection(config, self.state, {})
        self.transport = Transport()
        self.protocol.connection_made(self.transport)

    def say(self, data: bytes) -> None:
        self.protocol.data_received(data)

    async def answered(self) -> list[bytes]:
        while self.state.tasks:
            await asyncio.wait(set(self.state.tasks))
            await asyncio.sleep(0)
        return self.transport.written


@contextlib.asynccontextmanager
async def client(app) -> AsyncIterator[Client]:
    made = Client(app)
    try:
        yield made
    finally:
        made.protocol.connection_lost(None)


def body(piece: bytes, *, more: bool = False) -> dict:
    return {"type": "http.response.body", "body": piece, "more_body": more}


async def test_the_head_leaves_with_the_first_piece_and_each_other_piece_at_once():
    async def app(scope, receive, send):
        await send(START)
        await send(body(b"a", more=True))
        await send(body(b"b"))

    async with client(app) as one:
        one.say(GET)
        first, second = await one.answered()
        assert first.startswith(b"HTTP/1.1 200 OK\r\n")
        assert first.endswith(b"\r\n\r\na")
        assert b"b" == second
        one.say(GET)
        assert [first, second] * 2 == await one.answered()


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
async def test_a_head_without_a_body_leaves(method):
    async def app(scope, receive, send):
        await send({**START, "status": 304, "headers": []})
        await send(body(b""))

    async with client(app) as one:
        one.say(GET.replace(b"GET", method))
        assert b"HTTP/1.1 304 Not Modified\r\n\r\n" == b"".join(await one.answered())


async def test_who_waits_to_be_told_to_go_on_is_told_before_the_answer():
    async def app(scope, receive, send):
        await receive()
        await send(START)
        await send(body(b"ab"))

    async with client(app) as one:
        one.say(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\nexpect: 100-continue\r\n\r\n")
        await asyncio.sleep(0)
        assert [b"HTTP/1.1 100 Continue\r\n\r\n"] == one.transport.written
        one.say(b"1")
        assert 2 == len(await one.answered())


async def test_an_answer_that_breaks_off_behind_its_head_has_its_head_and_no_end():
    async def app(scope, receive, send):
        await send(START)
        raise ConnectionAbortedError

    async with client(app) as one:
        one.say(GET)
        [head] = await one.answered()
        assert (head.endswith(b"\r\n\r\n"), one.transport.closed) == (True, True)


async def test_a_request_that_comes_before_the_last_one_was_answered_changes_nothing_of_it():
    go_on = asyncio.Event()

    async def app(scope, receive, send):
        await send(START)
        await send(body(b"a", more=True))
        await go_on.wait()
        await send(body(b"b"))

    async with client(app) as one:
        one.say(GET)
        await asyncio.sleep(0)
        one.say(GET)
        go_on.set()
        written = await one.answered()
        assert b"b" == written[1]
        answer = b"".join(written[:2])
        assert answer * 2 == b"".join(written)


async def test_the_departure_of_a_client_is_told_to_who_listens_and_to_nobody_after_that():
    told, listening = [], asyncio.Event()

    async def app(scope, receive, send):
        scope["extensions"][NOTICE](lambda: told.append(scope["path"]))
        listening.set()
        await asyncio.Event().wait()

    one = Client(app)
    one.protocol.flow.pause_reading()
    one.say(GET)
    await listening.wait()
    assert (False, []) == (one.transport.paused, told)
    one.protocol.connection_lost(None)
    assert ["/"] == told
    for task in one.state.tasks:
        task.cancel()
    one.protocol.listen(lambda: told.append("late"))
    one.protocol.listen(None)
    assert ["/", "late"] == told


def test_a_transport_that_waits_for_no_head_sends_what_it_is_given():
    transport = Transport()
    answers = HeadWithBody(transport)
    answers.write(b"HTTP/1.1 200 OK\r\n\r\n")
    answers.close()
    assert ([b"HTTP/1.1 200 OK\r\n\r\n"], True) == (transport.written, answers.is_closing())
