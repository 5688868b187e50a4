"""One view, one set of sums: on every page, in every table and chart and in every file, in UTC and
where a clock changes inside the range."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from decimal import Decimal
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.charts.chart import mode_name
from app.charts.registry import CHARTS
from tests.support.agreement import (
    NOW,
    cache_of,
    column,
    csv_rows,
    fill,
    group_of,
    instant,
    jsonl_rows,
    pages,
    sums,
    total,
)

MODES = ("ws_incremental", "http_incremental", "ws_full", "http_full", None)
ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/Los_Angeles", "Africa/Casablanca")
RANGES = (
    ("2026-10-25", "2026-10-26"),
    ("2026-10-24", "2026-10-27"),
    ("2026-03-29", "2026-03-30"),
    ("2026-03-22", "2026-03-24"),
    ("2026-11-01", "2026-11-02"),
    ("2026-10-01", "2026-11-01"),
    ("2026-03-01", "2026-11-02"),
    ("2026-10-25T01:15", "2026-10-25T04:40"),
    ("now-30d", "now"),
    ("now-7d", "now"),
    ("now-13h", "now-3h"),
)
FILTERS = (
    ("model", "gpt-5.6"), ("model", "unknown"), ("upstream", "azure"), ("tenant", "t2"),
    ("client", "codex"), ("session", "c"), ("session", "key-b"), ("root", "a"), ("chain", "ch_1"),
    ("mode", "ws_full"), ("mode", "unknown"), ("reason", "prefix_mismatch"), ("reason", "ok"),
    ("eligible", "true"), ("eligible", "false"), ("status", "completed"), ("status", "client_closed"),
    ("kind", "generation"), ("kind", "warmup"), ("source", "import:codex"),
    ("fingerprint", "9f2c41d07a3be815"), ("changed_fields", "input,text"),
    ("fallback_reason", "closed"), ("cache", "hit"), ("cache", "unknown"), ("verdict", "idle"),
    ("verdict", "hit"), ("verdict", "unknown"), ("verdict", "unjudged"), ("grade", "likely"),
    ("turn_id", "turn-7"), ("break", "9f2c41d07a3be815"), ("break", "unknown"),
    ("break", "reason:connection_lost:closed"), ("break", "verdict:persistent"),
)  # fmt: skip
NOTHING = {"verdict": "unjudged", "grade": "unjudged"}
COLUMNS = {"root": "root_session", "verdict": "cache_verdict", "grade": "cache_grade"}


@pytest.fixture(scope="module")
def rows_of(shared_site):
    """The rows of a view."""
    held = fill(shared_site)
    return lambda view: selected(held, view)


@st.composite
def views(draw):
    """A filter as a query string has it."""
    first, last = draw(st.sampled_from(RANGES))
    view = {"from": first, "to": last, "tz": draw(st.sampled_from(ZONES))}
    if draw(st.booleans()):
        view["by"] = "recorded"
    for name, value in draw(st.lists(st.sampled_from(FILTERS), max_size=2)):
        view.setdefault(name, []).append(draw(st.sampled_from(["", "", "!"])) + value)
    if draw(st.integers(0, 5)) == 0:
        view["q"] = draw(st.sampled_from(["KEY-B", "gpt-5.6-sol", "resp_1"]))
    return view


def edge(text, zone):
    """The instant of an end of a range, told apart from how the service does it."""
    if not text.startswith("now"):
        return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()
    ago = text.removeprefix("now-") if text != "now" else "0h"
    return NOW - int(ago[:-1]) * {"h": 3_600, "d": 86_400}[ago[-1]]


def selected(rows, view):
    """The rows of a view."""
    first, last = (edge(view[name], view["tz"]) for name in ("from", "to"))
    time = "recorded_at" if view.get("by") == "recorded" else "started_at"
    return [
        row for row in rows
        if first <= instant(row[time]) < last
        and all(fits(row, name, view[name]) for name in view if name not in ("from", "to", "tz", "by", "q"))
        and ("q" not in view or any(view["q"].lower() in (row[name] or "").lower() for name in ("session_key", "model", "response_id", "turn_id")))
    ]  # fmt: skip


def fits(row, name, values):
    wanted = [value for value in values if value[0] != "!"]
    left_out = [value[1:] for value in values if value[0] == "!"]
    return (not wanted or any(has(row, name, value) for value in wanted)) and not any(
        has(row, name, value) for value in left_out
    )


def has(row, name, value):
    if name == "session":
        return value in (row["session"], row["session_key"])
    if name == "cache":
        return cache_of(row) == value
    if name == "break":
        return (group_of(row) or "unknown") == value
    own = row[COLUMNS.get(name, name)]
    if name == "changed_fields":
        own = ",".join(own or ()) or None
    if name == "eligible":
        own = str(own).lower()
    return value == own if own is not None else value == NOTHING.get(name, "unknown")


def of_summary(told):
    """The figures of the summary under the names of ``sums``."""
    turns, tokens, found = told["turns"], told["tokens"], told["continuation"]
    rates = ("known", "incremental", "eligible", "breaks", "mismatches")
    return {
        "rows": turns["total"],
        "generation": turns["generation"],
        "kinds": turns["by_kind"],
        "statuses": turns["by_status"],
        "sessions": turns["sessions"],
        "errors": (turns["errors"], turns["client_closed"], turns["error_rate"]),
        "modes": {each["mode"]: each["turns"] for each in told["modes"]},
        "reasons": {each["reason"]: each["turns"] for each in told["reasons"]},
        "continuation": tuple(found[name] for name in rates),
        "tokens": (
            tokens["rows_with_usage"], tokens["rows_without_usage"],
            *(tokens[name] or 0 for name in ("input", "cached", "non_cached")),
        ),
        "output": tokens["output"] or 0,
        "cost": Decimal(told["cost"]["cost_usd"] or 0),
        "cache": {
            (wire["wire"], name): wire[name]
            for wire in told["cache_by_wire"]
            for name in ("hit", "partial", "miss", "unknown")
            if wire[name]
        },
        "ttft": {each["mode"]: each["samples"] for each in told["ttft"]},
    }  # fmt: skip


def of_sessions(listed):
    figures = [each["figures"] for each in listed]
    found = [each["continuation"] for each in figures]
    tokens = [each["tokens"] for each in figures]
    rates = ("known", "incremental", "eligible", "breaks", "mismatches")
    return {
        "rows": total([each["turns"] for each in figures]),
        "generation": total([each["generation"] for each in found]),
        "continuation": tuple(total([each[name] for each in found]) for name in rates),
        "tokens": tuple(
            total([each[name] for each in tokens])
            for name in ("rows_with_usage", "rows_without_usage", "input", "cached", "non_cached")
        ),
        "output": total([each["output"] for each in tokens]),
        "cost": sum((Decimal(each["cost_usd"] or 0) for each in figures), Decimal()),
        "missed": total([each["missed_tokens"] for each in figures]),
    }


def of_charts(site, view):
    """The figures of the charts, from their tables, under the names of ``sums``."""
    told = {slug: site.get(f"/api/charts/{slug}", **view) for slug in CHARTS}
    modes, rates, misses, tokens = (
        told[slug] for slug in ("modes", "incremental-rate", "mismatch-rate", "tokens")
    )
    drawn = Counter()
    for trace in modes["figure"]["data"]:
        drawn[None if trace["meta"]["role"] == "unknown" else trace["meta"]["role"]] += total(
            trace["y"]
        )
    tabled = Counter({mode: total(column(modes, mode or "unknown")) for mode in MODES})
    assert drawn == tabled
    samples = [
        samples_of(told[slug]) for slug in ("ttft", "ttft-over-time", "ttft-by-cached-share")
    ]
    assert samples[0] == samples[1] == samples[2]
    incremental, known = (total(column(rates, name)) for name in ("incremental", "known"))
    mismatches, eligible = (total(column(misses, name)) for name in ("mismatches", "eligible"))
    return {
        "modes": tabled,
        "continuation": (known, incremental, eligible, mismatches),
        "tokens": tuple(
            total(column(tokens, name))
            for name in ("turns", "unknown", "input", "cached", "non_cached")
        ),
        "ttft": samples[0],
        "sessions": total(column(told["sessions-by-residency"], "sessions")),
    }, told


def samples_of(chart):
    names = {mode_name(mode): mode for mode in MODES}
    found = Counter()
    for mode, samples in zip(column(chart, "mode"), column(chart, "samples"), strict=True):
        found[names[mode]] += samples
    return found


def agrees(site, view, rows):
    """Every surface of a view tells the sums of these rows."""
    expected = sums(rows)
    everywhere = {key: value for key, value in expected.items() if key not in ("breaks", "lost")}
    summary = site.get("/api/summary", **view)
    assert everywhere == of_summary(summary)

    page = list(pages(site, "/api/requests", "rows", view, 97))
    assert expected == sums(page) == sums(jsonl_rows(site, view)) == sums(csv_rows(site, view))
    assert [row["turn_id"] for row in page] == [
        row["turn_id"] for row in sorted(rows, key=lambda row: row["started_at"], reverse=True)
    ] or "by" in view
    assert len(rows) == site.get("/api/requests", limit=1, **view)["count"]

    charts, told = of_charts(site, view)
    known, incremental, eligible, _, mismatches = expected["continuation"]
    assert charts == {
        "modes": expected["modes"],
        "continuation": (known, incremental, eligible, mismatches),
        # Where no usage is known nothing is drawn: the sentence says of how many turns.
        "tokens": expected["tokens"] if expected["tokens"][0] else (0,) * 5,
        "ttft": expected["ttft"],
        "sessions": len({row["session_key"] for row in rows if is_known(row)}),
    }
    buckets_agree(told["modes"], summary["range"], rows, view)

    listed = list(pages(site, "/api/sessions", "sessions", view, 3))
    of_list = of_sessions(listed)
    assert expected["breaks"][1] == of_list.pop("missed")
    assert {key: expected[key] for key in of_list} == of_list

    lost = sum(drop["turns"] for step in summary["funnel"] for drop in step["lost"])
    assert len(rows) == lost + summary["funnel"][-1]["turns"]

    breaks = site.get("/api/breaks", limit=500, **view)
    groups = breaks["groups"]
    assert (
        expected["breaks"]
        == (breaks["turns"], breaks["missed_tokens"] or 0)
        == tuple(total([each[name] for each in groups]) for name in ("turns", "missed_tokens"))
    )
    assert breaks["turns_without_price"] == sum(each["turns_without_price"] for each in groups)
    assert breaks["turns"] == sum(sum(each["counts"]) for each in groups)

    causes = site.get("/api/causes", **view)
    whole = causes["total"]
    assert expected["lost"] == (whole["turns"], whole["missed_tokens"] or 0)
    assert whole["turns"] == sum(each["turns"] for each in causes["causes"])
    benign = sum(each["turns"] for each in causes["benign"])
    assert expected["kinds"]["generation"] == whole["turns"] + benign + causes["turns_not_judged"]

    drift, resets = site.get("/api/drift", limit=500, **view), site.get("/api/resets", **view)
    links_agree([
        (whole, whole["turns"]),
        (resets, resets["resets"]),
        *((each, each["turns"]) for each in (*causes["causes"], *causes["benign"])),
        *((each, each["breaks"]) for each in causes["remedies"]),
        *((each, each["changes"]) for each in (*drift["findings"], *drift["kinds"].values())),
        *(({"filters": {"break": [each["id"]]}}, each["turns"]) for each in groups),
    ], rows)  # fmt: skip
    for group in groups:
        behind = view | {"break": [group["id"]]}
        assert group["turns"] == site.get("/api/requests", limit=1, **behind)["count"], group["id"]

    witnesses = site.get("/api/witnesses", **view)
    assert (
        witnesses["turns"]
        == whole["turns"] + benign
        == sum(each["turns"] for each in witnesses["cells"])
    )
    assert (whole["missed_tokens"] or 0) == sum(
        each["missed_tokens"] for each in witnesses["cells"]
    )


def newest_agree(site, view, rows):
    """What is told of the newest rows of a view is what a view of these alone tells."""
    time = "recorded_at" if view.get("by") == "recorded" else "started_at"
    for path in ("causes", "resets", "witnesses", "drift"):
        with patch("app.ledger.newest.MOST", 40):
            told = site.get(f"/api/{path}", **view)
        span = told["range"]
        assert told["newest"] is not None or len(rows) <= 40
        assert told | {"newest": None} == site.get(f"/api/{path}", **view | span)
        inside = [row for row in rows if row[time] >= span["from"]]
        counted = Counter(row["cache_verdict"] for row in inside if row["kind"] == "generation")
        if path == "causes":
            benign = sum(each["turns"] for each in told["benign"])
            assert counted.total() == told["total"]["turns"] + benign + told["turns_not_judged"]
        if path == "witnesses":
            assert counted.total() - counted[None] == told["turns"]


def links_agree(shown, rows):
    """What a number leads to are as many rows of the view as it says."""
    for each, turns in shown:
        wanted = each["filters"]
        if wanted is not None:
            behind = [row for row in rows if all(fits(row, name, wanted[name]) for name in wanted)]
            assert turns == len(behind), each


def is_known(row):
    return (
        row["mode"] is not None
        and row["kind"] == "generation"
        and row["status"] in ("completed", "incomplete")
    )


def buckets_agree(chart, span, rows, view):
    """Buckets follow on each other from one end of the range to the other, and hold their rows."""
    first, last = column(chart, "from"), column(chart, "to")
    if not first:
        return
    assert (span["from"], span["to"]) == (first[0], last[-1])
    assert first[1:] == last[:-1]
    time = "recorded_at" if view.get("by") == "recorded" else "started_at"
    columns = [column(chart, mode or "unknown") for mode in MODES]
    for number, (start, end) in enumerate(zip(first, last, strict=True)):
        own = [row for row in rows if start <= row[time] < end]
        assert sums(own)["generation"] == total([cells[number] for cells in columns if cells])


@settings(max_examples=12)
@given(view=views())
def test_all_surfaces_agree_on_a_view_in_every_zone(shared_site, rows_of, view):
    agrees(shared_site, view, rows_of(view))
    newest_agree(shared_site, view, rows_of(view))
