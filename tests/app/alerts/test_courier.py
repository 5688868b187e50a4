import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.exc import OperationalError

from app.alerts import outbox
from app.alerts.courier import AT_ONCE, AT_ONCE_EACH, DELETED, GONE, UNKNOWN, Courier
from app.alerts.endpoints import Endpoint, Kind, UnreadableError
from app.alerts.guard import AddressRefusedError, Guard
from app.alerts.receivers import Receivers
from app.alerts.sealed import Seal
from app.alerts.states import Told
from app.alerts.webhook import Result, Sender
from app.keys import Keys
from app.ledger.database import open_engine
from app.ledger.models import Base
from tests.support.clock import START, ManualClock
from tests.support.deliveries import OTHER_RULE, RULE, Party, logged, put, stored
from tests.support.receiver import (
    DROP,
    HANG,
    OTHER_SECRET,
    PATH,
    QUERY,
    SECRET,
    Answer,
    Receiver,
    receiving,
)

LEASE = 60.0


class Directory:
    """Receivers of a test, by id."""

    def __init__(self, **receivers: Receiver | None) -> None:
        self.known = {name: Party(name, name) for name in receivers}
        self.endpoints: dict[str, Endpoint | Exception] = {
            name: Endpoint(receiver.url, (receiver.secret,), Kind.WEBHOOK, receiver.shown)
            for name, receiver in receivers.items()
            if receiver is not None
        }

    def all(self) -> list[Party]:
        return list(self.known.values())

    def endpoint(self, id: str) -> Endpoint:
        found = self.endpoints[id]
        if isinstance(found, Exception):
            raise found
        return found

    def disable(self, id: str, why: str) -> None:
        self.known[id] = replace(self.known[id], disabled=why)


