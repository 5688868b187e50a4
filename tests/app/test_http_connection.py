import asyncio
import contextlib
import gc
import json
import socket
import tracemalloc
import weakref
from collections.abc import AsyncIterator

import pytest
import uvicorn
from hypothesis import example, given
from hypothesis import strategies as st
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.http_connection import BODY, NOTICE, STALL_SECONDS, HeadWithBody, HttpConnection
from tests.support import virtual_time

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}


class Transport(asyncio.Transport):
    """What is written to it, and whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = self.paused = False
        self.protocol: asyncio.BaseProtocol | None = None

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

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

    def __init__(self, app, kind=HttpConnection) -> None:
        config = uvicorn.Config(app, http=kind, lifespan="off", log_config=None)
        config.load()
        self.state = uvicorn.server.ServerState()
        self.protocol = kind(config, self.state, {})
        self.transport = Transport()
        self.transport.set_protocol(self.protocol)
        self.protocol.connection_made(self.transport)

    def say(self, data: bytes | memoryview) -> None:
        """Hand on what the client sent as a socket's transport does."""
        receiver = self.transport.protocol
        if isinstance(receiver, asyncio.BufferedProtocol):
            room = receiver.get_buffer(-1)
            taken = min(len(room), len(data))
            room[:taken] = data[:taken]
            receiver.buffer_updated(taken)
            data = data[taken:]
            del room
            if data:
                self.say(data)
        else:
            receiver.data_received(data)

    def leave(self) -> None:
        receiver, self.transport.protocol = self.transport.protocol, None  # as asyncio does
        receiver.connection_lost(None)

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
        made.leave()


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
    one.leave()
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


def post(size: int, *, chunked: bool = False) -> bytes:
    length = b"transfer-encoding: chunked" if chunked else b"content-length: %d" % size
    return b"POST / HTTP/1.1\r\nhost: x\r\n" + length + b"\r\n\r\n"


class Reader:
    """An application that reads bodies of up to ten bytes, and what it got."""

    def __init__(self) -> None:
        self.got: list[bytes | str | None] = []
        self.reading = asyncio.Event()

    async def __call__(self, scope, receive, send) -> None:
        self.reading.set()
        try:
            self.got.append(await scope["extensions"][BODY](receive, 10))
        except OverflowError:
            self.got.append("too large")
        await send(START)
        await send(body(b"ab"))


@pytest.mark.parametrize("pieces", [[b"0123456789"], [b"01", b"2345", b"6789"], [b"", b"012", b""]])
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_is_had_as_a_whole_however_it_comes(pieces, chunked):
    whole = b"".join(pieces)
    app = Reader()
    async with client(app) as one:
        one.say(post(len(whole), chunked=chunked))
        for piece in pieces:
            await asyncio.sleep(0)
            if piece:
                one.say(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        one.say(b"0\r\n\r\n" if chunked else b"")
        await one.answered()
        assert ([whole], False) == (app.got, one.transport.paused)


async def test_a_large_body_does_not_stop_its_connection():
    got = []

    async def app(scope, receive, send):
        got.append(await scope["extensions"][BODY](receive, 1 << 20))

    async with client(app) as one:
        one.say(post(300_000))
        for _ in range(3):
            await asyncio.sleep(0)
            one.say(bytes(100_000))
            await asyncio.sleep(0)
            assert not one.transport.paused
        await one.answered()
    assert [bytes(300_000)] == got


async def test_a_body_whose_length_was_declared_is_in_memory_once():
    got, sent = [], memoryview(b"x" * 5_000_000)

    async def app(scope, receive, send):
        got.append(await scope["extensions"][BODY](receive, len(sent)))

    async with client(app) as one:
        one.say(post(len(sent)))
        await asyncio.sleep(0)
        tracemalloc.start()
        try:
            for at in range(0, len(sent), 500_000):
                one.say(sent[at : at + 500_000])
                await asyncio.sleep(0)
            await one.answered()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert ([sent], True) == (got, most < 1.5 * len(sent))


async def test_no_more_than_small_pieces_of_a_large_body_go_through_the_parser():
    parsed, got = [], asyncio.get_running_loop().create_future()

    class Counting(HttpConnection):
        def data_received(self, data: bytes) -> None:
            parsed.append(len(data))
            super().data_received(data)

    async def app(scope, receive, send):
        got.set_result(await scope["extensions"][BODY](receive, 1 << 20))

    config = uvicorn.Config(app, http=Counting, lifespan="off", log_config=None)
    config.load()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        waiting = theirs.send(post(200_000) + bytes(200_000))  # all of it, before the first read
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: Counting(config, uvicorn.server.ServerState(), {}), ours
        )
        assert bytes(200_000) == await got
    assert waiting > 200_000
    assert (64 * 1024, True) == (max(parsed), len(parsed) <= 2)  # two fill the server's queue


