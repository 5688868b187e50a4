import time

from app.clock import SystemClock
from tests.support.clock import ManualClock


def test_now_is_the_wall_clock_in_seconds():
    before = time.time()
    now = SystemClock().now()
    assert before <= now <= time.time()


def test_monotonic_never_goes_back():
    clock = SystemClock()
    readings = [clock.monotonic() for _ in range(100)]
    assert sorted(readings) == readings


def test_a_manual_clock_moves_only_when_told():
    clock = ManualClock(now=100.0, monotonic=5.0)
    clock.advance(2.5)
    assert (102.5, 7.5) == (clock.now(), clock.monotonic())
    clock.set_now(50.0)
    assert (50.0, 7.5) == (clock.now(), clock.monotonic())
