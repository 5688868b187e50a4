import asyncio
import logging

import pytest
from sqlalchemy import select

from app.alerts.courier import GONE
from app.alerts.guard import Guard
from app.alerts.receivers import Receivers
from app.alerts.sealed import Seal
from app.alerts.webhook import Sender
from app.keys import Keys
from app.ledger.models import Base
from tests.support.couriers import (
    Make,
)
from tests.support.deliveries import OTHER_RULE, RULE, put
from tests.support.receiver import (
    DROP,
    OTHER_SECRET,
    PATH,
    QUERY,
    SECRET,
    Answer,
    receiving,
)


@pytest.fixture(scope="module")
def backend() -> str:
    """What this asks of the database, test_outbox asks of both kinds."""
    return "sqlite"


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
        for _ in range(2):
            delivering = asyncio.ensure_future(courier.deliver_due())
            while not delivering.done():
                names |= {task.get_name() for task in asyncio.all_tasks()}
                await asyncio.sleep(0)
            assert 2 == await delivering
            clock.advance(100_000)
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
