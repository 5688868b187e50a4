import asyncio
import json
import threading

import msgspec
import pytest

from app.web.live import MESSAGE_ROWS, QUEUE_ROWS, Hub
from tests.support.clock import ManualClock
from tests.support.rows import make_row


def everything(_row):
    return True


@pytest.fixture
async def hub():
    made = Hub(ManualClock())
    made.start()
    return made


async def publish(hub, rows):
    """As the ledger's writer does it: from another thread."""
    thread = threading.Thread(target=hub.publish, args=(rows,))
    thread.start()
    await asyncio.to_thread(thread.join)
    await asyncio.sleep(0)


def ids(taken):
    kind, rows = taken
    assert kind == "rows"
    return [json.loads(bytes(row))["turn_id"] for row in rows]


async def test_every_client_gets_the_rows_that_it_wants(hub):
    all_rows = hub.join(everything)
    some = hub.join(lambda row: row.mode == "ws_full")
    await publish(hub, [make_row(turn_id="a"), make_row(turn_id="b", mode="ws_full")])
    assert ids(await all_rows.take()) == ["a", "b"]
    assert ids(await some.take()) == ["b"]


async def test_a_row_comes_with_its_sentence(hub):
    client = hub.join(everything)
    await publish(hub, [make_row()])
    _, (row,) = await client.take()
    assert msgspec.json.decode(row)["why"] == "Continued: only what is new was sent."


async def test_rows_of_before_a_client_joined_are_not_sent(hub):
    hub.join(everything)
    await publish(hub, [make_row(turn_id="a")])
    late = hub.join(everything)
    await publish(hub, [make_row(turn_id="b")])
    assert ids(await late.take()) == ["b"]


async def test_a_client_that_does_not_read_gets_one_reset_and_holds_up_nobody(hub):
    slow, quick = hub.join(everything), hub.join(everything)
    for _ in range(3):
        await publish(hub, [make_row() for _ in range(QUEUE_ROWS // 2)])
        while quick.rows:
            assert (await quick.take())[0] == "rows"
    assert len(slow.rows) == 0
    assert await slow.take() == ("reset", [])
    await publish(hub, [make_row(turn_id="after")])
    assert ids(await slow.take()) == ["after"]


async def test_a_full_queue_is_still_delivered_whole(hub):
    client = hub.join(everything)
    await publish(hub, [make_row() for _ in range(QUEUE_ROWS)])
    sizes = [len((await client.take())[1]) for _ in range(QUEUE_ROWS // MESSAGE_ROWS)]
    assert sizes == [MESSAGE_ROWS] * (QUEUE_ROWS // MESSAGE_ROWS)


async def test_what_waits_for_a_client_is_bounded(hub):
    client = hub.join(everything)
    for _ in range(5):
        await publish(hub, [make_row() for _ in range(QUEUE_ROWS - 1)])
        assert len(client.rows) <= QUEUE_ROWS


async def test_messages_are_numbered_from_zero_without_gaps(hub):
    client = hub.join(everything)
    found = [json.loads(client.message(kind, hub.as_of())) for kind in ("hello", "reset", "rows")]
    assert [message["seq"] for message in found] == [0, 1, 2]
    assert found[0] == {"seq": 0, "type": "hello", "as_of": "2027-01-15T08:00:00.000Z"}


async def test_a_client_that_left_gets_nothing_more(hub):
    client = hub.join(everything)
    hub.leave(client)
    await publish(hub, [make_row()])
    assert not client.rows
    assert len(hub) == 0


async def test_without_clients_nothing_is_encoded(hub):
    await publish(hub, [object()])  # would fail if it were looked at


async def test_the_end_wakes_a_waiting_client(hub):
    client = hub.join(everything)
    waiting = asyncio.create_task(client.take())
    await asyncio.sleep(0)
    hub.close()
    assert await waiting is None


def test_a_loop_that_has_closed_does_not_fail_the_writer():
    hub = Hub(ManualClock())

    async def live():
        hub.start()
        hub.join(everything)

    asyncio.run(live())
    hub.publish([make_row()])


def test_before_the_start_rows_go_nowhere():
    Hub(ManualClock()).publish([make_row()])


async def test_where_rows_were_missed_every_client_fetches_the_snapshot_again(hub):
    clients = [hub.join(everything), hub.join(everything)]
    await publish(hub, [make_row(turn_id="before")])
    await asyncio.to_thread(hub.reset_soon)
    await publish(hub, [make_row(turn_id="with it")])
    assert [await client.take() for client in clients] == [("reset", [])] * 2
    await publish(hub, [make_row(turn_id="after")])
    assert [ids(await client.take()) for client in clients] == [["after"]] * 2
