from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.buckets import MAX_BUCKETS, STEPS, choose_step, cut, ticks

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = 3_600_000
DAY = 24 * HOUR
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/Los_Angeles",
    "Asia/Kathmandu",  # +05:45
    "Australia/Lord_Howe",  # summer time of half an hour
    "America/Havana",  # the repeated hour is 00:00
    "Africa/Cairo",  # summer time begins at midnight
    "Pacific/Apia",  # skipped 2011-12-30
    "Africa/Casablanca",
]


def at(text: str) -> int:
    """Epoch milliseconds of an ISO time; UTC unless it has an offset."""
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def local(text: str, zone: ZoneInfo, fold: int = 0) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp() * 1000)


instants = st.integers(at("1975-01-01"), at("2060-01-01"))


@given(
    start=instants,
    length=st.integers(1, 3 * 366 * DAY),
    zone=st.sampled_from(ZONES),
    rows=st.lists(st.floats(0, 1, exclude_max=True), max_size=40),
)
def test_buckets_cover_the_range_so_their_sums_are_those_of_the_rows(start, length, zone, rows):
    end = start + length
    buckets = cut(start, end, zone=ZoneInfo(zone), now=end)
    assert buckets.items[0].start == start
    assert buckets.items[-1].end == end
    assert all(left.end == right.start for left, right in pairwise(buckets.items))
    assert all(bucket.start < bucket.end for bucket in buckets.items)
    counts = [0] * len(buckets.items)
    for share in rows:
        place = buckets.index(start + int(share * length))
        counts[place] += 1
    assert sum(counts) == len(rows)


@given(start=instants, length=st.integers(1, 90 * 366 * DAY), zone=st.sampled_from(ZONES))
def test_there_are_never_many_more_buckets_than_asked_for(start, length, zone):
    buckets = cut(start, start + length, zone=ZoneInfo(zone), now=start)
    # Two cut ends, and up to two more where a zone jumps within the range.
    assert len(buckets.items) <= MAX_BUCKETS + 4


@given(start=instants, hours=st.integers(100, 100 * 366 * 24), zone=st.sampled_from(ZONES))
def test_inner_edges_stand_on_round_local_times(start, hours, zone):
    zone = ZoneInfo(zone)
    buckets = cut(start, start + hours * HOUR, zone=zone, now=start)
    for bucket in buckets.items[1:]:
        moment = datetime.fromtimestamp(bucket.start / 1000, zone)
        before = datetime.fromtimestamp(bucket.start / 1000 - 1, zone)
        jumped = moment.utcoffset() != before.utcoffset()
        assert jumped or moment.minute in (0, 30)
        if buckets.step.milliseconds >= DAY:
            assert jumped or (moment.hour, moment.minute) == (0, 0)


def test_the_repeated_hour_is_two_buckets_of_an_hour():
    start, end = local("2026-10-24T00:00", BERLIN), local("2026-10-27T00:00", BERLIN)
    buckets = cut(start, end, zone=BERLIN, now=end)
    assert buckets.step.name == "1 h"
    labels = [buckets.label(bucket) for bucket in buckets.items]
    assert len(labels) == 24 + 25 + 24
    assert labels.count("25 Oct 2026 02:00 CEST") == 1
    assert labels.count("25 Oct 2026 02:00 CET") == 1
    assert len(set(labels)) == len(labels)
    assert {bucket.end - bucket.start for bucket in buckets.items} == {HOUR}


def test_the_skipped_hour_is_no_bucket():
    start, end = local("2026-03-28T00:00", BERLIN), local("2026-03-31T00:00", BERLIN)
    buckets = cut(start, end, zone=BERLIN, now=end)
    labels = [buckets.label(bucket) for bucket in buckets.items]
    assert len(labels) == 24 + 23 + 24
    assert not any("29 Mar 2026 02:" in label for label in labels)
    assert {bucket.end - bucket.start for bucket in buckets.items} == {HOUR}


