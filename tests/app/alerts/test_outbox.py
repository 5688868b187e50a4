import hashlib
import itertools
import multiprocessing
import threading
from collections import Counter

import pytest
from sqlalchemy import Engine, select

from app.alerts import outbox, retry
from app.alerts.groups import dedupe_key
from app.alerts.outbox import Claimed
from app.alerts.retry import DeliveryState, Next
from app.alerts.states import Told
from app.alerts.tables import deliveries
from app.errors import AppError
from app.ledger.database import WRITES, open_engine
from tests.support.deliveries import (
    OTHER_RULE,
    RULE,
    Answered,
    Party,
    logged,
    put,
    stored,
)
from tests.support.rows import START_MS as NOW

LEASE = 60_000
A, B = Party("receiver-a", "a"), Party("receiver-b", "b")
ROOM = {A.id: 4, B.id: 4}


def claim(engine: Engine, now: int = NOW, limit: int = 16, room=ROOM) -> list[Claimed]:
    return outbox.claim_due(engine, now, LEASE, limit, room)


def settle(engine: Engine, claimed: Claimed, status: int | None = 200, now: int = NOW) -> bool:
    answer = Answered(status, f"HTTP {status}")
    then = retry.after(claimed.tries, answer, now, lambda: 0.5)
    return outbox.settle(engine, claimed, answer, then, started_at=now, now=now)


def state(engine: Engine, delivery_id: str) -> str:
    return stored(engine, delivery_id).state


# Writing


def test_a_message_waits_for_its_first_attempt(engine):
    body = '{"rule":"Übergang"}'.encode()
    delivery_id = put(engine, A, rule=RULE, group_key='{"model":"m"}', body=body, test=True)
    row = stored(engine, delivery_id)
    assert delivery_id.startswith("msg_")
    assert ("receiver-a", "a", "rule-1", "Mismatches", "firing", True) == (
        row.receiver_id,
        row.receiver_name,
        row.rule_id,
        row.rule_name,
        row.told,
        row.test,
    )
    assert ('{"model":"m"}', dedupe_key("rule-1", '{"model":"m"}')) == (
        row.group_key,
        row.dedupe_key,
    )
    assert (body.decode(), hashlib.sha256(body).hexdigest()) == (row.body, row.body_digest)
    assert ("queued", 0, 0, NOW, NOW, None, None, None) == (
        row.state,
        row.attempts,
        row.replays,
        row.created_at,
        row.next_attempt_at,
        row.claimed_until,
        row.settled_at,
        row.outcome,
    )


def test_a_message_is_there_only_if_the_transaction_that_decided_on_it_is(engine):
    with engine.execution_options(**WRITES).connect() as connection:
        outbox.enqueue(
            connection,
            receiver=A,
            rule=RULE,
            group_key="{}",
            told=Told.FIRING,
            body=b"{}",
            now=NOW,
            new_id=lambda prefix: f"{prefix}1",
        )
        connection.rollback()
    assert [] == claim(engine)


def test_to_a_disabled_receiver_it_is_a_dead_letter_with_the_reason(engine):
    delivery_id = put(engine, Party(A.id, "a", disabled="it answered 410"))
    row = stored(engine, delivery_id)
    assert ("dead", "it answered 410", NOW) == (row.state, row.outcome, row.settled_at)
    assert [] == claim(engine)
    outbox.replay(engine, delivery_id, NOW)
    assert [delivery_id] == [one.id for one in claim(engine)]


# Claiming


def test_a_claim_counts_the_attempt_and_hides_the_message_from_others(engine):
    delivery_id = put(engine, A, body=b'{"a":1}')
    [claimed] = claim(engine)
    assert (delivery_id, A.id, b'{"a":1}', 1, 1) == (
        claimed.id,
        claimed.receiver_id,
        claimed.body,
        claimed.attempt,
        claimed.tries,
    )
    row = stored(engine, delivery_id)
    assert ("sending", 1, NOW + LEASE) == (row.state, row.attempts, row.claimed_until)
    assert [] == claim(engine, NOW + LEASE - 1)


def test_a_claim_that_was_never_settled_is_taken_over_when_its_lease_ends(engine):
    put(engine, A)
    [first] = claim(engine)
    [second] = claim(engine, NOW + LEASE)
    assert (first.id, first.body, 2) == (second.id, second.body, second.attempt)


def test_only_messages_to_known_receivers_are_taken(engine):
    put(engine, Party("file-elsewhere"))
    assert [] == claim(engine)
    assert [] == claim(engine, room={})


def test_no_more_than_there_is_room_for_is_taken_of_each_receiver(engine):
    for number in range(6):
        put(engine, A, group_key=f'{{"model":"{number}"}}')
    put(engine, B)
    assert {A.id: 2, B.id: 1} == Counter(
        one.receiver_id for one in claim(engine, room={A.id: 2, B.id: 4})
    )
    assert [] == claim(engine, room={A.id: 0, B.id: 4})


