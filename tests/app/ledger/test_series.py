from bisect import bisect_right
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.ledger import series
from app.ledger.cells import Continuity, TokenTotals
from app.ledger.conditions import cache_class_of
from app.ledger.filters import Filter
from app.ledger.rollups.distribution import Distribution
from app.ledger.rows import to_ms
from app.ledger.writer import write_rows
from tests.support.ledger import everything, filters, rows
from tests.support.rows import START_MS, make_row, unknown_usage

many = settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
HOUR = 3_600_000
DONE = ("completed", "incomplete")
edge_lists = st.lists(
    st.integers(START_MS - HOUR, START_MS + 7 * HOUR)
    | st.integers(-12, 84).map(lambda five: START_MS + five * 300_000),
    min_size=2,
    max_size=12,
).map(sorted)


@many
@given(st.lists(rows, max_size=20), edge_lists, st.sampled_from(["started", "recorded"]))
def test_every_row_is_in_the_bucket_of_its_time(holding, found, edges, by):
    engine = holding(found)
    view = everything(by)
    expected = [Counter() for _ in edges[1:]]
    samples = [{} for _ in edges[1:]]
    for row in found:
        time = row.recorded_at if by == "recorded" else row.started_at
        if row.kind != "generation" or row.status not in DONE or not edges[0] <= time < edges[-1]:
            continue
        place = bisect_right(edges, time) - 1
        expected[place][row.mode] += 1
        if row.ttft_ms is not None:
            samples[place].setdefault(row.mode, []).append(row.ttft_ms)
    assert tuple(dict(counts) for counts in expected) == series.modes(engine, view, edges)
    assert tuple(
        {mode: Distribution(values) for mode, values in bucket.items()} for bucket in samples
    ) == series.ttft(engine, view, edges)
    by_cache = {}
    for row in found:
        if row.kind == "generation" and row.status in DONE and row.ttft_ms is not None:
            by_cache.setdefault((row.mode, cache_class_of(row)), []).append(row.ttft_ms)
    assert {place: Distribution(values) for place, values in by_cache.items()} == (
        series.ttft_by_cache(engine, view)
    )


@many
@given(st.lists(rows, max_size=20), filters(), edge_lists)
def test_sums_over_buckets_are_the_sums_over_the_rows_between_the_edges(
    holding, found, view, edges
):
    engine = holding(found)
    start, end = max(view.start, edges[0]), min(view.end, edges[-1])
    whole = Continuity(), TokenTotals()
    if start < end:
        held = view.window(start, end)
        whole = (
            series.continuity(engine, held, [start, end])[0],
            series.tokens(engine, held, [start, end])[0],
        )
    counted = series.continuity(engine, view, edges)
    summed = series.tokens(engine, view, edges)
    for name in ("generation", "known", "incremental", "eligible", "breaks", "mismatches"):
        assert getattr(whole[0], name) == sum(getattr(part, name) for part in counted)
    for name in ("turns", "unknown", "inconsistent", "input", "cached", "output", "reasoning"):
        assert getattr(whole[1], name) == sum(getattr(part, name) for part in summed)
    assert (whole[1].cache_write or 0) == sum(part.cache_write or 0 for part in summed)


def local_hours(day: str, zone: str) -> list[int]:
    start = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    first = to_ms(start.timestamp())
    last = to_ms((start + timedelta(days=1)).timestamp())
    return list(range(first, last + 1, HOUR))


