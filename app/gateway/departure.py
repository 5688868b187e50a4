"""The departure of a client: noticed once, told at once.

ASGI tells a server's application of it only to those who ask (``receive``); one watcher asks for
the whole turn, so that relaying an event needs no task of its own. Warmline's own server tells it
without being asked, which spares the watcher.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial

from app.gateway.wire import Receive, Scope, extension
from app.http_connection import NOTICE
from app.tasks import Tasks
from engine.driver import Answer, Call, Driver, Event


class Departure:
    """Whether the client has left. At most one listener is told."""

    def __init__(self) -> None:
        self.gone = False
        self._listener: Callable[[], None] | None = None

    def left(self) -> None:
        if not self.gone:
            self.gone = True
            if self._listener is not None:
                self._listener()

    def listen(self, listener: Callable[[], None] | None) -> None:
        """Replace the listener. It is told at once when the client has left already."""
        self._listener = listener
        if self.gone and listener is not None:
            listener()


async def watch(receive: Receive, departure: Departure) -> None:
    """Ask until the client is gone. For HTTP, after the request's body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
    departure.left()


def follow(
    departure: Departure, tasks: Tasks, scope: Scope, receive: Receive
) -> Callable[[], object]:
    """Notice the departure of the client, until what is given back is called.

    For an HTTP request whose body was read.
    """
    notice = extension(scope, NOTICE)
    if notice is None:
        return tasks.start(watch(receive, departure), name="client of a turn").cancel
    notice(departure.left)
    return partial(notice, None)


async def run(driver: Driver, call: Call, departure: Departure) -> Answer:
    """Run a turn up to its first event; the driver hears of a departure, then and later.

    A client that leaves before the first event may leave a generation behind that is running and
    will be billed: the driver reads on within its bound (``drain_timeout``) either way.
    """
    departure.listen(lambda: driver.client_left(call.turn_id))
    return await driver.run(call)


class batches_of:  # noqa: N801 - used as a function
    """The events of an answer, together those that came at once: ``async with batches_of(answer)``.

    Leaving the block ends the answer's iteration, and so its turn. A generator would do, but costs
    every answer more than what it does.
    """

    __slots__ = ("_iterator",)

    def __init__(self, answer: Answer) -> None:
        self._iterator = answer.batches or _singly(answer)

    async def __aenter__(self) -> AsyncIterator[list[Event]]:
        return self._iterator

    async def __aexit__(self, *_error: object) -> None:
        close = getattr(self._iterator, "aclose", None)
        if close is not None:
            await close()


async def _singly(answer: Answer) -> AsyncIterator[list[Event]]:
    events = aiter(answer)
    try:
        async for event in events:
            yield [event]
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