class Held:
    """A sender that holds every send until told what became of it."""

    def __init__(self) -> None:
        self.sends: dict[str, asyncio.Future[Result]] = {}
        self.begun: list[str] = []
        self.changed = asyncio.Condition()

    async def send(self, endpoint, delivery_id, body, timestamp) -> Result:
        answer = asyncio.get_running_loop().create_future()
        self.sends[delivery_id] = answer
        self.begun.append(delivery_id)
        async with self.changed:
            self.changed.notify_all()
        return await answer

    async def reached(self, count: int) -> None:
        async with asyncio.timeout(20), self.changed:
            await self.changed.wait_for(lambda: len(self.begun) >= count)

    def answer(self, delivery_id: str, status: int = 200) -> None:
        self.sends[delivery_id].set_result(Result(status, f"HTTP {status}"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def make(engine: Engine, clock: ManualClock):
    """A courier; each one stands for a process."""
    made: list[Courier] = []

    def courier(receivers, sender=None, *, on: Engine = engine, **options) -> Courier:
        sender = sender or Sender(Guard(["127.0.0.1"]), 20)
        options.setdefault("lease", LEASE)
        made.append(Courier(on, clock, receivers, sender, lambda: 0.5, **options))
        return made[-1]

    yield courier
    for one in made:
        await one.aclose(grace=0)


def endpoint(url: str = "http://a.example") -> Endpoint:
    return Endpoint(url, (SECRET,), Kind.WEBHOOK, url)


def directory(*names: str) -> Directory:
    found = Directory(**dict.fromkeys(names))
    found.endpoints = {name: endpoint() for name in names}
    return found


def states(engine: Engine, *ids: str) -> list[str]:
    return [stored(engine, id_).state for id_ in ids]


def log_of(engine: Engine, delivery_id: str) -> list[tuple[int, int | None, str]]:
    return [(row.attempt, row.status, row.outcome) for row in logged(engine, delivery_id)]


Make = Callable[..., Courier]


# One delivery


async def test_a_message_arrives_once_signed_and_is_settled(engine, clock, make: Make):
    async with receiving(clock=clock) as receiver:
        delivery_id = put(engine, Party("a"), body=b'{"type":"cache.alert.firing"}')
        courier = make(Directory(a=receiver))
        assert 1 == await courier.deliver_due()
        assert 0 == await courier.deliver_due()
        [arrived] = receiver.received
    assert (delivery_id, b'{"type":"cache.alert.firing"}', True) == (
        arrived.id,
        arrived.body,
        arrived.verified,
    )
    assert ("delivered", "delivered") == (
        stored(engine, delivery_id).state,
        stored(engine, delivery_id).outcome,
    )
    [attempt] = logged(engine, delivery_id)
    assert (200, "ok") == (attempt.status, attempt.response)
    assert 0 < attempt.duration_ms


async def test_failures_are_repeated_at_the_times_of_the_schedule(engine, clock, make: Make):
    waits = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
    async with receiving(*[500] * 9, clock=clock) as receiver:
        delivery_id = put(engine, Party("a"))
        courier = make(Directory(a=receiver))
        assert 1 == await courier.deliver_due()
        for seconds in waits:
            clock.advance(seconds - 0.001)
            assert 0 == await courier.deliver_due()
            clock.advance(0.001)
            assert 1 == await courier.deliver_due()
        starts = [START + sum(waits[:number]) for number in range(10)]
        assert [str(int(start)) for start in starts] == [one.timestamp for one in receiver.received]
        assert {delivery_id} == set(receiver.ids)
        assert all(one.verified for one in receiver.received)
    assert "delivered" == stored(engine, delivery_id).state
    assert [1_000 * start for start in starts] == [
        row.started_at for row in logged(engine, delivery_id)
    ]


async def test_after_ten_failures_it_is_a_dead_letter_that_can_be_replayed(
    engine, clock, make: Make
):
    async with receiving(*[503] * 10, clock=clock) as receiver:
        delivery_id = put(engine, Party("a"))
        courier = make(Directory(a=receiver))
        for _ in range(10):
            assert 1 == await courier.deliver_due()
            clock.advance(100_000)
        assert 0 == await courier.deliver_due()
        assert ("dead", "HTTP 503") == (
            stored(engine, delivery_id).state,
            stored(engine, delivery_id).outcome,
        )
        await asyncio.to_thread(outbox.replay, engine, delivery_id, int(1_000 * clock.now()))
        assert 1 == await courier.deliver_due()
        assert [delivery_id] * 11 == receiver.ids
    assert "delivered" == stored(engine, delivery_id).state
    assert list(range(1, 12)) == [row.attempt for row in logged(engine, delivery_id)]


async def test_retry_after_is_honoured(engine, clock, make: Make):
    script = [Answer(429, "", {"retry-after": "90"}), 503]
    async with receiving(*script, clock=clock) as receiver:
        put(engine, Party("a"))
        courier = make(Directory(a=receiver))
        await courier.deliver_due()
        clock.advance(89.999)
        assert 0 == await courier.deliver_due()
        clock.advance(0.001)
        assert 1 == await courier.deliver_due()


@pytest.mark.parametrize("answer", [408, 425, 429, 502, DROP])
async def test_what_may_pass_is_repeated(engine, clock, make: Make, answer):
    async with receiving(answer, clock=clock) as receiver:
        delivery_id = put(engine, Party("a"))
        courier = make(Directory(a=receiver))
        await courier.deliver_due()
        assert ["queued"] == states(engine, delivery_id)
        clock.advance(5)
        await courier.deliver_due()
        assert [delivery_id] * 2 == receiver.ids
    assert ["delivered"] == states(engine, delivery_id)


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 404])
async def test_other_answers_are_final_and_redirects_are_not_followed(
    engine, clock, make: Make, status
):
    async with receiving(clock=clock) as elsewhere:
        script = Answer(status, "", {"location": elsewhere.url})
        async with receiving(script, clock=clock) as receiver:
            delivery_id = put(engine, Party("a"))
            courier = make(Directory(a=receiver))
            await courier.deliver_due()
            clock.advance(100_000)
            assert 0 == await courier.deliver_due()
            assert 1 == len(receiver.received)
        assert [] == elsewhere.received
    assert [(1, status, f"HTTP {status}")] == log_of(engine, delivery_id)
    assert ["dead"] == states(engine, delivery_id)


