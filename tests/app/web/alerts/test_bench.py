import asyncio
import threading

import pytest

from app.errors import AppError
from app.web.alerts import bench
from app.web.alerts.bench import MOST_WAITING, Bench


class Caller:
    def __init__(self) -> None:
        self.left = False

    async def is_disconnected(self) -> bool:
        return self.left


class Work:
    """Work that goes on until it is let go or its caller has gone."""

    def __init__(self) -> None:
        self.begun, self.release = threading.Event(), threading.Event()
        self.ended: BaseException | None = None

    def __call__(self, progress) -> str:
        self.begun.set()
        try:
            while not self.release.is_set():
                progress(1, 2)
        except BaseException as error:
            self.ended = error
            raise
        return "done"


@pytest.fixture(autouse=True)
def _look_often(monkeypatch):
    monkeypatch.setattr(bench, "LOOK_SECONDS", 0.01)


async def begun(work: Work) -> None:
    assert await asyncio.to_thread(work.begun.wait, 10)


async def test_work_gives_its_result_or_its_error():
    assert 3 == await Bench().run(Caller(), lambda progress: 3)

    def fails(_progress) -> None:
        raise AppError("x", "No.")

    with pytest.raises(AppError, match="No"):
        await Bench().run(Caller(), fails)


async def test_one_runs_at_a_time():
    it, first, second = Bench(), Work(), Work()
    tasks = [asyncio.create_task(it.run(Caller(), work)) for work in (first, second)]
    await begun(first)
    assert not second.begun.is_set()
    first.release.set()
    second.release.set()
    assert ["done", "done"] == await asyncio.gather(*tasks)


async def test_work_ends_when_its_caller_has_gone():
    it, caller, work = Bench(), Caller(), Work()
    task = asyncio.create_task(it.run(caller, work))
    await begun(work)
    caller.left = True
    with pytest.raises(AppError, match="Nobody waits"):
        await task
    assert "next" == await it.run(Caller(), lambda progress: "next")
    assert isinstance(work.ended, Exception)


async def test_work_that_waits_for_a_caller_who_has_gone_is_never_begun():
    it, first, second, caller = Bench(), Work(), Work(), Caller()
    running = asyncio.create_task(it.run(Caller(), first))
    await begun(first)
    waiting = asyncio.create_task(it.run(caller, second))
    caller.left = True
    with pytest.raises(AppError, match="Nobody waits"):
        await waiting
    first.release.set()
    assert "done" == await running
    assert "next" == await it.run(Caller(), lambda progress: "next")
    assert not second.begun.is_set()


async def test_a_request_that_is_cut_off_ends_its_work_too():
    it, work = Bench(), Work()
    task = asyncio.create_task(it.run(Caller(), work))
    await begun(work)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert "next" == await it.run(Caller(), lambda progress: "next")


async def test_not_too_many_wait():
    it, work = Bench(), Work()
    tasks = [asyncio.create_task(it.run(Caller(), work)) for _ in range(MOST_WAITING)]
    await begun(work)
    with pytest.raises(AppError, match="Too many") as caught:
        await it.run(Caller(), work)
    assert 503 == caught.value.status
    work.release.set()
    await asyncio.gather(*tasks)
    assert "next" == await it.run(Caller(), lambda progress: "next")
