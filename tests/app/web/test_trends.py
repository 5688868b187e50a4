from decimal import Decimal

import pytest

from app.ledger.rows import iso
from tests.support.rows import START_MS, make_row

HOUR = 3_600_000
START, END = START_MS - HOUR, START_MS
VIEW = {"from": iso(START), "to": iso(END)}


def day(at, *, parted, cost, number=100, **changes):
    """``number`` turns from an instant on; the first ``parted`` of them did not match."""
    full = {"mode": "ws_full", "reason": "prefix_mismatch", "cached_tokens": 100}
    return [
        make_row(started_at=at + n, cost_usd=cost, **(full if n < parted else {}) | changes)
        for n in range(number)
    ]


def test_the_main_figures_are_held_against_the_time_before(site):
    site.write(
        [
            *day(START - HOUR, parted=10, cost=Decimal("0.01"), ttft_ms=400.0),
            *day(START, parted=40, cost=Decimal("0.03"), ttft_ms=900.0),
        ]
    )
    previous = site.get("/api/summary", **VIEW)["previous"]
    assert ({"from": iso(START - HOUR), "to": iso(START)}, None) == (
        previous["range"],
        previous["gap"],
    )
    trends = previous["trends"]
    assert {
        "now": 0.4, "before": 0.1, "change": pytest.approx(0.3), "direction": "up", "better": False, "lack": None,
    } == trends["mismatch_rate"]  # fmt: skip
    assert {
        "incremental_rate": ("down", False),
        "mismatch_rate": ("up", False),
        "break_rate": ("up", False),
        "cached_ratio": ("down", False),
        "non_cached": ("up", None),
        "cost_usd": ("up", None),
        "ttft_median_ms": ("up", False),
        "generation": ("level", None),
    } == {name: (one["direction"], one["better"]) for name, one in trends.items()}
    assert (pytest.approx(3.0), pytest.approx(2.0)) == (
        trends["cost_usd"]["now"],
        trends["cost_usd"]["change"],
    )
    grown = previous["growth"]
    assert (1.0, 1.0) == (grown["turns"], grown["input_per_turn"])
    assert grown["non_cached"] == pytest.approx(grown["non_cached_share"])
    assert grown["non_cached"] == pytest.approx(1 + trends["non_cached"]["change"])


def test_a_time_before_that_is_not_whole_has_no_trends_and_few_turns_have_none_either(site):
    site.write([make_row(started_at=START)])
    previous = site.get("/api/summary", **VIEW)["previous"]
    assert ("not_yet", None, None) == (
        previous["gap"],
        previous["trends"],
        previous["growth"],
    )
    site.write([make_row(started_at=START - HOUR)])
    trends = site.get("/api/summary", **VIEW)["previous"]["trends"]
    assert {("few", None)} == {(one["lack"], one["direction"]) for one in trends.values()}
    asked = VIEW | {"to": iso(END + HOUR)}
    assert "open" == site.get("/api/summary", **asked)["previous"]["gap"]


def test_the_funnel_begins_with_all_rows_and_leads_to_them(site):
    site.write(
        [
            *day(START, parted=3, cost=None, number=7),
            make_row(started_at=START, kind="warmup"),
            make_row(started_at=START, status="failed"),
            make_row(started_at=START, reason=None, mode=None),
            make_row(started_at=START, cached_tokens=0),
        ]
    )
    funnel = site.get("/api/summary", **VIEW)["funnel"]
    assert [11, 9, 8, 8, 8, 5, 5, 4] == [step["turns"] for step in funnel]
    for part in (part for step in funnel for part in (step, *step["lost"])):
        assert part["turns"] == site.get("/api/requests", **VIEW | part["filters"])["count"]