async def test_410_disables_the_receiver_and_leaves_dead_letters(engine, clock, make: Make):
    async with receiving(410, clock=clock) as receiver:
        first = put(engine, Party("a"))
        held, other = put(engine, Party("a"), told=Told.RESOLVED), put(engine, Party("b"))
        receivers = Directory(a=receiver, b=receiver)
        await make(receivers).deliver_due()
        assert (GONE, None) == (receivers.known["a"].disabled, receivers.known["b"].disabled)
        assert ["dead", "dead", "delivered"] == states(engine, first, held, other)
        assert [("HTTP 410", GONE)] == [
            (stored(engine, first).outcome, stored(engine, held).outcome)
        ]
        assert 2 == len(receiver.received)


async def test_a_receiver_that_was_edited_meanwhile_is_not_disabled(engine, make: Make):
    receivers, sender = directory("a"), Held()
    delivery_id = put(engine, Party("a"))
    courier = make(receivers, sender)
    delivering = asyncio.ensure_future(courier.deliver_due())
    await sender.reached(1)
    receivers.known["a"] = replace(receivers.known["a"], version=2)
    sender.answer(delivery_id, 410)
    await delivering
    assert receivers.known["a"].disabled is None
    assert ["dead"] == states(engine, delivery_id)


async def test_messages_to_a_disabled_receiver_become_dead_letters(engine, make: Make):
    receivers = directory("a")
    delivery_id = put(engine, Party("a"))
    receivers.disable("a", "it answered 410")
    assert 0 == await make(receivers, Held()).deliver_due()
    assert ("dead", "it answered 410") == (
        stored(engine, delivery_id).state,
        stored(engine, delivery_id).outcome,
    )


async def test_messages_to_a_deleted_receiver_become_dead_letters(engine, make: Make):
    delivery_id = put(engine, Party("gone"))
    assert 0 == await make(directory("a"), Held()).deliver_due()
    assert ("dead", DELETED) == (
        stored(engine, delivery_id).state,
        stored(engine, delivery_id).outcome,
    )


async def test_messages_to_a_receiver_of_another_settings_file_wait_a_day_for_its_process(
    engine, clock, make: Make
):
    delivery_id = put(engine, Party("file-elsewhere"))
    courier = make(directory("a"), Held())
    clock.advance(86_399)
    await courier.deliver_due()
    assert ["queued"] == states(engine, delivery_id)
    clock.advance(1)
    await courier.deliver_due()
    assert ("dead", UNKNOWN) == (
        stored(engine, delivery_id).state,
        stored(engine, delivery_id).outcome,
    )


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (UnreadableError("the secret cannot be read", "x"), "the secret cannot be read"),
        (AddressRefusedError("address_refused", "x"), "address refused"),
        (AddressRefusedError("bad_address", "x"), "the address is not valid"),
        (OSError("path-canary"), "the address cannot be read"),
    ],
)
async def test_what_cannot_be_addressed_is_an_attempt_that_is_repeated(
    engine, clock, make: Make, caplog, error, outcome
):
    receivers, sender = directory("a"), Held()
    receivers.endpoints["a"] = error
    delivery_id = put(engine, Party("a"))
    courier = make(receivers, sender)
    assert 1 == await courier.deliver_due()
    assert [(1, None, outcome)] == log_of(engine, delivery_id)
    assert ["queued"] == states(engine, delivery_id)
    assert "path-canary" not in caplog.text


async def test_a_fault_of_the_sender_is_an_attempt_that_failed(engine, make: Make, caplog):
    class Broken:
        async def send(self, endpoint, delivery_id, body, timestamp):
            raise RuntimeError("path-canary")

    delivery_id = put(engine, Party("a"))
    await make(directory("a"), Broken()).deliver_due()
    assert [(1, None, "sending failed")] == log_of(engine, delivery_id)
    assert "RuntimeError" in caplog.text
    assert "path-canary" not in caplog.text


