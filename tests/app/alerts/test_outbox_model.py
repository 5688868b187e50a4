"""The outbox against a model of a few lines, in any order of what couriers and people may do."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Engine, select

from app.alerts import outbox, retry
from app.alerts.outbox import Claimed
from app.alerts.tables import attempts, deliveries
from app.errors import AppError
from tests.support.deliveries import Answered, Party, put
from tests.support.rows import START_MS

LEASE = 60_000
RECEIVERS = [Party("a"), Party("b")]
GROUPS = ['{"model":"x"}', '{"model":"y"}']


@dataclass
class Message:
    id: str
    receiver: str
    group: str
    test: bool
    next_at: int
    state: str = "queued"
    attempts: int = 0
    before: int = 0
    replays: int = 0
    until: int = 0
    log: list[tuple[int, int]] = field(default_factory=list)


class Outbox(RuleBasedStateMachine):
    claims = Bundle("claims")

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine
        self.now = START_MS
        self.messages: list[Message] = []

    @rule(
        receiver=st.sampled_from(RECEIVERS),
        group=st.sampled_from(GROUPS),
        test=st.sampled_from([False, False, False, True]),
    )
    def write(self, receiver, group, test):
        id_ = put(self.engine, receiver, group_key=group, test=test, now=self.now)
        self.messages.append(Message(id_, receiver.id, group, test, self.now))

    @rule(seconds=st.sampled_from([0.001, 5, 60, 300, 1_800, 90_000]))
    def wait(self, seconds):
        self.now += round(1_000 * seconds)

    def _due(self, index: int) -> bool:
        this = self.messages[index]
        if this.state == "queued":
            in_time = this.next_at <= self.now
        else:
            in_time = this.state == "sending" and this.until <= self.now
        behind = any(
            earlier.receiver == this.receiver
            and earlier.group == this.group
            and earlier.state in ("queued", "sending")
            and not earlier.test
            for earlier in self.messages[:index]
        )
        return in_time and (this.test or not behind)

    @rule(target=claims, limit=st.integers(1, 4), a=st.integers(0, 3), b=st.integers(0, 3))
    def claim(self, limit, a, b):
        found = outbox.claim_due(self.engine, self.now, LEASE, limit, {"a": a, "b": b})
        expected: list[tuple[int, int, int]] = []
        for receiver, most in (("a", a), ("b", b)):
            due = [
                (message.next_at, index)
                for index, message in enumerate(self.messages)
                if message.receiver == receiver and self._due(index)
            ]
            expected += [(place, *one) for place, one in enumerate(sorted(due)[:most])]
        taken = [self.messages[index] for _, _, index in sorted(expected)[:limit]]
        for message in taken:
            message.state, message.until = "sending", self.now + LEASE
            message.attempts += 1
        assert [(m.id, m.attempts, m.attempts - m.before) for m in taken] == [
            (claimed.id, claimed.attempt, claimed.tries) for claimed in found
        ]
        return multiple(*found)

    @rule(claimed=claims, status=st.sampled_from([200, 200, 400, 500, 503]))
    def settle(self, claimed: Claimed, status):
        """By its owner, by one who was replaced, or by one who did so before."""
        answer = Answered(status)
        then = retry.after(claimed.tries, answer, self.now, lambda: 0.5)
        mine = outbox.settle(self.engine, claimed, answer, then, started_at=self.now, now=self.now)
        message = next(one for one in self.messages if one.id == claimed.id)
        assert mine == (message.state == "sending" and message.attempts == claimed.attempt)
        if mine and status == 200:
            message.state = "delivered"
        elif mine and (status == 400 or claimed.tries > 9):
            message.state = "dead"
        elif mine:
            message.state = "queued"
            message.next_at = self.now + 1_000 * retry.SCHEDULE[claimed.tries - 1]
        if claimed.attempt not in [number for number, _ in message.log]:
            message.log.append((claimed.attempt, status))

    @rule(receiver=st.sampled_from(RECEIVERS))
    def give_up(self, receiver):
        outbox.abandon(self.engine, receiver.id, "gone", self.now)
        for message in self.messages:
            waits = message.state == "queued" or (
                message.state == "sending" and message.until <= self.now
            )
            if message.receiver == receiver.id and waits:
                message.state = "dead"

    @rule(data=st.data())
    def replay(self, data):
        if not self.messages:
            return
        message = data.draw(st.sampled_from(self.messages))
        try:
            outbox.replay(self.engine, message.id, self.now)
        except AppError:
            assert message.state in ("queued", "sending")
            return
        assert message.state in ("delivered", "dead")
        message.state, message.next_at = "queued", self.now
        message.before = message.attempts
        message.replays += 1

    @invariant()
    def the_rows_are_those_of_the_model(self):
        d, log = deliveries.c, attempts.c
        with self.engine.connect() as connection:
            rows = connection.execute(
                select(
                    d.id, d.state, d.attempts, d.replays, d.claimed_until, d.settled_at
                ).order_by(d.number)
            ).all()
            logged = connection.execute(
                select(d.id, log.attempt, log.status).join(deliveries, d.number == log.delivery)
            ).all()
        assert [(m.id, m.state, m.attempts, m.replays) for m in self.messages] == [
            tuple(row)[:4] for row in rows
        ]
        assert sorted((m.id, *entry) for m in self.messages for entry in m.log) == sorted(
            tuple(row) for row in logged
        )
        for row in rows:
            assert (row.state == "sending") == (row.claimed_until is not None)
            assert (row.state in ("delivered", "dead")) == (row.settled_at is not None)


def test_the_outbox_does_what_its_model_does(holding, backend):
    examples = 60 if backend == "sqlite" else 10  # which take several times as long each
    run_state_machine_as_test(
        lambda: Outbox(holding([])),
        settings=settings(max_examples=examples, stateful_step_count=40, deadline=None),
    )