def test_all_receivers_get_their_first_before_any_gets_its_second(engine):
    for number in range(6):
        put(engine, A, group_key=f'{{"model":"{number}"}}')
    put(engine, B, now=NOW + 1)
    assert [A.id, B.id] == [one.receiver_id for one in claim(engine, NOW + 1, limit=2)]


def test_the_message_that_is_due_longest_goes_first(engine):
    late = put(engine, A, group_key='{"model":"1"}', now=NOW + 5)
    early = put(engine, A, group_key='{"model":"2"}', now=NOW + 4)
    assert [early, late] == [one.id for one in claim(engine, NOW + 5)]
    assert [] == claim(engine, NOW + 5)


def test_a_resolved_never_overtakes_a_firing_that_is_still_tried(engine):
    firing, resolved = put(engine, A), put(engine, A, told=Told.RESOLVED)
    [first] = claim(engine)
    assert [] == claim(engine), "it is under way"
    settle(engine, first, 503)
    assert [] == claim(engine, NOW + 4_999), "it waits for its retry"
    [again] = claim(engine, NOW + 5_000)
    assert firing == again.id
    settle(engine, again, 200, NOW + 5_000)
    assert [resolved] == [one.id for one in claim(engine, NOW + 5_000)]


def test_a_dead_firing_holds_nothing_up(engine):
    put(engine, A)
    resolved = put(engine, A, told=Told.RESOLVED)
    settle(engine, claim(engine)[0], 400)
    assert [resolved] == [one.id for one in claim(engine)]


def test_other_alerts_and_other_receivers_do_not_wait(engine):
    put(engine, A)
    held = put(engine, A, told=Told.RESOLVED)
    others = {
        put(engine, B),
        put(engine, A, rule=OTHER_RULE),
        put(engine, A, group_key='{"model":"m"}'),
    }
    found = {one.id for one in claim(engine)}
    assert others < found
    assert held not in found


def test_a_test_neither_waits_nor_holds_up_the_alert_itself(engine):
    before, alert, test = put(engine, A, test=True), put(engine, A), put(engine, A, test=True)
    assert {before, alert, test} == {one.id for one in claim(engine)}


def test_waiting_names_the_receivers_with_something_to_send(engine):
    assert set() == outbox.waiting(engine, NOW)
    put(engine, A, now=NOW + 1)
    put(engine, A, now=NOW + 2, group_key='{"model":"m"}')
    put(engine, Party("file-elsewhere"), now=NOW + 3)
    assert {A.id} == outbox.waiting(engine, NOW + 2)
    assert {A.id, "file-elsewhere"} == outbox.waiting(engine, NOW + 3)
    claim(engine, NOW + 3)
    assert {"file-elsewhere"} == outbox.waiting(engine, NOW + 3)


# Settling


def test_what_was_delivered_is_settled_with_its_attempt(engine):
    delivery_id = put(engine, A)
    [claimed] = claim(engine)
    answer = Answered(204, "delivered", 31.5, "thanks")
    done = Next(DeliveryState.DELIVERED)
    assert outbox.settle(engine, claimed, answer, done, started_at=NOW + 1, now=NOW + 33)
    row = stored(engine, delivery_id)
    assert ("delivered", NOW + 33, None, "delivered", 1) == (
        row.state,
        row.settled_at,
        row.claimed_until,
        row.outcome,
        row.attempts,
    )
    [attempt] = logged(engine, delivery_id)
    assert (1, NOW + 1, 31.5, 204, "delivered", "thanks") == tuple(attempt)[2:]


def test_what_failed_waits_for_its_next_attempt(engine):
    delivery_id = put(engine, A)
    assert settle(engine, claim(engine)[0], 500)
    row = stored(engine, delivery_id)
    assert ("queued", NOW + 5_000, None, None, "HTTP 500") == (
        row.state,
        row.next_attempt_at,
        row.claimed_until,
        row.settled_at,
        row.outcome,
    )


def test_who_comes_late_only_leaves_the_record_of_his_attempt(engine):
    delivery_id = put(engine, A)
    [slow] = claim(engine)
    [taken_over] = claim(engine, NOW + LEASE)
    assert not settle(engine, slow, 400, NOW + LEASE + 1)
    assert ("sending", 2, None) == tuple(
        getattr(stored(engine, delivery_id), name) for name in ("state", "attempts", "outcome")
    )
    assert settle(engine, taken_over, 200, NOW + LEASE + 2)
    assert not settle(engine, slow, 400, NOW + LEASE + 3)
    assert "delivered" == state(engine, delivery_id)
    assert [(1, 400), (2, 200)] == [
        (row.attempt, row.status) for row in logged(engine, delivery_id)
    ]


def test_a_late_result_counts_while_nobody_took_over(engine):
    delivery_id = put(engine, A)
    [slow] = claim(engine)
    assert settle(engine, slow, 200, NOW + 10 * LEASE)
    assert "delivered" == state(engine, delivery_id)


