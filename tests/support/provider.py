"""Helpers around the built-in Responses provider for tests of everything that talks to one.

In an asynchronous test, in the same event loop::

    async def test_something():
        async with provider("openai", replies=["first", "second"]) as up:
            client = AsyncOpenAI(base_url=up.url, api_key="sk-test")
            ...
            assert up.core.log[-1].outcome == "completed"

``up`` is ``app.demo.provider.server.Server``: ``url`` (ends in ``/v1``), ``codex_url``, ``core``,
``drop_connections(code)``, ``freeze_connections()``, ``wait_until(condition)``.

With a synchronous client or another process, in a thread of its own::

    def test_something():
        with provider_thread() as up: ...

Scripted answers: ``replies`` takes texts, items and lists of items (``app.demo.provider.replies``);
the default agent answers what comes after. Faults: ``up.core.faults.on_request(abort(after=2))``,
``on_upgrade(RefuseUpgrade(426))`` (``app.demo.provider.faults``).

Without sockets: ``make_core()`` and ``frame(...)``, ``events(connection, ...)``.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from app.demo.provider.actions import Send
from app.demo.provider.agent import Agent
from app.demo.provider.connection import Connection
from app.demo.provider.core import Provider
from app.demo.provider.replies import Replies
from app.demo.provider.server import Server, serve

AUTH = {"Authorization": "Bearer sk-test"}
MODEL = "gpt-5.5"
EPOCH = 1_790_000_000.0
"""When the provider's clock starts, in seconds since 1970."""


class Now:
    """A clock for the provider: ``now.advance(60)``."""

    def __init__(self, start: float = EPOCH) -> None:
        self.value = start

    def __call__(self) -> float:
        return self.value

    def advance(self, seconds: float) -> None:
        self.value += seconds


def make_core(
    kind: str = "openai", *, replies: Sequence[Any] = (), now: Now | None = None, **options: Any
) -> Provider:
    """A provider with deterministic ids and clock. ``options`` go to ``Provider``."""
    if replies:
        options["responder"] = Replies(replies, after=Agent())
    return Provider(kind, now=now or Now(), **options)


@asynccontextmanager
async def provider(
    kind: str = "openai",
    *,
    replies: Sequence[Any] = (),
    now: Now | None = None,
    speed: float = 0.0,
    heartbeat: float | None = None,
    **options: Any,
) -> AsyncIterator[Server]:
    """A provider on a free port of the loopback."""
    core = make_core(kind, replies=replies, now=now, **options)
    async with serve(core, speed=speed, heartbeat=heartbeat) as server:
        yield server


class Running:
    """A provider in a thread: ``url``, ``core``, and ``call`` to run a coroutine function there."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.core = server.core
        self.url = server.url
        self.codex_url = server.codex_url
        self._loop = loop

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call an asynchronous method of the server, as ``call("drop_connections", 1000)``."""
        method = getattr(self.server, name)
        return asyncio.run_coroutine_threadsafe(method(*args, **kwargs), self._loop).result(30)


@contextmanager
def provider_thread(kind: str = "openai", **options: Any) -> Iterator[Running]:
    """The same as ``provider`` for synchronous clients and other processes."""
    started: list[Running] = []
    failed: list[BaseException] = []
    ready = threading.Event()
    ends: list[asyncio.Event] = []

    async def main() -> None:
        async with provider(kind, **options) as server:
            end = asyncio.Event()
            ends.append(end)
            started.append(Running(server, asyncio.get_running_loop()))
            ready.set()
            await end.wait()

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="provider")
    thread.start()
    ready.wait(30)
    try:
        if not started:
            raise RuntimeError("the provider did not start") from (failed or [None])[0]
        yield started[0]
    finally:
        if started:
            started[0]._loop.call_soon_threadsafe(ends[0].set)
        thread.join(30)
    if failed:
        raise failed[0]


# --- without sockets ---------------------------------------------------------------------------


def user(text: str, **more: Any) -> dict[str, Any]:
    """A user message in its long spelling."""
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content, **more}


def output_of(call_id: str, output: Any = "ok", **more: Any) -> dict[str, Any]:
    """The answer to a function call."""
    return {"type": "function_call_output", "call_id": call_id, "output": output, **more}


def frame(given: Any = "hi", **fields: Any) -> str:
    """The text of a ``response.create`` frame; ``store`` is false unless given."""
    body = {"type": "response.create", "model": MODEL, "store": False, "input": given, **fields}
    return json.dumps(body)


def events(connection: Connection, given: Any = "hi", **fields: Any) -> list[dict[str, Any]]:
    """Send a frame and take all its events."""
    steps = connection.handle_frame(frame(given, **fields))
    return [action.event for _, action in steps if isinstance(action, Send)]


def answer(connection: Connection, given: Any = "hi", **fields: Any) -> dict[str, Any]:
    """Send a frame and return the terminal event's response; fails if it ends otherwise."""
    last = events(connection, given, **fields)[-1]
    assert last["type"] in ("response.completed", "response.incomplete"), last
    return last["response"]