async def test_a_body_that_is_declared_too_large_is_told_before_the_rest_has_come():
    app = Reader()
    async with client(app) as one:
        one.say(post(11) + b"0")
        await one.answered()
        assert ["too large"] == app.got


async def test_a_connection_ends_where_a_body_is_given_up_before_its_end():
    async def app(scope, receive, send):
        reading = asyncio.create_task(scope["extensions"][BODY](receive, 10))
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        await send(START)
        await send(body(b"ab"))

    async with client(app) as one:
        one.say(post(9) + b"0")
        await one.answered()
        assert one.transport.closed


async def test_an_answer_may_wait_for_a_client_that_sends_its_next_body():
    app = Reader()
    async with client(app) as one:
        one.protocol.pause_writing()
        one.say(post(2) + b"0")
        await asyncio.sleep(0)
        one.transport.protocol.resume_writing()
        one.transport.protocol.pause_writing()
        one.transport.protocol.resume_writing()
        one.say(b"1")
        await one.answered()
        assert ([b"01"], False) == (app.got, one.protocol.flow.write_paused)


@pytest.mark.parametrize("pieces", [[b"0" * 11], [b"0" * 5, b"0" * 6]])
async def test_a_body_beyond_the_limit_is_told_and_the_rest_of_it_waits(pieces):
    app = Reader()
    async with client(app) as one:
        one.say(post(20, chunked=True))
        for piece in pieces:
            await asyncio.sleep(0)
            one.say(b"%x\r\n%b\r\n" % (len(piece), piece))
        await one.answered()
        assert ["too large"] == app.got


@pytest.mark.parametrize("came", [b"", b"1"])
async def test_a_client_that_leaves_within_its_body_has_none(came):
    app = Reader()
    one = Client(app)
    one.say(post(3) + came)
    await app.reading.wait()
    one.leave()
    await one.answered()
    assert [None] == app.got


def taking_bodies(got):
    """An application that takes each request's body as a whole, where the server gives it so."""

    async def app(scope, receive, send):
        whole = scope.get("extensions", {}).get(BODY)
        got.append(await whole(receive, 9) if whole else (await receive())["body"])
        await send(START)
        await send(body(b"ab"))

    return app


async def test_each_of_two_requests_that_came_at_once_has_its_own_body():
    got = []
    async with client(taking_bodies(got)) as one:
        one.say(post(1) + b"1" + post(1) + b"2")
        await one.answered()
    assert [b"1", b"2"] == got


async def test_a_request_that_comes_with_the_end_of_a_body_keeps_its_own():
    got = []
    async with client(taking_bodies(got)) as one:
        one.say(post(4) + b"12")
        await asyncio.sleep(0)
        one.say(b"34" + post(1) + b"5")
        await one.answered()
    assert [b"1234", b"5"] == got


