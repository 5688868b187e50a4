"""One lane's frames, one after another."""

import asyncio

from app.demo.provider.worker import Worker
from tests.support.provider import AUTH, frame, make_core


async def test_frames_are_sent_in_order_and_the_rest_is_told_that_the_peer_left():
    core = make_core(replies=["one", "two", "three"])
    connection = core.open_connection(AUTH)
    sent = []
    stuck = asyncio.Event()

    async def send(steps):
        try:
            for _, action in steps:
                if len(core.log[1:]) and core.log[1].events == 1:
                    stuck.set()
                    await asyncio.Event().wait()
                sent.append(action)
        finally:
            steps.close()

    worker = Worker(send)
    for _ in range(3):
        worker.put(connection.handle_frame(frame()))
    await stuck.wait()
    await worker.stop()
    assert [attempt.outcome for attempt in core.log] == ["completed", "client_closed", "waiting"]
    assert connection.idle
