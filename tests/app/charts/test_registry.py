"""What holds for every chart."""

import json

import plotly.graph_objects as go
import pytest

from app.analysis.continuity import Share
from app.charts.registry import CHARTS
from app.charts.source import TokenSums
from tests.support.charts import ListSource, quarter_hours

COLOURS = ("color", "colorway", "bgcolor", "colorscale", "template")


def rich() -> ListSource:
    """Three buckets with everything in them, one of them a gap."""
    return ListSource(
        quarter_hours(4, open_by=5),
        mode_counts=[
            {"ws_incremental": 9, "ws_full": 1, "http_full": 2, "http_incremental": 1, None: 2},
            {},
            {"ws_incremental": 3, "odd": 1},
            {"ws_incremental": 4},
        ],
        mismatch_shares=[Share(0, 90), Share(0, 0), Share(20, 40), Share(1, 80)],
        session_shares=[Share(0, 1), Share(3, 4), Share(9, 9)],
        token_sums=[
            TokenSums(9, 1, 1000, 900, 50),
            TokenSums(0, 0, 0, 0, None),
            TokenSums(0, 4, 0, 0, None),
            TokenSums(4, 0, 400, 0, None),
        ],
        ttft_samples=[
            {"ws_incremental": [100.0, 300.0], None: [9.0]},
            {},
            {"ws_full": [800.0]},
            {},
        ],
        cached_samples={("ws_incremental", "hit"): [100.0, 300.0], (None, "unknown"): [9.0] * 30},
    )


def keys_of(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


@pytest.fixture(params=CHARTS.values(), ids=CHARTS)
def entry(request):
    return request.param


def test_plotly_knows_every_property(entry):
    chart = entry.build(rich())
    assert chart.data
    go.Figure(data=chart.data, layout=chart.layout)


def test_no_chart_carries_a_colour_or_a_template(entry):
    chart = entry.build(rich())
    assert not set(COLOURS) & set(keys_of([chart.data, chart.layout]))


def test_every_trace_has_a_role_and_every_shape_a_name(entry):
    chart = entry.build(rich())
    assert all(trace["meta"]["role"] for trace in chart.data)
    assert all(
        shape["name"] in ("incomplete", "average") for shape in chart.layout.get("shapes", [])
    )


def test_the_table_has_a_cell_for_every_column(entry):
    table = entry.build(rich()).table
    assert table.rows
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert len({column.key for column in table.columns}) == len(table.columns)
    units = {"time", "count", "ratio", "tokens", "ms", "text", "flag"}
    assert {column.unit for column in table.columns} <= units


def test_a_chart_of_nothing_draws_nothing_and_says_so(entry):
    chart = entry.build(ListSource(quarter_hours(3)))
    assert chart.empty
    assert chart.data == []
    assert chart.table.rows == []
    assert chart.summary.startswith("No ")
    go.Figure(data=chart.data, layout=chart.layout)


def test_the_summary_is_one_sentence(entry):
    summary = entry.build(rich()).summary
    assert summary.endswith(".")
    assert "\n" not in summary


def test_the_json_is_plain_and_small(entry):
    buckets = quarter_hours(100)
    modes = ("ws_incremental", "http_incremental", "ws_full", "http_full", None)
    source = ListSource(
        buckets,
        mode_counts=[dict.fromkeys(modes, 123_456)] * 100,
        mismatch_shares=[Share(1234, 123_456)] * 100,
        session_shares=[Share(1, 3)] * 10_000,
        token_sums=[TokenSums(99_999, 9, 10**12, 10**11, 10**10)] * 100,
        ttft_samples=[{mode: [1234.5678] * 3 for mode in modes}] * 100,
        cached_samples={(mode, "hit"): [1234.5678] * 3 for mode in modes},
    )
    chart = entry.build(source)
    assert len(json.dumps({"slug": entry.slug} | chart.as_dict(), allow_nan=False)) < 200_000
    assert all(len(trace["x"]) <= 2_000 for trace in chart.data)


def test_slugs_are_their_keys_and_in_page_order():
    assert list(CHARTS) == [
        "modes", "incremental-rate", "sessions-by-residency", "mismatch-rate", "tokens", "ttft",
        "ttft-by-cached-share", "ttft-over-time",
    ]  # fmt: skip
    assert all(slug == entry.slug for slug, entry in CHARTS.items())