def test_a_day_of_25_hours_is_one_day():
    start, end = local("2026-10-01T00:00", BERLIN), local("2026-12-01T00:00", BERLIN)
    buckets = cut(start, end, zone=BERLIN, now=end, limit=70)
    lengths = {buckets.label(b): (b.end - b.start) // HOUR for b in buckets.items}
    assert lengths["Sun 25 Oct 2026"] == 25
    assert lengths["Sat 24 Oct 2026"] == 24
    assert len(buckets.items) == 31 + 30


def test_half_hour_rows_over_a_25_hour_day_fill_every_bucket_evenly():
    start, end = local("2026-10-25T00:00", BERLIN), local("2026-10-26T00:00", BERLIN)
    buckets = cut(start, end, zone=BERLIN, now=end, limit=30)
    counts = [0] * len(buckets.items)
    for instant in range(start, end, HOUR // 2):
        counts[buckets.index(instant)] += 1
    assert counts == [2] * 25


def test_an_offset_of_45_minutes_still_gives_round_local_hours():
    zone = ZoneInfo("Asia/Kathmandu")
    start = local("2026-11-01T00:00", zone)
    buckets = cut(start, start + 3 * DAY, zone=zone, now=start + 3 * DAY)
    assert "1 Nov 2026 05:00 +0545" in [buckets.label(bucket) for bucket in buckets.items]


def test_two_local_days_are_two_days_whatever_the_offset():
    zone = ZoneInfo("Africa/Casablanca")
    start, end = local("2026-03-22T00:00", zone), local("2026-03-24T00:00", zone)
    buckets = cut(start, end, zone=zone, now=end, limit=3)
    assert len(buckets.items) == 2


def test_an_event_is_on_the_viewers_day():
    zone = ZoneInfo("America/Los_Angeles")
    start, end = local("2026-10-24T00:00", zone), local("2026-10-27T00:00", zone)
    buckets = cut(start, end, zone=zone, now=end, limit=4)
    place = buckets.index(at("2026-10-25T02:08:00"))
    assert buckets.label(buckets.items[place]) == "Sat 24 Oct 2026"


def test_the_bucket_that_is_still_filling_is_not_complete():
    now = at("2026-11-30T12:07:00")
    buckets = cut(now - 6 * HOUR, now, zone=ZoneInfo("UTC"), now=now)
    assert buckets.step.name == "5 min"
    assert [bucket.complete for bucket in buckets.items[-3:]] == [True, True, False]


def test_the_bucket_that_the_ranges_beginning_cuts_is_not_complete():
    start = at("2026-11-30T06:07:00")
    buckets = cut(start, start + 6 * HOUR, zone=ZoneInfo("UTC"), now=start + DAY)
    assert [bucket.complete for bucket in buckets.items[:3]] == [False, True, True]


def test_a_bucket_in_the_future_is_not_complete():
    start = at("2026-11-30T00:00:00")
    buckets = cut(start, start + DAY, zone=ZoneInfo("UTC"), now=start + 12 * HOUR)
    complete = [bucket.complete for bucket in buckets.items]
    assert complete == [True] * 48 + [False] * 48


@pytest.mark.parametrize(
    ("length", "name"),
    [
        (15 * 60_000, "10 s"),
        (HOUR, "1 min"),
        (6 * HOUR, "5 min"),
        (DAY, "15 min"),
        (7 * DAY, "2 h"),
        (30 * DAY, "12 h"),
        (90 * DAY, "1 day"),
        (366 * DAY, "1 week"),
        (20 * 366 * DAY, "3 months"),
    ],
)
def test_usual_ranges_have_usual_steps(length, name):
    assert choose_step(length).name == name


def test_steps_ascend():
    lengths = [step.milliseconds for step in STEPS]
    assert lengths == sorted(set(lengths))


def test_an_empty_range_is_one_empty_bucket():
    buckets = cut(1_000, 1_000, zone=ZoneInfo("UTC"), now=5_000)
    assert [(b.start, b.end, b.complete) for b in buckets.items] == [(1_000, 1_000, False)]
    assert buckets.index(1_000) is None


def test_an_instant_outside_the_range_is_in_no_bucket():
    buckets = cut(0, DAY, zone=ZoneInfo("UTC"), now=DAY)
    assert buckets.index(-1) is None
    assert buckets.index(DAY) is None
    assert buckets.index(0) == 0


@pytest.mark.parametrize("zone", ZONES)
def test_the_ends_of_time_do_not_break_it(zone):
    start, end = at("0001-01-01"), at("9999-12-31")
    buckets = cut(start, end, zone=ZoneInfo(zone), now=0)
    assert buckets.items[0].start == start
    assert buckets.items[-1].end == end
    assert len(ticks(buckets)[0]) > 1


def test_ticks_say_the_date_wherever_it_is_new():
    start, end = local("2026-10-24T00:00", BERLIN), local("2026-10-26T00:00", BERLIN)
    instants_, labels = ticks(cut(start, end, zone=BERLIN, now=end))
    assert labels == [
        "00:00<br>24 Oct", "12:00", "00:00<br>25 Oct", "12:00<br>CET"
    ]  # fmt: skip
    assert instants_[1] == local("2026-10-24T12:00", BERLIN)


@given(start=instants, length=st.integers(60_000, 3 * 366 * DAY), zone=st.sampled_from(ZONES))
def test_ticks_are_few_and_inside_the_range(start, length, zone):
    buckets = cut(start, start + length, zone=ZoneInfo(zone), now=start)
    values, labels = ticks(buckets)
    assert len(values) == len(labels) <= 12
    assert all(start <= value < start + length for value in values)
