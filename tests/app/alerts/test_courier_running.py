"""Many sends side by side, faults of the database, and the end."""

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.exc import OperationalError

from app.alerts import outbox
from app.alerts.courier import AT_ONCE, AT_ONCE_EACH
from app.alerts.states import Told
from tests.support.couriers import (
    LEASE,
    Directory,
    Held,
    Make,
    directory,
    states,
)
from tests.support.deliveries import OTHER_RULE, Party, put
from tests.support.receiver import (
    HANG,
    receiving,
)


@pytest.fixture(scope="module")
def backend() -> str:
    """What this asks of the database, test_outbox asks of both kinds."""
    return "sqlite"


# Side by side


async def test_a_receiver_that_hangs_holds_up_no_other(engine, clock, make: Make):
    async with (
        receiving(*[HANG] * 6, clock=clock) as hanging,
        receiving(clock=clock) as fine,
    ):
        held = [put(engine, Party("a"), group_key=f'{{"model":"{n}"}}') for n in range(6)]
        courier = make(Directory(a=hanging, b=fine), run=True)
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


async def test_it_looks_by_itself(engine, clock, make: Make):
    async with receiving(clock=clock) as receiver:
        make(Directory(a=receiver), poll=0.01, run=True)
        put(engine, Party("a"))
        await receiver.arrived(1)
        put(engine, Party("a"), rule=OTHER_RULE)
        await receiver.arrived(2)


async def test_it_looks_at_once_when_woken_from_any_thread(engine, clock, make: Make, monkeypatch):
    looked, works = threading.Event(), outbox.waiting

    def watched(*arguments):
        found = works(*arguments)
        looked.set()
        return found

    monkeypatch.setattr(outbox, "waiting", watched)
    async with receiving(clock=clock) as receiver:
        courier = make(Directory(a=receiver), poll=3_600)
        courier.wake()  # before it runs: nothing to do, nothing wrong
        looping = asyncio.ensure_future(courier.run())
        assert await asyncio.to_thread(looked.wait, 20)
        put(engine, Party("a"))
        await asyncio.to_thread(courier.wake)
        await receiver.arrived()
        await courier.aclose()
        await looping
    courier.wake()


async def test_what_became_due_by_a_send_is_sent_at_once(engine, clock, make: Make):
    async with receiving(clock=clock) as receiver:
        ids = [put(engine, Party("a"), told=told) for told in (Told.FIRING, Told.RESOLVED)]
        make(Directory(a=receiver), poll=3_600, run=True)
        await receiver.arrived(2)
        assert ids == receiver.ids


# Faults of the database


def locked() -> OperationalError:
    return OperationalError("SELECT secret-words", {}, Exception("secret-words"))


async def test_a_database_that_fails_is_asked_again(engine, clock, make: Make, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "app.alerts.courier")
    works, failures = outbox.waiting, iter([locked(), locked(), locked()])

    def failing(*arguments):
        for error in failures:
            raise error
        return works(*arguments)

    monkeypatch.setattr(outbox, "waiting", failing)
    async with receiving(clock=clock) as receiver:
        put(engine, Party("a"))
        make(Directory(a=receiver), poll=0.01, run=True)
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


async def test_after_a_sleep_of_the_machine_nothing_that_is_under_way_is_sent_again(
    engine, clock, make: Make
):
    """The send goes on where it was; only the clock says that its claim is long over."""
    sender = Held()
    delivery_id = put(engine, Party("a"))
    courier = make(directory("a"), sender, run=True)
    await sender.reached(1)
    clock.set_now(clock.now() + 8 * 3_600)
    elsewhere = put(engine, Party("a"), rule=OTHER_RULE)
    courier.wake()
    await sender.reached(2)
    assert [delivery_id, elsewhere] == sender.begun
    for each in sender.begun:
        sender.answer(each)


class Recording(ThreadPoolExecutor):
    """The threads in which the event loop looks names up, among others."""

    def __init__(self) -> None:
        super().__init__(1)
        self.taken: list[object] = []

    def submit(self, call, /, *arguments, **options):
        self.taken.append(call)
        return super().submit(call, *arguments, **options)


async def test_no_thread_is_taken_in_which_turns_look_up_their_upstreams(engine, clock, make: Make):
    threads = Recording()
    asyncio.get_running_loop().set_default_executor(threads)
    async with receiving(410, clock=clock) as receiver:
        put(engine, Party("a"))
        assert 1 == await make(Directory(a=receiver)).deliver_due()
    assert [] == threads.taken


async def test_the_end_waits_for_what_is_being_recorded(engine, make: Make, monkeypatch):
    works, entered, gate = outbox.settle, threading.Event(), threading.Event()

    def slow(*arguments, **named):
        entered.set()
        gate.wait(20)
        return works(*arguments, **named)

    monkeypatch.setattr(outbox, "settle", slow)
    sender = Held()
    delivery_id = put(engine, Party("a"))
    courier = make(directory("a"), sender)
    delivering = asyncio.ensure_future(courier.deliver_due())
    await sender.reached(1)
    sender.answer(delivery_id)
    assert await asyncio.to_thread(entered.wait, 20)
    closing = asyncio.ensure_future(courier.aclose(grace=0))
    await delivering  # it was cut off, but its record is being written
    assert not closing.done()
    gate.set()
    await closing
    assert ["delivered"] == states(engine, delivery_id)
