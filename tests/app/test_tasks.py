import asyncio

import pytest

from app.tasks import Repeating, Tasks, describe


async def test_a_task_is_kept_until_it_is_done():
    tasks = Tasks()
    gate = asyncio.Event()
    task = tasks.start(gate.wait(), name="waiter")
    assert (1, "waiter") == (len(tasks), task.get_name())
    gate.set()
    assert await task is True
    await asyncio.sleep(0)
    assert 0 == len(tasks)


async def test_closing_cancels_and_awaits_what_still_runs():
    tasks = Tasks()
    cleaned = []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    task = tasks.start(work(), name="work")
    await asyncio.sleep(0)
    await tasks.aclose()
    assert task.cancelled()
    assert [True] == cleaned


async def test_closing_with_grace_lets_tasks_end_by_themselves():
    tasks = Tasks()

    async def work():
        await asyncio.sleep(0)
        return 7

    task = tasks.start(work(), name="work")
    await tasks.aclose(grace=5)
    assert 7 == task.result()


async def test_who_is_cancelled_while_closing_ends_by_that_very_cancellation():
    tasks = Tasks()

    async def owner():
        tasks.start(asyncio.Event().wait(), name="work")
        await asyncio.sleep(0)
        # Arrives after the task was cancelled and before it could end.
        asyncio.get_running_loop().call_soon(closing.cancel, "told by the test")
        await tasks.aclose()

    closing = asyncio.get_running_loop().create_task(owner())
    with pytest.raises(asyncio.CancelledError, match="told by the test"):
        await closing
    await tasks.aclose()


async def test_no_task_starts_after_the_end():
    tasks = Tasks()
    await tasks.aclose()
    with pytest.raises(RuntimeError, match="late"):
        tasks.start(asyncio.sleep(0), name="late")


async def test_a_failure_is_logged_by_kind_and_place_without_its_text(caplog):
    tasks = Tasks()

    async def fail():
        raise ValueError("the user's secret words")

    task = tasks.start(fail(), name="failing")
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert "task failing failed: ValueError at " in caplog.text
    assert "test_tasks.py" in caplog.text
    assert "secret words" not in caplog.text


def test_an_error_that_was_never_raised_is_described_by_its_kind():
    assert "KeyError" == describe(KeyError("x"))


class Repeated(Repeating):
    """Fails the first time; ``third`` is set when it begins for the third."""

    def __init__(self, *, every: float = 0.0) -> None:
        super().__init__("repeated", every=every)
        self.loop = asyncio.get_running_loop()
        self.first, self.third = asyncio.Event(), asyncio.Event()
        self.told: list[str] = []

    def _once(self) -> None:
        self.told.append("begun")
        begun = self.told.count("begun")
        if begun == 1:
            self.loop.call_soon_threadsafe(self.first.set)
            raise OSError("away")
        if begun == 3:
            self.loop.call_soon_threadsafe(self.third.set)

    def _failed(self, error: Exception) -> None:
        self.told.append(str(error))


class Long(Repeated):
    def _once(self) -> None:
        self.loop.call_soon_threadsafe(self.first.set)
        self.told.append(f"told to stop: {self._stop.wait(5)}")


async def test_what_repeats_goes_on_after_a_time_that_failed():
    one = Repeated()
    one.start()
    async with asyncio.timeout(5):
        await one.third.wait()
        await one.aclose()
    assert ["begun", "away", "begun", "begun"] == one.told[:4]


async def test_what_repeats_rests_between_two_times_and_not_when_it_is_to_end():
    one = Repeated(every=3_600)
    one.start()
    async with asyncio.timeout(5):
        await one.first.wait()
        await one.aclose()
    assert ["begun", "away"] == one.told


async def test_what_repeats_ends_after_the_time_at_hand_which_is_told_to_stop():
    one = Long()
    one.start()
    async with asyncio.timeout(5):
        await one.first.wait()
        await one.aclose()
    assert ["told to stop: True"] == one.told