async def test_a_sender_that_outlasts_its_claim_is_cut_off(engine, make: Make):
    delivery_id = put(engine, Party("a"))
    await make(directory("a"), Held(), lease=0.01).deliver_due()
    assert [(1, None, "timed out")] == log_of(engine, delivery_id)


# Between sending and recording


async def test_killed_between_sending_and_recording_the_repeat_has_the_same_id(
    engine, clock, make: Make, database
):
    async with receiving(clock=clock) as receiver:
        delivery_id = put(engine, Party("a"))
        # A process that claims and sends, and never comes to record it.
        [claimed] = outbox.claim_due(engine, int(1_000 * clock.now()), 60_000, 1, {"a": 1})
        target = Directory(a=receiver).endpoint("a")
        sender = Sender(Guard(["127.0.0.1"]), 20)
        await sender.send(target, claimed.id, claimed.body, clock.now())
        other = open_engine(str(database))
        courier = make(Directory(a=receiver), on=other)
        clock.advance(LEASE - 0.001)
        assert 0 == await courier.deliver_due()
        clock.advance(0.001)
        assert 1 == await courier.deliver_due()
        assert 0 == await courier.deliver_due()
        other.dispose()
        first, second = receiver.received
    assert delivery_id == first.id == second.id
    assert first.body == second.body
    assert first.verified
    assert second.verified
    assert ("delivered", 2) == (
        stored(engine, delivery_id).state,
        stored(engine, delivery_id).attempts,
    )


async def test_a_restart_repeats_nothing_that_was_settled(engine, clock, make: Make, database):
    async with receiving(200, 400, clock=clock) as receiver:
        for group in ("{}", '{"model":"m"}'):
            put(engine, Party("a"), group_key=group)
        courier = make(Directory(a=receiver))
        assert 2 == await courier.deliver_due()
        await courier.aclose()
        again = open_engine(str(database))
        clock.advance(10 * LEASE)
        assert 0 == await make(Directory(a=receiver), on=again).deliver_due()
        again.dispose()
        assert 2 == len(receiver.received)


async def test_a_resolved_never_overtakes_a_firing_that_is_still_tried(engine, clock, make: Make):
    async with receiving(500, clock=clock) as receiver:
        firing = put(engine, Party("a"))
        resolved = put(engine, Party("a"), told=Told.RESOLVED)
        courier = make(Directory(a=receiver))
        assert 1 == await courier.deliver_due()
        clock.advance(5)
        assert 2 == await courier.deliver_due()
        assert [firing, firing, resolved] == receiver.ids


async def test_couriers_on_one_database_send_each_message_once(engine, clock, make: Make, database):
    async with receiving(clock=clock) as receiver:
        written = [
            put(engine, Party("a"), group_key=f'{{"model":"{number}"}}') for number in range(12)
        ]
        other = open_engine(str(database))
        couriers = [make(Directory(a=receiver), on=on) for on in (engine, other)]
        counts = await asyncio.gather(*(courier.deliver_due() for courier in couriers))
        other.dispose()
        assert 12 == sum(counts)
        assert sorted(written) == sorted(receiver.ids)


# Side by side


@pytest.fixture
async def running():
    """``running(courier)`` lets it run until the test ends."""
    loops: list[asyncio.Task[None]] = []
    yield lambda courier: loops.append(asyncio.ensure_future(courier.run()))
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)


async def test_a_receiver_that_hangs_holds_up_no_other(engine, clock, make: Make, running):
    async with (
        receiving(*[HANG] * 6, clock=clock) as hanging,
        receiving(clock=clock) as fine,
    ):
        held = [put(engine, Party("a"), group_key=f'{{"model":"{n}"}}') for n in range(6)]
        courier = make(Directory(a=hanging, b=fine))
        running(courier)
        await hanging.arrived(AT_ONCE_EACH)
        for number in range(5):
            put(engine, Party("b"), group_key=f'{{"model":"{number}"}}')
            courier.wake()
            await fine.arrived(number + 1)
        assert AT_ONCE_EACH == len(hanging.received)
        assert ["sending"] * 4 + ["queued"] * 2 == states(engine, *held)
        hanging.release()
        await hanging.arrived(6)


