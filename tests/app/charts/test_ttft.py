from pytest import approx  # noqa: PT013

from app.charts.ttft import ttft, ttft_over_time
from tests.support.charts import ListSource, quarter_hours

SAMPLES = [
    {"ws_incremental": [300.0, 100.0, 200.0], "http_full": [900.0]},
    {},
    {"ws_incremental": [400.0], None: [50.0]},
]


def source():
    return ListSource(quarter_hours(3), ttft_samples=SAMPLES)


def test_percentiles_are_of_all_samples_not_of_the_buckets():
    chart = ttft(source())
    median, p95, p99 = chart.data
    assert median["x"] == ["WebSocket, incremental", "HTTP, full", "unknown"]
    assert median["y"] == approx([200.0, 900.0, 50.0], rel=0.01)
    assert p95["y"] == p99["y"] == approx([400.0, 900.0, 50.0], rel=0.01)
    name, samples, *times, few = chart.table.rows[0]
    assert ["WebSocket, incremental", 4, True] == [name, samples, few]
    assert times == approx([200.0, 400.0, 400.0], rel=0.01)


def test_over_time_a_bucket_without_samples_is_a_gap():
    chart = ttft_over_time(source())
    found = {(t["meta"]["role"], t["meta"]["stat"]): t["y"] for t in chart.data}
    wanted = {
        ("ws_incremental", "median"): [200.0, None, 400.0],
        ("ws_incremental", "p95"): [300.0, None, 400.0],
        ("http_full", "median"): [900.0, None, None],
        ("http_full", "p95"): [900.0, None, None],
        ("unknown", "median"): [None, None, 50.0],
        ("unknown", "p95"): [None, None, 50.0],
    }
    assert wanted.keys() == found.keys()
    for line, values in wanted.items():
        assert [None if value is None else approx(value, rel=0.01) for value in values] == found[
            line
        ]
    assert len(chart.table.rows) == 4


def test_median_and_percentile_differ_by_more_than_colour():
    lines = {(t["meta"]["stat"], t["line"]["dash"]) for t in ttft_over_time(source()).data}
    assert lines == {("median", "solid"), ("p95", "dash")}


def test_the_summary_tells_how_many_samples_there_are():
    assert ttft(source()).summary == (
        "WebSocket, incremental: median 200 ms (4 samples); HTTP, full: median 900 ms (1 sample); "
        "unknown: median 50 ms (1 sample)."
    )