def test_settling_twice_is_settling_once(engine):
    """After a commit whose answer was lost."""
    delivery_id = put(engine, A)
    [claimed] = claim(engine)
    settle(engine, claimed, 500)
    before = stored(engine, delivery_id)
    assert not settle(engine, claimed, 500)
    assert before == stored(engine, delivery_id)
    assert 1 == len(logged(engine, delivery_id))


# Giving up, and beginning anew


def test_all_that_waits_for_a_receiver_can_be_given_up(engine):
    under_way = put(engine, A, group_key='{"model":"m"}')
    [claimed] = claim(engine)
    left = put(engine, A)
    other = put(engine, B)
    assert 1 == outbox.abandon(engine, A.id, "the receiver was deleted", NOW + 1)
    row = stored(engine, left)
    assert ("dead", "the receiver was deleted", NOW + 1) == (row.state, row.outcome, row.settled_at)
    assert ("sending", "queued") == (state(engine, under_way), state(engine, other))
    assert settle(engine, claimed, 200)
    assert 0 == outbox.abandon(engine, A.id, "again", NOW + 2)


def test_a_claim_that_ended_is_given_up_too(engine):
    delivery_id = put(engine, A)
    [claimed] = claim(engine)
    assert 1 == outbox.abandon(engine, A.id, "gone", NOW + LEASE)
    assert not settle(engine, claimed, 200, NOW + LEASE)
    assert ("dead", "gone") == (state(engine, delivery_id), stored(engine, delivery_id).outcome)


@pytest.mark.parametrize("status", [200, 400])
def test_a_replay_begins_the_schedule_anew_under_the_same_id(engine, status):
    delivery_id = put(engine, A)
    settle(engine, claim(engine)[0], 500)
    settle(engine, claim(engine, NOW + 5_000)[0], status)
    outbox.replay(engine, delivery_id, NOW + 9_000)
    row = stored(engine, delivery_id)
    assert ("queued", 1, 2, NOW + 9_000, None) == (
        row.state,
        row.replays,
        row.attempts,
        row.next_attempt_at,
        row.settled_at,
    )
    [claimed] = claim(engine, NOW + 9_000)
    assert (delivery_id, 3, 1) == (claimed.id, claimed.attempt, claimed.tries)
    settle(engine, claimed, 500, NOW + 9_000)
    assert NOW + 14_000 == stored(engine, delivery_id).next_attempt_at
    assert [1, 2, 3] == [row.attempt for row in logged(engine, delivery_id)]


def test_only_what_is_settled_can_be_replayed(engine):
    delivery_id = put(engine, A)
    for _ in range(2):
        with pytest.raises(AppError, match="still to be sent") as caught:
            outbox.replay(engine, delivery_id, NOW)
        assert ("not_settled", 409) == (caught.value.code, caught.value.status)
        claim(engine)
    with pytest.raises(AppError) as caught:
        outbox.replay(engine, "msg_none", NOW)
    assert ("unknown_delivery", 404) == (caught.value.code, caught.value.status)


# Many at once


def _claim_all(engine: Engine, taken: list[str]) -> None:
    while found := claim(engine, limit=3, room={A.id: 3, B.id: 3}):
        for claimed in found:
            taken.append(claimed.id)
            assert settle(engine, claimed, 200)


def _fill(engine: Engine) -> list[str]:
    return [
        put(engine, receiver, group_key=f'{{"model":"{model}"}}', told=told)
        for receiver, model, told in itertools.product(
            (A, B), range(6), (Told.FIRING, Told.RESOLVED)
        )
    ]


def test_threads_on_one_database_take_each_message_once(engine):
    written = _fill(engine)
    taken: list[str] = []
    threads = [threading.Thread(target=_claim_all, args=(engine, taken)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(written) == sorted(taken)
    assert {1} == {len(logged(engine, delivery_id)) for delivery_id in written}


def _claim_elsewhere(path: str, gate, results) -> None:
    engine = open_engine(path)
    taken: list[str] = []
    gate.wait()
    _claim_all(engine, taken)
    engine.dispose()
    results.put(taken)


def test_processes_on_one_database_take_each_message_once(engine, database):
    written = _fill(engine)
    context = multiprocessing.get_context("spawn")
    gate, results = context.Barrier(3), context.Queue()
    processes = [
        context.Process(target=_claim_elsewhere, args=(database, gate, results)) for _ in range(3)
    ]
    for process in processes:
        process.start()
    taken = [delivery_id for _ in processes for delivery_id in results.get(timeout=60)]
    for process in processes:
        process.join()
    assert sorted(written) == sorted(taken)
    with engine.connect() as connection:
        assert {("delivered", 1)} == {
            tuple(row)
            for row in connection.execute(select(deliveries.c.state, deliveries.c.attempts))
        }
