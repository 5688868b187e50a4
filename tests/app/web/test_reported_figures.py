"""Faults that others have reported of dashboards: sums, rates and days (docs/field-reports.md)."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import count

import pytest

from app.ledger import imports, taking
from app.ledger.imports import Counts
from app.ledger.rows import to_ms
from tests.support.agreement import column, csv_rows, sums, total
from tests.support.rows import make_row, unknown_usage
from tests.support.site import open_site

_examples = count()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    opened = open_site(tmp_path_factory.mktemp("ledger"))
    yield opened
    opened.close()


@pytest.fixture
def source():
    """Marks the rows of one test: the ledger is that of all."""
    return f"import:test-{next(_examples)}"


def at(text):
    return to_ms(datetime.fromisoformat(text).timestamp())


def told(site, **view):
    """Turns of a view by the card, the table, the chart and the file."""
    found = site.get("/api/requests", limit=500, **view)
    return (
        site.get("/api/summary", **view)["turns"]["total"],
        len(found["rows"]),
        found["count"],
        total(column(site.get("/api/charts/modes", **view), "ws_incremental")),
        len(csv_rows(site, view)),
    )


def test_a_local_day_has_exactly_its_rows_and_today_those_until_now(site, source):
    zone = {"tz": "America/Phoenix", "source": source}  # seven hours behind UTC
    times = ("2026-11-03T16:59", "2026-11-03T17:01", "2026-11-03T23:59", "2026-11-04T00:01")
    site.write(make_row(started_at=at(f"{time}-07:00"), source=source) for time in times)
    site.clock.set_now(at("2026-11-03T21:30-07:00") / 1_000)
    assert (3,) * 5 == told(site, **zone, **{"from": "2026-11-03", "to": "2026-11-04"})
    assert (2,) * 5 == told(site, **zone, **{"from": "2026-11-03", "to": "now"})


def test_todays_rows_are_in_every_range_that_is_offered(site, source):
    site.clock.set_now(at("2026-11-05T09:00Z") / 1_000)
    site.write([make_row(started_at=at("2026-11-05T08:59:30Z"), source=source)])
    offered = re.findall(r'value="(now-\d+[mhd])"', site.client.get("/").text)
    assert {"now-15m", "now-24h", "now-7d", "now-30d"} <= set(offered)
    for first in offered:
        assert (1,) * 5 == told(site, source=source, **{"from": first, "to": "now"})


def test_an_event_is_on_the_viewers_day_in_table_chart_filter_and_file(site, source):
    site.write([make_row(started_at=at("2026-11-25T02:08Z"), source=source)])
    zone = {"tz": "America/Los_Angeles", "source": source}  # eight hours behind UTC
    assert (1,) * 5 == told(site, **zone, **{"from": "2026-11-24", "to": "2026-11-25"})
    assert (0,) * 5 == told(site, **zone, **{"from": "2026-11-25", "to": "2026-11-26"})
    view = zone | {"from": "2026-11-10", "to": "2027-02-09"}
    chart = site.get("/api/charts/modes", **view)
    (place,) = (n for n, turns in enumerate(column(chart, "ws_incremental")) if turns)
    assert "2026-11-24T08:00:00.000Z" == column(chart, "from")[place], "midnight there"
    (row,) = csv_rows(site, view)
    assert "2026-11-25T02:08:00.000Z" == row["started_at"], "files are in UTC"


def test_another_zone_changes_every_surface_at_once(site, source):
    times = ("2026-10-23T22:30Z", "2026-10-24T12:00Z", "2026-10-24T23:30Z", "2026-10-24T23:45Z")
    site.write(make_row(started_at=at(time), source=source) for time in times)
    view = {"source": source, "from": "2026-10-24", "to": "2026-10-25"}
    for zone, turns in (("UTC", 3), ("Europe/Berlin", 2), ("Asia/Kathmandu", 2), ("UTC", 3)):
        assert (turns,) * 5 == told(site, **view, tz=zone), zone
    firsts = {
        zone: site.get("/api/requests", **view, tz=zone)["rows"][-1]["started_at"]
        for zone in ("UTC", "Europe/Berlin")
    }
    assert firsts == {
        "UTC": "2026-10-24T12:00:00.000Z",
        "Europe/Berlin": "2026-10-23T22:30:00.000Z",
    }


def test_a_share_of_cached_tokens_is_of_an_input_that_holds_them(site, source):
    row = make_row(
        started_at=at("2026-10-02T00:00Z"), source=source, input_tokens=75_300, cached_tokens=74_000
    )
    site.write([row])
    view = {"source": source, "from": "2026-10-02", "to": "2026-10-03"}
    assert 74_000 / 75_300 == site.get("/api/summary", **view)["tokens"]["cached_ratio"]
    assert [74_000 / 75_300] == [
        share
        for share in column(site.get("/api/charts/tokens", **view), "cached_ratio")
        if share is not None
    ]


def test_the_cached_share_is_of_tokens_and_the_parts_add_up_to_the_total(site, source):
    day = at("2026-10-04T12:00Z")
    site.write([
        make_row(started_at=day, source=source, model="m", input_tokens=10, cached_tokens=0),
        make_row(started_at=day, source=source, model="n", input_tokens=100_000, cached_tokens=95_000),
        unknown_usage(started_at=day, source=source, model="m"),
        make_row(started_at=day, source=source, model="m", status="error", input_tokens=7, cached_tokens=7),
    ])  # fmt: skip
    view = {"source": source, "from": "2026-10-04", "to": "2026-10-05"}
    summary = site.get("/api/summary", **view)
    whole = summary["tokens"]
    assert (2, 1, 95_000 / 100_010) == tuple(
        whole[name] for name in ("rows_with_usage", "rows_without_usage", "cached_ratio")
    )
    hits = {each["wire"]: each for each in summary["cache_by_wire"]}["incremental"]
    assert {"hit": 1, "partial": 0, "miss": 1, "unknown": 1, "wire": "incremental"} == hits
    assert whole["input"] == whole["cached"] + whole["non_cached"] == 100_010
    models = [site.get("/api/summary", **view, model=name)["tokens"] for name in ("m", "n")]
    chart = site.get("/api/charts/tokens", **view)
    drawn = sum(total(trace["y"]) for trace in chart["figure"]["data"])
    assert whole["input"] == sum(each["input"] for each in models) == drawn
    assert whole["input"] == sum(sums(csv_rows(site, view))["tokens"][3:])


def test_a_turn_of_several_attempts_is_one_request_and_a_client_that_left_no_error(site, source):
    day = at("2026-10-06T12:00Z")
    given = [{}] * 10 + [{"status": "client_closed"}] * 5 + [{"status": "error"}, {"attempts": 2}]
    site.write(make_row(started_at=day, source=source, **more) for more in given)
    view = {"source": source, "from": "2026-10-06", "to": "2026-10-07"}
    turns = site.get("/api/summary", **view)["turns"]
    shown = ("total", "errors", "client_closed", "error_rate")
    assert (17, 1, 5, 1 / 12) == tuple(turns[name] for name in shown)
    assert 17 == site.get("/api/requests", **view)["count"] == len(csv_rows(site, view))


def test_the_card_and_the_table_hold_what_an_import_has_brought_so_far(site, source):
    day = at("2026-10-08T12:00Z")
    imports.begin(site.engine, source, day, [])
    view = {"source": source, "from": "2026-10-08", "to": "2026-10-09"}
    counts = Counts()
    for part in range(5):
        rows = [make_row(started_at=day + part, source=source) for _ in range(10)]
        (counts,) = taking.take(site.engine, source, [rows], counts)
        assert (10 * (part + 1),) * 5 == told(site, **view)