async def test_so_many_are_sent_at_a_time_and_no_more(engine, make: Make):
    names = [f"r{number}" for number in range(AT_ONCE + 3)]
    ids = [put(engine, Party(name)) for name in names]
    sender = Held()
    courier = make(directory(*names), sender)
    delivering = asyncio.ensure_future(courier.deliver_due())
    await sender.reached(AT_ONCE)
    assert ["queued"] * 3 + ["sending"] * AT_ONCE == sorted(states(engine, *ids))
    sender.answer(sender.begun[0])
    await sender.reached(AT_ONCE + 1)
    assert ["delivered"] + ["queued"] * 2 + ["sending"] * AT_ONCE == sorted(states(engine, *ids))
    delivering.cancel()


async def test_it_looks_by_itself_and_at_once_when_woken_from_any_thread(
    engine, clock, make: Make, running
):
    async with receiving(clock=clock) as receiver:
        polling = make(Directory(a=receiver), poll=0.01)
        polling.wake()  # before it runs: nothing to do, nothing wrong
        running(polling)
        put(engine, Party("a"))
        await receiver.arrived(1)
        await polling.aclose()
        woken = make(Directory(a=receiver), poll=3_600)
        running(woken)
        while woken._loop is None or woken._wanted.is_set():
            await asyncio.sleep(0)
        put(engine, Party("a"), rule=OTHER_RULE)
        await asyncio.to_thread(woken.wake)
        await receiver.arrived(2)


async def test_what_became_due_by_a_send_is_sent_at_once(engine, clock, make: Make, running):
    async with receiving(clock=clock) as receiver:
        ids = [put(engine, Party("a"), told=told) for told in (Told.FIRING, Told.RESOLVED)]
        running(make(Directory(a=receiver), poll=3_600))
        await receiver.arrived(2)
        assert ids == receiver.ids


# Faults of the database


def locked() -> OperationalError:
    return OperationalError("SELECT secret-words", {}, Exception("secret-words"))


async def test_a_database_that_fails_is_asked_again(
    engine, clock, make: Make, running, monkeypatch, caplog
):
    caplog.set_level(logging.INFO, "app.alerts.courier")
    works, failures = outbox.waiting, iter([locked(), locked(), locked()])

    def failing(*arguments):
        for error in failures:
            raise error
        return works(*arguments)

    monkeypatch.setattr(outbox, "waiting", failing)
    async with receiving(clock=clock) as receiver:
        put(engine, Party("a"))
        running(make(Directory(a=receiver), poll=0.01))
        await receiver.arrived()
    said = [record.message for record in caplog.records]
    assert [
        "deliveries cannot be read or recorded (OperationalError)",
        "deliveries can be read and recorded again",
    ] == said
    assert "secret-words" not in caplog.text


async def test_a_result_that_cannot_be_recorded_is_kept_and_not_sent_again(
    engine, clock, make: Make, monkeypatch
):
    works, failures, pauses = outbox.settle, iter([locked()] * 7), []

    def failing(*arguments, **named):
        for error in failures:
            raise error
        return works(*arguments, **named)

    async def pause(seconds):
        pauses.append(seconds)

    monkeypatch.setattr(outbox, "settle", failing)
    async with receiving(clock=clock) as receiver:
        delivery_id = put(engine, Party("a"))
        assert 1 == await make(Directory(a=receiver), pause=pause).deliver_due()
        assert 1 == len(receiver.received)
    assert [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0] == pauses
    assert ["delivered"] == states(engine, delivery_id)


