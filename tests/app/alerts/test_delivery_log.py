import pytest

from app.alerts import delivery_log, outbox, retry
from app.alerts.retry import DeliveryState
from app.alerts.states import Told
from app.errors import AppError, BadParameterError
from tests.support.deliveries import OTHER_RULE, RULE, Answered, Party, put
from tests.support.rows import START_MS as NOW

A, B = Party("receiver-a", "a"), Party("receiver-b", "b")


def attempt(engine, status, now=NOW):
    """The next delivery that is due, sent with this answer."""
    [claimed] = outbox.claim_due(engine, now, 60_000, 1, {A.id: 1, B.id: 1})
    answer = Answered(status, f"HTTP {status}", 12.5, "words")
    then = retry.after(claimed.tries, answer, now, lambda: 0.5)
    outbox.settle(engine, claimed, answer, then, started_at=now, now=now + 12)


def test_a_delivery_is_told_with_its_message_and_every_attempt(engine):
    delivery_id = put(engine, A, body=b'{"a":1}', told=Told.NO_DATA, test=True)
    attempt(engine, 500)
    attempt(engine, 200, NOW + 6_000)
    detail = delivery_log.get(engine, delivery_id)
    assert '{"a":1}' == detail.body
    assert (
        delivery_log.Delivery(
            id=delivery_id,
            receiver_id="receiver-a",
            receiver_name="a",
            rule_id="rule-1",
            rule_name="Mismatches",
            group_key="{}",
            dedupe_key=detail.delivery.dedupe_key,
            told="no_data",
            repeat=0,
            test=True,
            state=DeliveryState.DELIVERED,
            attempts=2,
            replays=0,
            created_at=NOW,
            next_attempt_at=None,
            settled_at=NOW + 6_012,
            outcome="HTTP 200",
        )
        == detail.delivery
    )
    assert (
        delivery_log.Attempt(1, NOW, 12.5, 500, "HTTP 500", "words"),
        delivery_log.Attempt(2, NOW + 6_000, 12.5, 200, "HTTP 200", "words"),
    ) == detail.attempts


def test_attempts_of_others_are_not_mixed_in(engine):
    first = put(engine, A)
    attempt(engine, 200)
    put(engine, A)
    attempt(engine, 400)
    assert [200] == [one.status for one in delivery_log.get(engine, first).attempts]


def test_what_is_not_there_is_said(engine):
    with pytest.raises(AppError) as caught:
        delivery_log.get(engine, "msg_none")
    assert ("unknown_delivery", 404) == (caught.value.code, caught.value.status)


def test_the_time_of_the_next_attempt_is_known_only_while_one_is_planned(engine):
    delivery_id = put(engine, A)

    def next_at():
        return delivery_log.get(engine, delivery_id).delivery.next_attempt_at

    assert NOW == next_at()
    [claimed] = outbox.claim_due(engine, NOW, 1, 1, {A.id: 1})
    assert next_at() is None
    answer = Answered(500, "HTTP 500")
    then = retry.after(1, answer, NOW, lambda: 0.5)
    outbox.settle(engine, claimed, answer, then, started_at=NOW, now=NOW)
    assert NOW + 5_000 == next_at()
    attempt(engine, 404, NOW + 5_000)
    assert next_at() is None


def test_pages_hold_everything_once_newest_first_whatever_is_written_meanwhile(engine):
    written = [put(engine, A, group_key=f'{{"model":"{n}"}}') for n in range(5)]
    seen, cursor = [], None
    while True:
        page = delivery_log.page(engine, limit=2, cursor=cursor)
        seen += [one.id for one in page.deliveries]
        put(engine, A)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert written[::-1] == seen


def test_a_full_last_page_has_no_next_one(engine):
    for _ in range(2):
        put(engine, A)
    assert delivery_log.page(engine, limit=2).next_cursor is None
    assert delivery_log.Page((), None) == delivery_log.page(engine, state="dead")


def test_pages_are_narrowed_by_receiver_rule_and_state(engine):
    first = put(engine, A, rule=RULE)
    attempt(engine, 200)
    second, third = put(engine, A, rule=OTHER_RULE), put(engine, B, rule=OTHER_RULE)

    def ids(**wanted):
        return [one.id for one in delivery_log.page(engine, **wanted).deliveries]

    assert [third, second, first] == ids()
    assert [second, first] == ids(receiver_id=A.id)
    assert [third, second] == ids(rule_id="rule-2")
    assert [first] == ids(state="delivered")
    assert [second] == ids(receiver_id=A.id, rule_id="rule-2", state="queued")


def test_wishes_that_cannot_be_are_refused(engine):
    for wish in ({"limit": 0}, {"limit": 501}, {"state": "lost"}):
        with pytest.raises(BadParameterError):
            delivery_log.page(engine, **wish)
    for cursor in ("!", "LTE", "MTox", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5", "é"):
        with pytest.raises(AppError, match="cursor"):
            delivery_log.page(engine, cursor=cursor)


def test_every_state_is_counted(engine):
    assert dict.fromkeys(DeliveryState, 0) == delivery_log.counts(engine)
    put(engine, A)
    attempt(engine, 400)
    put(engine, A)
    put(engine, B)
    assert {"queued": 2, "sending": 0, "delivered": 0, "dead": 1} == delivery_log.counts(engine)


def test_the_next_time_is_that_of_the_earliest_that_waits(engine):
    assert delivery_log.next_due(engine) is None
    put(engine, A, now=NOW + 9)
    put(engine, B, now=NOW + 7)
    assert NOW + 7 == delivery_log.next_due(engine)
    outbox.claim_due(engine, NOW + 7, 1, 1, {B.id: 1})
    assert NOW + 9 == delivery_log.next_due(engine)
