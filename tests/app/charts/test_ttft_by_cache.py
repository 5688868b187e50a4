from pytest import approx  # noqa: PT013

from app.charts.ttft_by_cache import ttft_by_cached_share
from tests.support.charts import ListSource, quarter_hours

SAMPLES = {
    ("ws_incremental", "hit"): [float(n) for n in range(1, 101)],
    ("ws_incremental", "miss"): [900.0],
    (None, "unknown"): [5.0] * 20,
}


def test_each_mode_has_its_bars_in_the_order_of_the_shares():
    chart = ttft_by_cached_share(ListSource(quarter_hours(1), cached_samples=SAMPLES))
    bars = {trace["meta"]["role"]: trace for trace in chart.data}
    assert ["ws_incremental", "unknown"] == list(bars)
    assert ["hit (80 % or more)", "miss (nothing)", "unknown"] == bars["unknown"]["x"]
    median, missed, nothing = bars["ws_incremental"]["y"]
    assert ([approx(50.0, rel=0.02), approx(900.0, rel=0.01)], None) == ([median, missed], nothing)
    assert approx(95.0, rel=0.02) == median + bars["ws_incremental"]["error_y"]["array"][0]
    assert [["hit (80 % or more)", 100], ["miss (nothing)", 1], ["unknown", 20]] == [
        [row[0], row[2]] for row in chart.table.rows
    ]


def test_bars_of_a_few_samples_say_so():
    chart = ttft_by_cached_share(ListSource(quarter_hours(1), cached_samples=SAMPLES))
    assert ["", "few", ""] == chart.data[0]["text"]
    assert [False, True, False] == [row[-1] for row in chart.table.rows]
    assert "1 of 3 bars rest on fewer than 20 samples" in chart.summary