async def test_a_result_that_is_never_recorded_ends_with_its_claim(
    engine, clock, make: Make, monkeypatch
):
    works = outbox.settle

    def failing(*arguments, **named):
        raise locked()

    async def pause(seconds):
        clock.advance(LEASE / 3)

    monkeypatch.setattr(outbox, "settle", failing)
    async with receiving(clock=clock) as receiver:
        delivery_id = put(engine, Party("a"))
        courier = make(Directory(a=receiver), pause=pause)
        sending = asyncio.ensure_future(courier.deliver_due())
        await receiver.arrived(2)
        monkeypatch.setattr(outbox, "settle", works)
        await sending
        assert {delivery_id} == set(receiver.ids)
    assert ["delivered"] == states(engine, delivery_id)


# The end


async def test_at_the_end_what_is_being_sent_may_end_by_itself(engine, make: Make):
    sender = Held()
    first, second = put(engine, Party("a")), put(engine, Party("a"), told=Told.RESOLVED)
    courier = make(directory("a"), sender)
    running_ = asyncio.ensure_future(courier.run())
    await sender.reached(1)
    closing = asyncio.ensure_future(courier.aclose(grace=20))
    await running_
    sender.answer(first)
    await closing
    assert ["delivered", "queued"] == states(engine, first, second)
    assert 0 == await courier.deliver_due()


async def test_at_the_end_what_hangs_is_cut_off_and_sent_again_by_another(
    engine, clock, make: Make
):
    async with receiving(HANG, clock=clock) as receiver:
        delivery_id = put(engine, Party("a"))
        courier = make(Directory(a=receiver))
        delivering = asyncio.ensure_future(courier.deliver_due())
        await receiver.arrived()
        await courier.aclose(grace=0)
        await delivering
        assert ["sending"] == states(engine, delivery_id)
        clock.advance(LEASE)
        assert 1 == await make(Directory(a=receiver)).deliver_due()
        assert [delivery_id] * 2 == receiver.ids
    assert ["delivered"] == states(engine, delivery_id)


# Secrets


async def test_address_and_secrets_are_in_no_row_log_or_task_name(
    engine, clock, make: Make, caplog
):
    caplog.set_level(logging.DEBUG)
    echo = f"you posted to {PATH}?{QUERY} signed by {SECRET} and {SECRET[6:]}"
    script = [Answer(500, echo), DROP, Answer(302, echo, {"location": PATH}), Answer(410, echo)]
    async with receiving(*script, clock=clock) as receiver:
        guard = Guard(["127.0.0.1"])
        receivers = Receivers(
            engine,
            Seal(Keys(b"k" * 32)),
            guard,
            (),
            environ={},
            clock=clock,
            new_id=lambda: "rcv_1",
        )
        made = await asyncio.to_thread(
            receivers.create, "ops", "webhook", receiver.url, [SECRET, OTHER_SECRET]
        )
        courier = make(receivers, Sender(guard, 20))
        names: set[str] = set()
        for rule in (RULE, OTHER_RULE):
            put(engine, made, rule=rule)
        for _ in range(3):
            delivering = asyncio.ensure_future(courier.deliver_due())
            while not delivering.done():
                names |= {task.get_name() for task in asyncio.all_tasks()}
                await asyncio.sleep(0)
            assert await delivering
            clock.advance(100_000)
            if not len(script := script[2:]):
                break
        assert 4 == len(receiver.received)
        assert all(one.verified for one in receiver.received)
        assert (await asyncio.to_thread(receivers.require, "rcv_1")).disabled == GONE
    with engine.connect() as connection:
        rows = repr(
            [
                tuple(row)
                for table in Base.metadata.sorted_tables
                for row in connection.execute(select(table))
            ]
        )
    assert "you posted to [removed]" in rows
    assert "alert-delivery-1" in names
    for canary in (PATH, "canary", QUERY, SECRET[6:], OTHER_SECRET[6:]):
        assert canary not in rows
        assert canary not in caplog.text
        assert not [name for name in names if canary in name]
