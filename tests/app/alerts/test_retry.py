from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.alerts.retry import JITTER, SCHEDULE, DeliveryState, Next, after, wished_pause
from tests.support.rows import START_MS

DAY = 86_400


@dataclass(frozen=True)
class Got:
    status: int | None = None
    retry_after: str | None = None


def middle() -> float:
    return 0.5


def pause(attempts: int, got: Got, random: float = 0.5) -> float | None:
    """The seconds until the next attempt; None where there is none."""
    then = after(attempts, got, START_MS, lambda: random)
    return None if then.at is None else (then.at - START_MS) / 1_000


def test_ten_attempts_are_made_and_then_no_more():
    assert [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400, None] == [
        pause(attempt, Got(500)) for attempt in range(1, 11)
    ]
    assert Next(DeliveryState.DEAD) == after(10, Got(500), START_MS, middle)
    assert Next(DeliveryState.DEAD) == after(11, Got(None), START_MS, middle)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_only_2xx_is_success(status):
    assert Next(DeliveryState.DELIVERED) == after(1, Got(status), START_MS, middle)
    assert Next(DeliveryState.DELIVERED) == after(10, Got(status), START_MS, middle)


@pytest.mark.parametrize("status", [None, 408, 425, 429, 500, 502, 503, 504, 599])
def test_what_may_pass_is_repeated(status):
    assert Next(DeliveryState.QUEUED, START_MS + 5_000) == after(1, Got(status), START_MS, middle)


@pytest.mark.parametrize("status", [199, 300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 422])
def test_other_answers_are_final(status):
    assert Next(DeliveryState.DEAD) == after(1, Got(status, "60"), START_MS, middle)


def test_410_is_final_for_the_receiver_too():
    assert Next(DeliveryState.DEAD, gone=True) == after(1, Got(410), START_MS, middle)


@given(attempt=st.integers(1, 9), random=st.floats(0, 1, exclude_max=True))
def test_jitter_moves_a_pause_by_a_tenth_at_most(attempt, random):
    seconds = pause(attempt, Got(500), random)
    assert seconds is not None
    assert abs(seconds - SCHEDULE[attempt - 1]) <= SCHEDULE[attempt - 1] * JITTER + 0.001


def test_jitter_goes_both_ways():
    assert [4.5, 5.5] == [pause(1, Got(500), random) for random in (0.0, 1.0)]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_retry_after_puts_off_the_next_attempt(status):
    assert 60 == pause(1, Got(status, "60"))


def test_retry_after_never_brings_an_attempt_forward():
    assert 5 == pause(1, Got(503, "1"))
    assert 300 == pause(2, Got(503, "0"))


@pytest.mark.parametrize("header", ["86401", "9" * 30, "9" * 5_000])
def test_retry_after_counts_up_to_a_day(header):
    assert DAY == pause(1, Got(503, header))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0007", 7),
        (" 42 ", 42),
        ("Fri, 15 Jan 2027 08:01:30 GMT", 90),
        ("Fri, 15 Jan 2027 10:01:30 +0200", 90),
        ("Fri, 15 Jan 2027 08:01:30 -0000", 90),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0),
        ("Sun, 17 Jan 2027 08:00:00 GMT", DAY),
        ("Fri, 31 Dec 9999 23:59:59 -2359", DAY),
        ("-5", 0),
        ("1.5", 0),
        ("٤٢", 0),
        ("soon", 0),
        ("", 0),
        (None, 0),
    ],
)
def test_a_wish_is_seconds_or_an_http_date(header, seconds):
    assert seconds == wished_pause(header, START_MS)


@given(st.text())
def test_no_header_is_a_fault(header):
    assert 0 <= wished_pause(header, START_MS) <= DAY


def test_the_header_counts_only_where_there_was_an_answer():
    assert 5 == pause(1, Got(None, "3600"))


def test_the_wait_ends_where_the_attempt_ended():
    assert START_MS + 7_000 + 5_000 == after(1, Got(500), START_MS + 7_000, middle).at
