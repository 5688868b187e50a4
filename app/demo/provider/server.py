"""The provider on a port: HTTP and WebSocket, with real delays.

``async with serve(core) as server:`` listens on a free port of the loopback until the block ends.
``speed`` scales the latency model: 0 waits for nothing, 1 is real time, 0.1 is ten times faster.
What a fault asks for in seconds is never scaled.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import WSMsgType, web

from .actions import Abort, Action, Close, Hang, Send, Text, Wait
from .connection import Connection, Frame, UpgradeRefused
from .core import Provider
from .encodings import decode_body
from .errors import ApiError
from .http import HttpReply, error_reply
from .sse import done, encode, encode_text
from .wire import dumps
from .worker import Worker

MAX_BODY = 512 * 1024 * 1024
_NO_CONTENT_TYPE = web.ResponseKey("no_content_type", bool)
_UNSENDABLE = frozenset({1005, 1006, 1015})
"""Close codes that say "no close frame": they are made by a reset."""


class Server:
    """``url`` is the base URL for clients; ``codex_url`` the one with the Codex backend's path.

    ``errors``: faults of the provider or its script. ``serve`` raises the first when it ends.
    """

    def __init__(self, core: Provider, *, speed: float, heartbeat: float | None) -> None:
        self.core = core
        self.speed = speed
        self.heartbeat = heartbeat
        self.origin = ""
        self.errors: list[Exception] = []
        self._sockets: dict[Connection, tuple[web.WebSocketResponse, web.Request]] = {}
        self._waiters: set[asyncio.Event] = set()

    @property
    def url(self) -> str:
        return f"{self.origin}/v1"

    @property
    def codex_url(self) -> str:
        return f"{self.origin}/backend-api/codex"

    # --- for tests ----------------------------------------------------------------------------

    async def drop_connections(
        self, code: int | None = None, *, only_idle: bool = True, nth: int | None = None
    ) -> int:
        """End upstream sockets: with this close code, or None for a TCP reset. Returns how many.

        ``nth``: only the connection with this index. The core has forgotten them on return.
        """
        dropped = 0
        for connection, (socket, request) in list(self._sockets.items()):
            if only_idle and not connection.idle:
                continue
            if nth is not None and connection.index != nth:
                continue
            dropped += 1
            connection.close("dropped")
            if code is None or code in _UNSENDABLE:
                _reset(request)
            else:
                await socket.close(code=code)
        await self._changed()
        return dropped

    async def expire(self) -> int:
        """Close the idle connections whose time is over by the provider's clock. Returns how
        many; the core has forgotten them."""
        codes = {connection: connection.due for connection in self.core.connections}
        over = self.core.expire()
        for connection in over:
            code = codes[connection]
            assert code is not None
            await self._sockets[connection][0].close(code=code)
        await self._changed()
        return len(over)

    def freeze_connections(self) -> int:
        """Read nothing more from any open socket: half-open, pings stay unanswered."""
        for _, request in self._sockets.values():
            assert request.transport is not None
            request.transport.pause_reading()
        return len(self._sockets)

    async def wait_until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        """Return as soon as the condition holds; asked again after every step of the provider.

        Raises ``TimeoutError``, so that a test that waits for nothing fails instead of hanging.
        """
        changed = asyncio.Event()
        self._waiters.add(changed)
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    changed.clear()
                    await changed.wait()
        finally:
            self._waiters.discard(changed)

    async def _changed(self) -> None:
        for event in self._waiters:
            event.set()
        await asyncio.sleep(0)

    # --- HTTP ---------------------------------------------------------------------------------

    async def handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._handle(request)
        except ConnectionError:
            return _reset(request)  # the peer has left
        except Exception as error:
            self.errors.append(error)
            raise

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._upgrade(request)
        raw = await request.read()
        try:
            body = decode_body(raw, request.headers.get("Content-Encoding", ""))
        except ApiError as error:
            return await self._plain(error_reply(error))
        reply = self.core.request(request.method, request.path_qs, request.headers.items(), body)
        await self._sleep(reply.delay)
        if reply.streamed:
            return await self._stream(request, reply)
        if reply.steps is not None and reply.finish is not None:
            try:
                for delay, action in reply.steps:
                    await self._sleep(delay)
                    if not await self._idle_action(action) and _ends(action):
                        return _reset(request)
            finally:
                _close(reply.steps)
            reply = reply.finish()
        return await self._plain(reply)

    async def _plain(self, reply: HttpReply) -> web.Response:
        await self._changed()
        response = web.Response(status=reply.status, body=reply.body or b"")
        for name, value in reply.headers:
            response.headers[name] = value
        return response

    async def _stream(self, request: web.Request, reply: HttpReply) -> web.StreamResponse:
        assert reply.steps is not None
        response = web.StreamResponse(status=reply.status)
        for name, value in reply.headers:
            response.headers[name] = value
        if reply.form.content_type is None:
            response[_NO_CONTENT_TYPE] = True
        held = b""  # the last event waits to learn whether it is the last
        try:
            # The first action may be a reset, which must come before the head.
            for delay, action in reply.steps:
                await self._sleep(delay)
                if await self._idle_action(action):
                    continue
                if isinstance(action, Abort) or (
                    isinstance(action, Close) and not response.prepared
                ):
                    if held:
                        await response.write(held)
                    return _reset(request)
                if isinstance(action, Close):
                    break
                if not response.prepared:
                    await response.prepare(request)
                if held:
                    await response.write(held)
                held = _event_bytes(action, reply)
                if not _may_be_last(action):
                    await response.write(held)
                    held = b""
                await self._changed()
        finally:
            _close(reply.steps)
            await self._changed()
        if not response.prepared:
            await response.prepare(request)
        if held:
            await response.write(_last_bytes(held, reply))
        await response.write_eof(done(reply.form))
        return response

    async def _idle_action(self, action: Action) -> bool:
        """Do what takes only time. False if the action is of another kind."""
        if isinstance(action, Hang):
            await self._changed()
            if action.seconds is None:
                await asyncio.Event().wait()  # until the peer leaves and this task is cancelled
            else:
                await asyncio.sleep(action.seconds)
            return True
        if isinstance(action, Wait):
            await self._changed()
            await _opened(action)
            return True
        return False

    # --- WebSocket ----------------------------------------------------------------------------

    async def _upgrade(self, request: web.Request) -> web.StreamResponse:
        try:
            connection = self.core.open_connection(request.headers.items(), request.path)
        except UpgradeRefused as refused:
            await self._changed()
            if refused.action == "hang":
                await asyncio.Event().wait()
            if refused.reply is None:
                return _reset(request)
            return await self._plain(refused.reply)
        await self._sleep(connection.connect_delay)
        if connection.connect_hang:
            await asyncio.sleep(connection.connect_hang)
        # A ping is something heard: it keeps a silent connection open.
        socket = web.WebSocketResponse(
            heartbeat=self.heartbeat, max_msg_size=0, timeout=1.0, autoclose=True, autoping=False
        )
        for name, value in connection.response_headers:
            socket.headers[name] = value
        workers: dict[str | None, Worker] = {}
        cause = "lost"
        try:
            await socket.prepare(request)
            self._sockets[connection] = (socket, request)
            await self._changed()
            async for message in socket:
                if message.type is WSMsgType.TEXT or message.type is WSMsgType.BINARY:
                    await self._take(
                        connection.handle_frame(message.data), socket, request, workers
                    )
                    await self._changed()
                elif message.type is WSMsgType.PING:
                    connection.pinged()
                    await socket.pong(message.data)
            cause = f"closed:{socket.close_code}"
        finally:
            self._sockets.pop(connection, None)
            for worker in workers.values():
                await worker.stop()
            connection.close(cause)
            await self._changed()
        return socket

    async def _take(
        self,
        frame: Frame,
        socket: web.WebSocketResponse,
        request: web.Request,
        workers: dict[str | None, Worker],
    ) -> None:
        async def send(frame: Frame) -> None:
            try:
                for delay, action in frame:
                    await self._sleep(delay)
                    await self._perform(action, socket, request)
            except ConnectionError:
                pass  # the peer has left, and the reader will notice
            except Exception as error:
                self.errors.append(error)
                await socket.close(code=1011, message=b"the provider failed")
            finally:
                frame.close()

        if not frame.in_order:
            await send(frame)
            return
        worker = workers.get(frame.lane_name)
        if worker is None:
            worker = workers[frame.lane_name] = Worker(send)
        worker.put(frame)

    async def _perform(
        self, action: Action, socket: web.WebSocketResponse, request: web.Request
    ) -> None:
        if isinstance(action, Send):
            await socket.send_str(dumps(action.event))
        elif isinstance(action, Text):
            await socket.send_str(action.text)
        elif isinstance(action, Close) and action.code not in _UNSENDABLE:
            await socket.close(code=action.code, message=action.reason.encode())
        elif isinstance(action, (Abort, Close)):
            _reset(request)
        else:
            await self._idle_action(action)
        await self._changed()

    async def _sleep(self, seconds: float) -> None:
        scaled = seconds * self.speed
        if scaled > 0:
            await asyncio.sleep(scaled)


async def _opened(action: Wait) -> None:
    loop = asyncio.get_running_loop()
    opened = asyncio.Event()

    def wake() -> None:
        loop.call_soon_threadsafe(opened.set)

    action.gate.on_open(wake)
    await opened.wait()


def _reset(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()  # goes nowhere: aiohttp wants one


def _ends(action: Action) -> bool:
    return isinstance(action, (Abort, Close))


def _close(steps: object) -> None:
    closing = getattr(steps, "close", None)
    if closing is not None:
        closing()


def _may_be_last(action: Action) -> bool:
    return isinstance(action, Send) and str(action.event.get("type")).startswith(
        ("response.completed", "response.incomplete", "response.failed", "response.done", "error")
    )


def _event_bytes(action: Action, reply: HttpReply) -> bytes:
    if isinstance(action, Text):
        return encode_text(action.text, reply.form)
    assert isinstance(action, Send)
    return encode(action.event, reply.form)


def _last_bytes(held: bytes, reply: HttpReply) -> bytes:
    blank = (reply.form.newline * 2).encode()
    if reply.form.final_newline or reply.form.done_line:
        return held
    return held.removesuffix(blank)


async def _drop_content_type(_request: web.Request, response: web.StreamResponse) -> None:
    if _NO_CONTENT_TYPE in response:
        response.headers.popall("Content-Type", None)


@asynccontextmanager
async def serve(
    core: Provider,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    speed: float = 0.0,
    heartbeat: float | None = None,
) -> AsyncIterator[Server]:
    """Serve ``core`` until the block ends. Port 0: a free one; see ``Server.url``.

    ``heartbeat``: seconds between pings; a socket whose peer does not answer one is dropped.
    """
    server = Server(core, speed=speed, heartbeat=heartbeat)
    app = web.Application(client_max_size=MAX_BODY)
    app.on_response_prepare.append(_drop_content_type)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(
        app,
        access_log=None,
        auto_decompress=False,
        handler_cancellation=True,
        shutdown_timeout=0.1,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        bound = runner.addresses[0][1]
        server.origin = f"http://{host}:{bound}"
        yield server
    finally:
        await server.drop_connections(only_idle=False)
        await runner.cleanup()
    if server.errors:
        raise server.errors[0]
