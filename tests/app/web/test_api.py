import itertools
from collections import Counter
from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.analysis.explain import explain
from app.charts.registry import CHARTS
from app.ledger.filters import PARAMETERS
from app.ledger.rows import COLUMNS, iso
from app.web.shown import WHY
from tests.support.random_rows import new_source, rows
from tests.support.rows import START_MS, make_row, unknown_usage

HOUR = 3_600_000
BERLIN = ZoneInfo("Europe/Berlin")
SUCCEEDED = ("completed", "incomplete")
INCREMENTAL = ("ws_incremental", "http_incremental")


def local(text, zone=BERLIN):
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


WINDOWS = {
    "usual": (START_MS - 24 * HOUR, START_MS),
    "25 hours": (local("2026-10-25T00:00"), local("2026-10-26T00:00")),
    "23 hours": (local("2026-03-29T00:00"), local("2026-03-30T00:00")),
    "month": (local("2026-10-10T00:00"), local("2026-11-09T00:00")),
}


def generation(row):
    return row.kind == "generation" and row.status in SUCCEEDED


@st.composite
def a_view(draw):
    start, end = WINDOWS[draw(st.sampled_from(sorted(WINDOWS)))]
    source = new_source()
    found = draw(rows(start=start, end=end, source=source))
    zone = draw(st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu"]))
    return found, {"from": iso(start), "to": iso(end), "source": source, "tz": zone}


@settings(max_examples=40, deadline=None)
@given(view=a_view())
def test_the_summary_is_the_naive_sums_of_the_rows(shared_site, view):
    found, parameters = view
    shared_site.write(found)
    summary = shared_site.get("/api/summary", **parameters)
    counted = [row for row in found if generation(row)]
    known = [row for row in counted if row.mode is not None]
    eligible = [row for row in known if row.eligible]
    mismatched = [row for row in eligible if row.reason == "prefix_mismatch"]
    assert summary["turns"]["total"] == len(found)
    assert summary["turns"]["generation"] == len(counted)
    assert summary["turns"]["by_kind"] == Counter(row.kind for row in found)
    assert summary["turns"]["by_status"] == Counter(row.status for row in found)
    assert summary["turns"]["sessions"] == len({row.session_key for row in found})
    assert {entry["mode"]: entry["turns"] for entry in summary["modes"]} == Counter(
        row.mode for row in counted
    )
    assert {entry["reason"]: entry["turns"] for entry in summary["reasons"]} == Counter(
        row.reason for row in counted
    )
    continuation = summary["continuation"]
    incremental = sum(row.mode in INCREMENTAL for row in known)
    assert continuation["known"] == len(known)
    assert continuation["incremental"] == incremental
    assert continuation["incremental_rate"] == (incremental / len(known) if known else None)
    assert continuation["eligible"] == len(eligible)
    assert continuation["mismatches"] == len(mismatched)
    assert continuation["mismatch_rate"] == (len(mismatched) / len(eligible) if eligible else None)
    assert sum(
        sum(v for k, v in wire.items() if k != "wire") for wire in summary["cache_by_wire"]
    ) == len(counted)


@settings(max_examples=40, deadline=None)
@given(view=a_view())
def test_token_sums_are_over_the_rows_whose_usage_is_known(shared_site, view):
    found, parameters = view
    shared_site.write(found)
    tokens = shared_site.get("/api/summary", **parameters)["tokens"]
    counted = [row for row in found if generation(row)]
    known = [r for r in counted if r.input_tokens is not None and r.cached_tokens is not None]
    assert tokens["rows_with_usage"] == len(known)
    assert tokens["rows_without_usage"] == len(counted) - len(known)
    if not known:
        assert tokens["input"] is tokens["cached"] is tokens["non_cached"] is None
        assert tokens["cached_ratio"] is None
        return
    total = sum(row.input_tokens for row in known)
    cached = sum(row.cached_tokens for row in known)
    written = [r.cache_write_tokens for r in known if r.cache_write_tokens is not None]
    assert tokens["input"] == total
    assert tokens["cached"] == cached
    assert tokens["cached"] + tokens["non_cached"] == tokens["input"]
    assert tokens["cached_ratio"] == (cached / total if total else None)
    assert tokens["cache_write"] == (sum(written) if written else None)
    if written:
        assert tokens["uncached"] == total - cached - sum(written)


@settings(max_examples=40, deadline=None)
@given(view=a_view())
def test_every_chart_sums_to_the_rows_also_when_clocks_change(shared_site, view):
    found, parameters = view
    shared_site.write(found)
    counted = [row for row in found if generation(row)]

    def table(slug):
        shown = shared_site.get(f"/api/charts/{slug}", **parameters)["table"]
        names = [column["key"] for column in shown["columns"]]
        return [dict(zip(names, row, strict=True)) for row in shown["rows"]]

    modes = Counter()
    for entry in table("modes"):
        for key, value in entry.items():
            if key not in ("from", "to", "complete"):
                modes[key] += value or 0
    assert +modes == Counter(row.mode or "unknown" for row in counted)

    mismatch = table("mismatch-rate")
    eligible = [row for row in counted if row.mode is not None and row.eligible]
    assert sum(entry["eligible"] for entry in mismatch) == len(eligible)
    assert sum(entry["mismatches"] for entry in mismatch) == sum(
        row.reason == "prefix_mismatch" for row in eligible
    )

    tokens = table("tokens")
    known = [r for r in counted if r.input_tokens is not None and r.cached_tokens is not None]
    assert sum(entry["input"] or 0 for entry in tokens) == sum(row.input_tokens for row in known)
    assert sum(entry["cached"] or 0 for entry in tokens) == sum(row.cached_tokens for row in known)

    sessions = {row.session_key for row in counted if row.mode is not None}
    assert sum(entry["sessions"] for entry in table("sessions-by-residency")) == len(sessions)

    samples = sum(row.ttft_ms is not None for row in counted)
    assert sum(entry["samples"] for entry in table("ttft")) == samples
    assert sum(entry["samples"] for entry in table("ttft-over-time")) == samples


@settings(max_examples=30, deadline=None)
@given(view=a_view(), limit=st.integers(1, 9))
def test_the_pages_together_are_the_view_newest_first(shared_site, view, limit):
    found, parameters = view
    shared_site.write(found)
    seen, cursor = [], {}
    for _ in range(40):
        page = shared_site.get("/api/requests", limit=limit, **parameters, **cursor)
        assert page["count"] == len(found)
        assert len(page["rows"]) <= limit
        seen += page["rows"]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert sorted(row["turn_id"] for row in seen) == sorted(row.turn_id for row in found)
    times = [row["started_at"] for row in seen]
    assert times == sorted(times, reverse=True)


def test_ttft_is_by_nearest_rank(site):
    site.write(make_row(started_at=START_MS - n, ttft_ms=float(n)) for n in range(1, 21))
    (entry,) = site.get("/api/summary")["ttft"]
    assert ("ws_incremental", 20) == (entry.pop("mode"), entry.pop("samples"))
    assert entry == pytest.approx({"median_ms": 10, "p95_ms": 19, "p99_ms": 20}, rel=0.01)


def test_a_row_has_every_column_in_order_and_its_sentence(site):
    row = make_row(
        started_at=START_MS - 5_000,
        changed_fields="tools,model",
        evidence='{"index":3}',
        store=False,
        mode="ws_full",
        reason="non_input_fields_changed",
    )
    site.write([row])
    shown = site.get("/api/requests/" + row.turn_id)["row"]
    assert tuple(shown) == (*COLUMNS, *WHY)
    assert shown["started_at"] == "2027-01-15T07:59:55.000Z"
    assert shown["changed_fields"] == ["tools", "model"]
    assert shown["evidence"] == {"index": 3}
    assert shown["store"] is False
    assert shown["cache_write_tokens"] is None
    assert shown["why"] == explain(row).sentence
    assert shown["why_kind"] == "break"
    assert site.get("/api/requests")["rows"] == [shown]


@pytest.mark.parametrize("turn_id", ["requests.csv-like", "a/b", "ä", "x y"])
def test_a_row_is_found_by_any_id(site, turn_id):
    site.write([make_row(turn_id=turn_id, started_at=START_MS - 1)])
    assert site.get(f"/api/requests/{turn_id}")["row"]["turn_id"] == turn_id


def test_names_with_markup_come_out_as_they_went_in(site):
    name = "<img src=x onerror=alert(1)>"
    site.write([make_row(model=name, session="'\");alert(1)", started_at=START_MS - 1)])
    (row,) = site.get("/api/requests")["rows"]
    assert (row["model"], row["session"]) == (name, "'\");alert(1)")
    answer = site.client.get("/api/requests")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_empty_ledger_is_told_from_an_empty_view(site):
    empty = site.get("/api/summary")
    assert empty["ledger"] == {"empty": True, "rows_from": None}
    assert empty["continuation"]["incremental_rate"] is None
    assert empty["tokens"]["input"] is None
    site.write([make_row(started_at=START_MS - 48 * HOUR)])
    summary = site.get("/api/summary")
    assert summary["ledger"] == {"empty": False, "rows_from": None}
    assert summary["turns"]["total"] == 0


def test_unknown_usage_is_beside_the_sums_and_not_a_zero(site):
    site.write([unknown_usage(started_at=START_MS - 1), make_row(started_at=START_MS - 2)])
    tokens = site.get("/api/summary")["tokens"]
    assert (tokens["rows_with_usage"], tokens["rows_without_usage"]) == (1, 1)
    assert tokens["cached_ratio"] == 0.9


def test_turns_without_a_price_are_beside_the_cost_and_not_a_zero(site):
    def cost() -> dict:
        found = site.get("/api/summary")["cost"]
        assert found.pop("price_list").startswith("genai-prices ")
        return found

    site.write([make_row(started_at=START_MS - 1)])
    assert cost() == {"cost_usd": None, "turns": 0, "turns_without_price": 1}
    prices = [Decimal("0.1"), Decimal("0.020000001")]
    site.write([make_row(started_at=START_MS - 2, cost_usd=prices[0])])
    site.write([make_row(started_at=START_MS - 3, kind="compaction", cost_usd=prices[1])])
    site.write([make_row(started_at=START_MS - 4, status="failed")])  # may have cost nothing
    assert cost() == {"cost_usd": "0.120000001", "turns": 2, "turns_without_price": 1}


def test_cancelled_turns_are_no_errors(site):
    statuses = ["completed"] * 11 + ["client_closed"] * 5 + ["error"]
    site.write(
        make_row(started_at=START_MS - n - 1, status=status) for n, status in enumerate(statuses)
    )
    turns = site.get("/api/summary")["turns"]
    assert (turns["errors"], turns["client_closed"], turns["error_rate"]) == (1, 5, 1 / 12)


def test_every_answer_tells_its_time_and_range(site):
    site.clock.advance(0.25)
    paths = ["summary", "requests", "dimensions", *(f"charts/{slug}" for slug in CHARTS)]
    for path in paths:
        answer = site.get(f"/api/{path}", **{"from": "now-6h", "tz": "Europe/Berlin"})
        assert answer["as_of"] == "2027-01-15T08:00:00.250Z"
        assert answer["range"] == {
            "from": "2027-01-15T02:00:00.250Z",
            "to": "2027-01-15T08:00:00.250Z",
            "tz": "Europe/Berlin",
            "by": "started",
        }


def test_today_reaches_up_to_now_in_the_viewers_zone(site):
    zone = ZoneInfo("America/Phoenix")  # UTC-7, never summer time
    site.clock.set_now(local("2027-01-14T21:30", zone) / 1000)
    for text in ("16:59", "17:01", "21:29"):
        site.write([make_row(turn_id=text, started_at=local(f"2027-01-14T{text}", zone))])
    site.write([make_row(turn_id="before", started_at=local("2027-01-13T23:59", zone))])
    today = {"from": "2027-01-14T00:00", "to": "now", "tz": zone.key}
    found = site.get("/api/requests", **today)
    assert [row["turn_id"] for row in found["rows"]] == ["21:29", "17:01", "16:59"]
    table = site.get("/api/charts/modes", **today)["table"]["rows"]
    assert sum(row[2] or 0 for row in table) == 3


def test_dimensions_offer_what_is_in_the_range(site):
    site.write(make_row(started_at=START_MS - n, model="often") for n in (1, 2))
    site.write([make_row(started_at=START_MS - 1, model="once", session="named")])
    site.write([make_row(started_at=START_MS - 90 * HOUR, model="old")])
    found = site.get("/api/dimensions", model="nothing")["dimensions"]
    assert found["model"] == [{"value": "often", "turns": 2}, {"value": "once", "turns": 1}]
    assert {"value": "key-named", "label": "named", "turns": 1} in found["session"]
    assert set(found) >= {
        "upstream",
        "client",
        "mode",
        "reason",
        "status",
        "kind",
        "source",
        "tenant",
    }


def test_the_list_of_charts_is_in_page_order(site):
    charts = site.get("/api/charts")["charts"]
    assert [entry["slug"] for entry in charts] == list(CHARTS)
    assert all(entry["title"] for entry in charts)


def test_table_and_figure_of_a_chart_have_the_same_numbers(site):
    site.write(
        make_row(started_at=START_MS - n * HOUR - 1, mode=mode)
        for n, mode in itertools.product(range(5), ["ws_full", "ws_incremental"])
    )
    chart = site.get("/api/charts/modes")
    for trace in chart["figure"]["data"]:
        keys = [column["key"] for column in chart["table"]["columns"]]
        place = keys.index(trace["meta"]["role"])
        assert trace["y"] == [row[place] for row in chart["table"]["rows"]]


def test_openapi_names_every_filter(site):
    schema = site.get("/openapi.json")
    named = {entry["name"] for entry in schema["paths"]["/api/summary"]["get"]["parameters"]}
    assert named == set(PARAMETERS)
    pages = schema["paths"]["/api/requests"]["get"]["parameters"]
    assert {entry["name"] for entry in pages} == {*PARAMETERS, "limit", "cursor"}


@pytest.mark.parametrize("path", ["summary", "requests", "dimensions", "charts/modes"])
@pytest.mark.parametrize(
    "query", ["from=yesterday", "tz=Mars", "mode=ws", "unheard=1", "from=now&to=now-1h", "by=x"]
)
def test_a_filter_that_cannot_be_read_is_an_error_and_never_ignored(site, path, query):
    answer = site.client.get(f"/api/{path}?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_parameter")


@pytest.mark.parametrize("limit", ["0", "501", "-1", "ten", "1e2"])
def test_a_limit_out_of_range_is_an_error(site, limit):
    answer = site.client.get(f"/api/requests?limit={limit}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_parameter")


@pytest.mark.parametrize("path", ["causes", "resets", "witnesses", "drift"])
def test_of_a_view_of_very_many_rows_the_newest_are_told_and_said_to_be(site, monkeypatch, path):
    lost = {"cache_verdict": "idle", "cache_grade": "proven", "missed_tokens": 9}
    site.write(make_row(started_at=START_MS - 9 + at, model=f"m{at}", **lost) for at in range(5))
    whole = site.get(f"/api/{path}")
    assert (None, iso(START_MS - 86_400_000)) == (whole["newest"], whole["range"]["from"])

    monkeypatch.setattr("app.ledger.newest.MOST", 2)
    told = site.get(f"/api/{path}")
    assert (2, iso(START_MS - 6), whole["range"]["to"]) == (
        told["newest"], told["range"]["from"], told["range"]["to"],
    )  # fmt: skip
    assert told == site.get(f"/api/{path}", **told["range"]) | {"newest": 2}