async def test_an_upgrade_is_the_servers_alone_also_behind_an_answer():
    app = Reader()
    async with client(app) as one:
        handed_over = []
        one.protocol.handle_websocket_upgrade = lambda: handed_over.append(one.protocol.scope)
        one.say(post(1) + b"1")
        await one.answered()
        one.say(GET[:-2] + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n")
        await one.answered()
        assert ([b"1"], 1) == (app.got, len(handed_over))
        assert "extensions" not in handed_over[0]


async def test_a_body_behind_an_upgrade_that_is_not_made_is_not_taken_for_requests():
    app, smuggled = Reader(), b"GET /smuggled HTTP/1.1\r\n\r\n"
    upgrade = b"connection: upgrade\r\nupgrade: h2c\r\n\r\n"
    async with client(app) as one:
        one.say(post(len(smuggled))[:-2] + upgrade)
        if not one.transport.closed:
            one.say(smuggled)
        [answer] = await one.answered()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert ([], True) == (app.got, one.transport.closed)
    async with client(app) as one:  # nothing is lost where there is no body
        one.say(GET[:-2] + upgrade)
        await one.answered()
        assert ([b""], False) == (app.got, one.transport.closed)


WEBSOCKET = b"connection: upgrade\r\nupgrade: websocket\r\n"


def refusal(written: list[bytes]) -> tuple[bytes, str]:
    """The status line of an answer, and the code of its error."""
    head, _, told = b"".join(written).partition(b"\r\n\r\n")
    assert b"content-length: %d\r\n" % len(told) in head
    return head.split(b"\r\n")[0], json.loads(told)["error"]["code"]


@pytest.mark.parametrize("method", [b"GET", b"POST"])
@pytest.mark.parametrize("length", [b"content-length: 2", b"transfer-encoding: chunked"])
async def test_an_upgrade_to_a_websocket_with_a_body_is_refused(method, length):
    app = Reader()
    async with client(app) as one:
        one.say(method + b" / HTTP/1.1\r\nhost: x\r\n" + WEBSOCKET + length + b"\r\n\r\n{}")
        assert (b"HTTP/1.1 400 Bad Request", "bad_request") == refusal(await one.answered())
        assert ([], True) == (app.got, one.transport.closed)


async def test_what_offers_a_websocket_and_is_no_get_is_a_request_like_any_other():
    app = Reader()
    async with client(app) as one:
        one.say(b"POST / HTTP/1.1\r\nhost: x\r\n" + WEBSOCKET + b"\r\n")
        await one.answered()
        one.say(post(1) + b"1")
        await one.answered()
        assert ([b"", b"1"], False) == (app.got, one.transport.closed)


def upgrade(path: bytes = b"/", headers: bytes = b"") -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\nhost: x\r\n" + WEBSOCKET + headers + b"\r\n"


HEADS = {
    "a long address": lambda over: upgrade(path=b"/" + b"a" * (8_176 + over)),
    "a long header": lambda over: upgrade(headers=b"x: " + b"a" * (8_187 + over) + b"\r\n"),
    "many headers": lambda over: upgrade(headers=b"x: a\r\n" * (125 + over)),
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
async def test_an_upgrade_whose_head_is_too_large_is_sent_to_http(head):
    async with client(Reader()) as one:
        one.say(head(1))
        assert (b"HTTP/1.1 426 Upgrade Required", "head_too_large") == refusal(await one.answered())
    async with client(Reader()) as one:
        one.say(head(0))
        [answer] = await one.answered()
        assert b"missing Sec-WebSocket-Key" in answer


LIMIT = 12


class Seen:
    """What an application saw of its requests: bodies as a whole, or as any server gives them."""

    def __init__(self) -> None:
        self.requests: list[tuple] = []

    async def __call__(self, scope, receive, send) -> None:
        head = scope["method"], scope["raw_path"], tuple(scope["headers"])
        try:
            if int(dict(scope["headers"]).get(b"content-length", 0)) > LIMIT:
                raise OverflowError
            whole = scope.get("extensions", {}).get(BODY)
            got = await (whole(receive, LIMIT) if whole else by_pieces(receive))
        except OverflowError:
            got = "too large"
        self.requests.append((*head, got))
        if got is not None:
            await send(START)
            await send(body(b"ab"))


async def by_pieces(receive) -> bytes | None:
    whole, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        whole += message["body"]
        if len(whole) > LIMIT:
            raise OverflowError
        more = message["more_body"]
    return whole


async def seen_of(kind, pieces: list[tuple[bytes, int]]) -> tuple[list[tuple], bytes]:
    """What was asked and answered, where the loop turns so often behind each piece."""
    app = Seen()
    one = Client(app, kind)
    for piece, turns in pieces:
        one.say(piece)
        for _ in range(turns):
            await asyncio.sleep(0)
    for _ in range(30):
        await asyncio.sleep(0)
    one.leave()
    await one.answered()
    return app.requests, b"".join(one.transport.written)


@st.composite
def requests(draw) -> bytes:
    # Bodies that look like what could follow them, in sizes on both sides of the limit.
    whole = (b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n" * 2)[: draw(st.integers(0, LIMIT + 3))]
    head = b"POST /%d HTTP/1.1\r\nhost: x\r\n" % draw(st.integers(0, 9))
    if draw(st.booleans()):
        return head + b"content-length: %d\r\n\r\n" % len(whole) + whole
    at = draw(st.integers(0, len(whole)))
    chunks = [b"%x\r\n%b\r\n" % (len(one), one) for one in (whole[:at], whole[at:]) if one]
    trailer = draw(st.sampled_from([b"", b"x-late: 1\r\n"]))
    return (
        head
        + b"transfer-encoding: chunked\r\n\r\n"
        + b"".join(chunks)
        + b"0\r\n"
        + trailer
        + b"\r\n"
    )


CHUNKED = post(0, chunked=True) + b"1\r\na\r\n0\r\nx-late: 1\r\n\r\n"


@given(
    sent=st.lists(requests(), min_size=1, max_size=3).map(b"".join),
    cuts=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), max_size=8),
    kept=st.one_of(st.just(1.0), st.floats(0, 1)),
)
@example(sent=CHUNKED, cuts=[], kept=1.0)
@example(sent=post(4) + b"1234" + post(1) + b"5", cuts=[(0.45, 4), (0.47, 4)], kept=1.0)
def test_bytes_that_are_cut_anywhere_are_the_same_requests_with_the_same_answers(sent, cuts, kept):
    sent = sent[: round(len(sent) * kept)]
    at = sorted((round(len(sent) * where), turns) for where, turns in cuts)
    begins = [(0, 0), *at]
    ends = [*at, (len(sent), 0)]
    pieces = [(sent[a:b], turns) for (a, _), (b, turns) in zip(begins, ends, strict=True) if a < b]
    plain = [(sent[n : n + 1], 4) for n in range(len(sent))]
    expected = asyncio.run(seen_of(HttpToolsProtocol, plain))
    assert expected == asyncio.run(seen_of(HttpConnection, pieces))


# --- time --------------------------------------------------------------------------------------

LONG = 30 * STALL_SECONDS


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("came", [b"", b"1"])
def test_a_body_that_stalls_is_given_up_with_an_answer(chunked, came):
    async def stall():
        app = Reader()
        one = Client(app)
        one.say(post(3, chunked=chunked))
        await app.reading.wait()
        if came:
            one.say(b"1\r\n1\r\n" if chunked else came)
        await until_closed(one)
        assert (b"HTTP/1.1 408 Request Timeout", "request_timeout") == refusal(
            one.transport.written
        )
        one.leave()
        await one.answered()
        return app.got, asyncio.get_running_loop().time()

    got, took = virtual_time.run(stall())
    assert ([None], True) == (got, STALL_SECONDS <= took <= 2 * STALL_SECONDS)


async def until_closed(one: Client) -> None:
    while not one.transport.closed:
        await asyncio.sleep(1)


@pytest.mark.parametrize("way", ["declared", "chunked", "by pieces"])
def test_a_body_that_comes_slowly_is_waited_for(way):
    async def drip():
        app = Seen() if way == "by pieces" else Reader()
        if way == "by pieces":
            app = pieces_alone(app)
        one = Client(app)
        one.say(post(9, chunked=way == "chunked"))
        for _ in range(9):
            await asyncio.sleep(STALL_SECONDS - 1)
            one.say(b"1\r\n1\r\n" if way == "chunked" else b"1")
        one.say(b"0\r\n\r\n" if way == "chunked" else b"")
        status = b"".join(await one.answered()).split(b"\r\n")[0]
        return status, one.transport.closed

    assert (b"HTTP/1.1 200 OK", False) == virtual_time.run(drip())


def pieces_alone(app):
    """An application that is given bodies as any server gives them."""

    async def without(scope, receive, send):
        await app({**scope, "extensions": {}}, receive, send)

    return without


@pytest.mark.parametrize("before", [b"", GET])
def test_a_head_that_does_not_end_is_given_up_however_it_drips(before):
    async def drip():
        one = Client(Reader())
        if before:
            one.say(before)
            await one.answered()
        for byte in b"GET / HTTP/1.1\r\nx: " + b"a" * 200:
            one.say(bytes([byte]))
            await asyncio.sleep(1)
            if one.transport.closed:
                break
        return asyncio.get_running_loop().time()

    assert STALL_SECONDS <= virtual_time.run(drip()) <= 2 * STALL_SECONDS + 1


def test_who_says_nothing_at_all_is_given_up():
    async def wait():
        one = Client(Reader())
        await until_closed(one)
        return one.transport.written

    assert [] == virtual_time.run(wait())


def test_an_answer_may_take_long_and_so_may_who_reads_a_body():
    async def slow(scope, receive, send):
        await asyncio.sleep(LONG)
        size = 0
        while (message := await receive())["more_body"]:
            size += len(message["body"])
            await asyncio.sleep(LONG)
        assert 100_000 == size + len(message["body"])
        await send(START)
        await asyncio.sleep(LONG)
        await send(body(b"ab"))

    async def wait():
        one = Client(slow)
        one.say(post(100_000) + bytes(70_000))
        await asyncio.sleep(LONG / 2)
        assert one.transport.paused  # by us: the client cannot go on
        await asyncio.sleep(LONG / 2 + 1)
        assert not one.transport.paused
        one.say(bytes(30_000))
        written = b"".join(await one.answered())
        return written.endswith(b"ab"), one.transport.closed

    assert (True, False) == virtual_time.run(wait())


def test_what_was_handed_over_is_looked_at_no_more():
    async def wait():
        one = Client(Reader())
        one.protocol.handle_websocket_upgrade()
        await asyncio.sleep(LONG)
        return one.transport.closed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HttpToolsProtocol, "handle_websocket_upgrade", lambda _self: None)
        patch.setattr(HttpConnection, "url", b"/", raising=False)
        patch.setattr("app.http_connection._is_beyond_websockets", lambda *_head: False)
        assert not virtual_time.run(wait())


@pytest.fixture
def uncollected():
    """The cyclic collector does nothing meanwhile."""
    gc.disable()
    yield
    gc.enable()


def test_nothing_of_a_connection_that_ended_waits_for_the_cyclic_collector(uncollected):
    async def serve():
        one = Client(Reader())
        one.say(post(1) + b"1")
        await one.answered()
        one.leave()
        return weakref.ref(one.protocol), weakref.ref(one.transport)

    assert [None, None] == [known() for known in virtual_time.run(serve())]


def test_nor_does_one_that_became_a_websocket(uncollected):
    async def serve():
        one = Client(Reader())
        one.protocol.ws_protocol_class = lambda **_: Upgraded()
        one.say(GET[:-2] + WEBSOCKET + b"\r\n")
        return weakref.ref(one.protocol)

    assert virtual_time.run(serve())() is None


class Upgraded(asyncio.Protocol):
    """What serves a WebSocket, and takes no notice of it."""
