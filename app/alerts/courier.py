"""Sends what is in the outbox: claims, sends side by side, records, and keeps going.

Nothing here waits for a receiver but the send to it, and no receiver gets more than a few sends
at a time, so that one that hangs holds up only its own messages. The database is asked in worker
threads. Where it fails, the next round tries again; a result that cannot be recorded is kept
until it can, for without it the message would be sent a second time.

A process that dies between a send and its record leaves a claim that ends by itself; then any
process sends the message again, under the same id, by which its receiver knows it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Protocol, TypeVar

from sqlalchemy import Engine

from app.alerts import outbox, retry
from app.alerts.config import FILE_ID
from app.alerts.endpoints import UnreadableError
from app.alerts.guard import AddressRefusedError
from app.alerts.outbox import Claimed
from app.alerts.webhook import ADDRESS_REFUSED, BAD_ADDRESS, TIMED_OUT, Result, unsent
from app.clock import Clock
from app.ledger.rows import to_ms
from app.tasks import Tasks, describe

logger = logging.getLogger(__name__)

T = TypeVar("T")

AT_ONCE = 64
"""Sends at the same time."""
AT_ONCE_EACH = 4
"""Of these, to one receiver: sixteen that hang hold up no other."""
THREADS = 4
"""Calls of the database at the same time."""
LAST_CALLS = 5.0
"""Seconds that those under way get at the end: what they record would be sent again."""
LEASE = 120.0
"""Seconds after which a claim may be taken over: longer than any send may take."""
UNKNOWN_AFTER = 86_400.0
"""Seconds that messages to a receiver of another process's settings file may be due without any
process taking them. How old they are says nothing: that one may be at its retries."""
DELETED = "the receiver was deleted"
UNKNOWN = "no process knows the receiver"
GONE = "the receiver answered 410: it wants no more messages"
NO_RESULT = "sending failed"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0


class Party(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def disabled(self) -> str | None: ...


class Receivers(Protocol):
    """Called in worker threads."""

    def all(self) -> Sequence[Party]: ...
    def endpoint(self, id: str, /) -> Any: ...  # noqa: A002
    def disable(self, id: str, why: str, /) -> object: ...  # noqa: A002


class Sender(Protocol):
    async def send(
        self, endpoint: Any, delivery_id: str, body: bytes, timestamp: float, /
    ) -> Result: ...


class Courier:
    """``random`` gives numbers from 0 to 1. ``lease`` (seconds) must be longer than the sender's
    timeout. ``pause`` waits between attempts at recording a result. ``on_attempt`` is told the
    receiver's name and the result of each send."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        receivers: Receivers,
        sender: Sender,
        random: Callable[[], float],
        *,
        lease: float = LEASE,
        poll: float = 1.0,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        on_attempt: Callable[[str, Result], None] = lambda _name, _result: None,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._receivers = receivers
        self._sender = sender
        self._random = random
        self._lease = lease
        self._poll = poll
        self._pause = pause
        self._on_attempt = on_attempt
        # Not the loop's own threads, in which the upstreams' names are looked up: a database that
        # hangs must not take them from the turns.
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="alerts-delivery")
        self._calls: set[Future[Any]] = set()
        self._tasks = Tasks()
        self._sends: set[asyncio.Task[None]] = set()
        self._busy: Counter[str] = Counter()
        self._under_way: set[int] = set()
        self._unknown_since: dict[str, float] = {}
        self._claiming = asyncio.Lock()
        self._wanted = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failing = False
        self._closing = False

    def wake(self) -> None:
        """Look for work now. From any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wanted.set)

    async def run(self) -> None:
        """Until ``aclose``: send what is due, whenever woken and every ``poll`` seconds."""
        self._loop = asyncio.get_running_loop()
        while not self._closing:
            self._wanted.clear()
            try:
                await self._start_due()
                self._works()
            except Exception as error:
                self._fails(error)
            try:
                async with asyncio.timeout(self._poll):
                    await self._wanted.wait()
            except TimeoutError:
                pass

    async def deliver_due(self) -> int:
        """Send all that is due now, to the end; returns the number of attempts."""
        begun = 0
        while True:
            started = await self._start_due()
            begun += started
            if self._sends:
                await asyncio.wait(set(self._sends), return_when=asyncio.FIRST_COMPLETED)
            elif not started:
                return begun

    async def aclose(self, *, grace: float = 2.0) -> None:
        """Begin nothing more. What is being sent gets ``grace`` seconds; then it is cut off, and
        sent again when its claim has ended."""
        self._closing = True
        self._wanted.set()
        async with self._claiming:  # what was just claimed is still begun
            pass
        await self._tasks.aclose(grace=grace)
        self._threads.shutdown(wait=False, cancel_futures=True)
        if calls := set(self._calls):
            await asyncio.to_thread(wait, calls, LAST_CALLS)

    async def _in_thread(self, call: Callable[..., T], /, *arguments: Any) -> T:
        future = self._threads.submit(call, *arguments)
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        return await asyncio.wrap_future(future)

    # Beginning

    async def _start_due(self) -> int:
        async with self._claiming:
            limit = AT_ONCE - len(self._sends)
            if self._closing or limit < 1:
                return 0
            found = await self._in_thread(
                self._claim, limit, Counter(self._busy), frozenset(self._under_way)
            )
            for claimed, party in found:
                self._busy[claimed.receiver_id] += 1
                self._under_way.add(claimed.number)
                name = f"alert-delivery-{claimed.number}"
                task = self._tasks.start(self._deliver(claimed, party), name=name)
                self._sends.add(task)
                task.add_done_callback(self._sends.discard)
            return len(found)

    def _claim(
        self, limit: int, busy: Counter[str], under_way: frozenset[int]
    ) -> list[tuple[Claimed, Party]]:
        """In a worker thread. With each claim its receiver, as it is now."""
        now = to_ms(self._clock.now())
        waiting = outbox.waiting(self._engine, now)
        for receiver_id in self._unknown_since.keys() - waiting:
            del self._unknown_since[receiver_id]
        if not waiting:
            return []
        known = {receiver.id: receiver for receiver in self._receivers.all()}
        room: dict[str, int] = {}
        for receiver_id in waiting:
            receiver = known.get(receiver_id)
            if receiver is None:
                self._abandon_unknown(receiver_id, now)
            elif receiver.disabled is not None:
                outbox.abandon(self._engine, receiver_id, receiver.disabled, now)
            else:
                room[receiver_id] = AT_ONCE_EACH - busy[receiver_id]
        lease = to_ms(self._lease)
        claims = outbox.claim_due(self._engine, now, lease, limit, room, under_way=under_way)
        return [(claimed, known[claimed.receiver_id]) for claimed in claims]

    def _abandon_unknown(self, receiver_id: str, now: int) -> None:
        moment = self._clock.monotonic()
        if not receiver_id.startswith(FILE_ID):
            outbox.abandon(self._engine, receiver_id, DELETED, now)
        elif moment - self._unknown_since.setdefault(receiver_id, moment) >= UNKNOWN_AFTER:
            outbox.abandon(self._engine, receiver_id, UNKNOWN, now)

    # One delivery

    async def _deliver(self, claimed: Claimed, party: Party) -> None:
        try:
            deadline = self._clock.monotonic() + self._lease
            started_at = to_ms(self._clock.now())
            result = await self._attempt(claimed, party)
            now = to_ms(self._clock.now())
            then = retry.after(claimed.tries, result, now, self._random)

            def settle() -> None:
                outbox.settle(self._engine, claimed, result, then, started_at=started_at, now=now)

            await self._insist(settle, deadline)
            if then.gone:
                await self._in_thread(self._close_down, party.id, party.version, now)
        finally:
            self._busy[claimed.receiver_id] -= 1
            self._under_way.discard(claimed.number)
            self._wanted.set()

    async def _attempt(self, claimed: Claimed, party: Party) -> Result:
        try:
            endpoint = await self._in_thread(self._receivers.endpoint, claimed.receiver_id)
        except UnreadableError as error:
            return unsent(error.outcome)
        except AddressRefusedError as error:
            return unsent(BAD_ADDRESS if error.code == "bad_address" else ADDRESS_REFUSED)
        except Exception as error:
            logger.warning("delivery %s cannot be addressed: %s", claimed.id, describe(error))
            return unsent()
        try:
            async with asyncio.timeout(self._lease):
                result = await self._sender.send(
                    endpoint, claimed.id, claimed.body, self._clock.now()
                )
            self._on_attempt(party.name, result)
        except TimeoutError:
            return unsent(TIMED_OUT)
        except Exception as error:
            logger.error("delivery %s cannot be sent: %s", claimed.id, describe(error))
            return unsent(NO_RESULT)
        return result

    async def _insist(self, settle: Callable[[], None], deadline: float) -> None:
        """Record a result; as long as the claim holds, again and again."""
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._in_thread(settle)
            except Exception as error:
                self._fails(error)
                if self._clock.monotonic() >= deadline:
                    logger.error("the result of a delivery was not recorded; it is sent again")
                    return
            else:
                self._works()
                return
            await self._pause(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _close_down(self, receiver_id: str, version: int, now: int) -> None:
        """In a worker thread. One that was edited meanwhile is not the one that answered."""
        for receiver in self._receivers.all():
            if receiver.id == receiver_id and receiver.version == version:
                self._receivers.disable(receiver_id, GONE)
                outbox.abandon(self._engine, receiver_id, GONE, now)

    # The database's health, told once per change

    def _fails(self, error: Exception) -> None:
        if not self._failing:
            logger.warning("deliveries cannot be read or recorded (%s)", type(error).__name__)
        self._failing = True

    def _works(self) -> None:
        if self._failing:
            logger.info("deliveries can be read and recorded again")
        self._failing = False
