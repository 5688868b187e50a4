import asyncio
from dataclasses import replace

import pytest

from app.alerts import outbox
from app.alerts.courier import DELETED, GONE, UNKNOWN
from app.alerts.endpoints import UnreadableError
from app.alerts.guard import AddressRefusedError, Guard
from app.alerts.states import Told
from app.alerts.webhook import Result, Sender
from app.ledger.database import open_engine
from tests.support.clock import START
from tests.support.couriers import (
    LEASE,
    Directory,
    Held,
    Make,
    directory,
    log_of,
    states,
)
from tests.support.deliveries import OTHER_RULE, Party, logged, put, stored
from tests.support.receiver import (
    DROP,
    Answer,
    receiving,
)


@pytest.fixture(scope="module")
def backend() -> str:
    """What this asks of the database, test_outbox asks of both kinds."""
    return "sqlite"


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
    async with receiving(*[503] * 11, clock=clock) as receiver:
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
        clock.advance(5)
        assert 1 == await courier.deliver_due()
        assert [delivery_id] * 12 == receiver.ids
    assert "delivered" == stored(engine, delivery_id).state
    assert list(range(1, 13)) == [row.attempt for row in logged(engine, delivery_id)]


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
    async with receiving(500, 410, clock=clock) as receiver:
        later = put(engine, Party("a"), rule=OTHER_RULE)
        receivers = Directory(a=receiver, b=receiver)
        courier = make(receivers)
        await courier.deliver_due()
        first = put(engine, Party("a"))
        await courier.deliver_due()
        assert (GONE, None) == (receivers.known["a"].disabled, receivers.known["b"].disabled)
        assert ["dead", "dead"] == states(engine, first, later)
        assert ["HTTP 410", GONE] == [stored(engine, id_).outcome for id_ in (first, later)]
        other = put(engine, Party("b"))
        await courier.deliver_due()
        assert ["delivered"] == states(engine, other)
        assert 3 == len(receiver.received)


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
    await courier.deliver_due()
    clock.advance(86_399)
    await courier.deliver_due()
    assert ["queued"] == states(engine, delivery_id)
    clock.advance(1)
    await courier.deliver_due()
    assert ("dead", UNKNOWN) == (
        stored(engine, delivery_id).state,
        stored(engine, delivery_id).outcome,
    )


async def test_messages_that_the_process_of_their_receiver_takes_are_not_given_up_by_others(
    engine, clock, make: Make
):
    """Its receiver is out of order for days: at each retry the other process looks as well."""

    class Failing:
        async def send(self, endpoint, delivery_id, body, timestamp):
            return Result(503, "HTTP 503")

    delivery_id = put(engine, Party("file-elsewhere"))
    stranger = make(directory("a"), Held())
    theirs = make(directory("file-elsewhere"), Failing())
    for _ in range(9):
        await stranger.deliver_due()
        assert 1 == await theirs.deliver_due()
        await stranger.deliver_due()
        assert ["queued"] == states(engine, delivery_id)
        clock.advance(2 * 86_400)


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
        other = open_engine(database)
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
        again = open_engine(database)
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
        other = open_engine(database)
        couriers = [make(Directory(a=receiver), on=on) for on in (engine, other)]
        counts = await asyncio.gather(*(courier.deliver_due() for courier in couriers))
        other.dispose()
        assert 12 == sum(counts)
        assert sorted(written) == sorted(receiver.ids)
