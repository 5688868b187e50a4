"""One timer for all that a turn waits for."""

import asyncio

import pytest

from engine.waiting import Patience


def moment(seconds=0.0):
    return asyncio.get_running_loop().time() + seconds


async def test_what_comes_in_time_is_given_and_the_timer_is_kept():
    patience = Patience()
    armed = []
    for _ in range(3):
        async with patience.until(moment(60)):
            await asyncio.sleep(0)
        armed.append(patience._handle)
    assert armed[0] is not None
    assert armed == [armed[0]] * 3
    patience.stop()
    assert armed[0].cancelled()


async def test_what_does_not_come_ends_with_a_time_out():
    patience = Patience()
    with pytest.raises(TimeoutError):
        async with patience.until(moment()):
            await asyncio.Event().wait()
    assert asyncio.current_task().cancelling() == 0
    async with patience.until(moment(60)):
        await asyncio.sleep(0)
    patience.stop()


async def test_a_timer_of_the_wait_before_does_not_end_this_one():
    patience, come = Patience(), asyncio.Event()
    async with patience.until(moment()):
        pass
    asyncio.get_running_loop().call_later(0.01, come.set)
    async with patience.until(moment(60)):
        await come.wait()
    assert patience._handle.when() > moment(50)
    patience.stop()


async def test_a_wait_can_be_made_shorter_while_it_lasts():
    patience = Patience()

    async def wait():
        async with patience.until(moment(60)):
            assert patience.when() > moment(50)
            asyncio.get_running_loop().call_soon(patience.reschedule, moment())
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await wait()
    assert patience.when() is None


async def test_a_cancellation_of_another_stays_one():
    patience = Patience()

    async def wait():
        async with patience.until(moment(60)):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    patience.stop()


async def test_a_cancellation_beside_the_time_out_stays_one():
    patience = Patience()

    async def wait():
        async with patience.until(moment()):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    patience._due()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_at_the_last_moment_is_the_error():
    patience = Patience()

    async def fail():
        async with patience.until(moment(60)):
            patience._handle.cancel()
            patience._due()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert asyncio.current_task().cancelling() == 0
    with pytest.raises(asyncio.CancelledError):  # as with any time-out of the loop's own
        await asyncio.sleep(0)


async def test_nothing_is_left_to_be_due_where_nothing_is_waited_for():
    patience = Patience()
    async with patience.until(moment()):
        pass
    await asyncio.sleep(0.002)
    assert patience._handle is None
    assert patience.when() is None