@pytest.mark.parametrize(
    ("day", "zone", "hours"),
    [
        ("2026-10-25", "Europe/Berlin", 25),
        ("2026-03-29", "Europe/Berlin", 23),
        ("2026-10-25", "Asia/Kathmandu", 24),
    ],
)
def test_a_day_of_another_length_keeps_all_its_rows(
    engine: Engine, day: str, zone: str, hours: int
):
    edges = local_hours(day, zone)
    assert hours == len(edges) - 1
    half_hours = range(edges[0] - HOUR, edges[-1] + HOUR, HOUR // 2)
    write_rows(engine, [make_row(started_at=time) for time in half_hours])
    view = Filter(start=edges[0], end=edges[-1])
    assert ({"ws_incremental": 2},) * hours == series.modes(engine, view, edges)


def test_days_of_23_24_and_25_hours_in_one_range_are_buckets_of_their_own(engine: Engine):
    zone = ZoneInfo("Europe/Berlin")
    edges = [
        to_ms((datetime(2026, 10, 24, tzinfo=zone) + timedelta(days=day)).timestamp())
        for day in range(4)
    ]
    assert [24, 25, 24] == [(right - left) // HOUR for left, right in pairwise(edges)]
    write_rows(engine, [make_row(started_at=t) for t in range(edges[0], edges[-1], HOUR)])
    found = series.continuity(engine, Filter(start=edges[0], end=edges[-1]), edges)
    assert [24, 25, 24] == [bucket.generation for bucket in found]


def test_a_bucket_without_rows_is_empty_and_not_missing(engine: Engine):
    write_rows(engine, [make_row(started_at=START_MS), make_row(started_at=START_MS + 25)])
    edges = [START_MS, START_MS + 10, START_MS + 20, START_MS + 30]
    assert ({"ws_incremental": 1}, {}, {"ws_incremental": 1}) == series.modes(
        engine, everything(), edges
    )


def test_an_empty_bucket_list_of_an_empty_range_has_no_rows(engine: Engine):
    write_rows(engine, [make_row(started_at=START_MS)])
    assert ({},) == series.modes(engine, everything(), [START_MS, START_MS])
    assert ({},) == series.ttft(engine, everything(), [START_MS, START_MS])


@pytest.mark.parametrize("edges", [[], [START_MS], [START_MS + 1, START_MS]])
def test_edges_that_make_no_bucket_are_a_mistake(engine: Engine, edges: list[int]):
    with pytest.raises(ValueError, match="ascending"):
        series.modes(engine, everything(), edges)


def test_sessions_are_counted_each_by_itself(engine: Engine):
    write_rows(
        engine,
        [
            make_row(session="a", started_at=START_MS + 5),
            make_row(session="a", mode="ws_full", reason="prefix_mismatch"),
            make_row(session="a", kind="warmup"),
            unknown_usage(session="b", mode=None),
            make_row(session=None, session_key="unnamed"),
        ],
    )
    first, second, third = series.sessions(engine, everything())
    assert ("key-a", "a", 3, START_MS, START_MS + 5) == (
        first.session_key,
        first.session,
        first.turns,
        first.first_at,
        first.last_at,
    )
    assert (
        Continuity(generation=2, known=2, incremental=1, eligible=2, breaks=1, mismatches=1)
        == first.continuity
    )
    assert 2_000 == first.tokens.input
    assert ("key-b", 1, None, 1) == (
        second.session_key,
        second.continuity.unknown,
        second.continuity.incremental_rate,
        second.tokens.unknown,
    )
    assert ("unnamed", None) == (third.session_key, third.session)


def test_the_sessions_with_most_rows_come_first_and_the_list_may_be_cut(engine: Engine):
    write_rows(
        engine,
        [make_row(session=name) for name in ("a", "b", "b", "c", "c")],
    )
    assert ["b", "c"] == [found.session for found in series.sessions(engine, everything(), limit=2)]


def test_hours_are_those_of_utc_instants_and_not_of_the_machines_zone(engine: Engine, monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    write_rows(engine, [make_row(started_at=to_ms(datetime(2026, 1, 1, tzinfo=UTC).timestamp()))])
    edges = local_hours("2026-01-01", "UTC")
    found = series.modes(engine, Filter(start=edges[0], end=edges[-1]), edges)
    assert {"ws_incremental": 1} == found[0]
