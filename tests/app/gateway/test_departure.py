import asyncio

import pytest

from app.gateway.departure import Departure, batches_of, follow, run, watch
from app.http_connection import NOTICE
from app.tasks import Tasks
from engine.driver import Event
from tests.support.fake_driver import Edge, plain, stream


def test_one_listener_is_told_once():
    departure, told = Departure(), []
    departure.listen(lambda: told.append(1))
    departure.left()
    departure.left()
    assert (departure.gone, told) == (True, [1])


def test_who_listens_late_is_told_at_once():
    departure, told = Departure(), []
    departure.left()
    departure.listen(lambda: told.append(1))
    assert told == [1]


def test_nobody_is_told_after_the_listening_ended():
    departure, told = Departure(), []
    departure.listen(lambda: told.append(1))
    departure.listen(None)
    departure.left()
    assert told == []


async def test_only_a_disconnect_is_a_departure():
    messages = asyncio.Queue()
    departure = Departure()
    watching = asyncio.ensure_future(watch(messages.get, departure))
    messages.put_nowait({"type": "http.request", "body": b"", "more_body": False})
    while messages.qsize():
        await asyncio.sleep(0)
    assert not departure.gone
    messages.put_nowait({"type": "http.disconnect"})
    await watching
    assert departure.gone


@pytest.mark.parametrize("scope", [{}, {"extensions": None}, {"extensions": {}}])
async def test_a_server_that_tells_of_no_departure_is_asked(scope):
    messages, tasks, departure = asyncio.Queue(), Tasks(), Departure()
    unfollow = follow(departure, tasks, scope, messages.get)
    messages.put_nowait({"type": "http.disconnect"})
    while len(tasks):
        await asyncio.sleep(0)
    assert departure.gone
    unfollow()


async def test_a_server_that_tells_of_a_departure_is_not_asked():
    listeners, tasks, departure = [], Tasks(), Departure()
    unfollow = follow(departure, tasks, {"extensions": {NOTICE: listeners.append}}, None)
    listeners[0]()
    unfollow()
    assert (True, None, 0) == (departure.gone, listeners[1], len(tasks))


async def test_the_driver_hears_of_a_departure_during_the_run_and_after_it():
    for early in (True, False):
        edge = Edge(plain(200, {}), plain(200, {}))
        await edge.post()
        call, departure = edge.call, Departure()
        if early:
            departure.left()
        await run(edge.driver, call, departure)
        departure.left()
        assert edge.driver.left == [call.turn_id]


async def test_leaving_the_events_ends_their_iteration():
    ended = []

    async def events():
        try:
            yield Event(b"1")
            yield Event(b"2")
        finally:
            ended.append(True)

    answer = stream()
    answer.events = events()
    async with batches_of(answer) as found:
        assert [event.data for event in await anext(found)] == [b"1"]
    assert ended == [True]
