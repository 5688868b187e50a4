import plotly.graph_objects as go

from app.charts import chart
from tests.support.charts import quarter_hours


def test_bars_are_as_wide_as_their_buckets_and_begin_where_they_begin():
    buckets = quarter_hours(4, open_by=5)
    bar = chart.stacked_bar(buckets, [1, None, 0, 2], name="n", role="r", unit="turns")
    assert bar["width"] == [900_000, 900_000, 900_000, 600_000]
    assert bar["x"][0] == "2026-11-30 11:00:00"
    assert bar["y"] == [1, None, 0, 2]
    go.Bar(bar)


def test_a_lines_points_stand_in_the_middle_of_their_buckets():
    buckets = quarter_hours(2)
    assert chart.middles(buckets) == ["2026-11-30 11:37:30", "2026-11-30 11:52:30"]


def test_the_axis_is_in_utc_and_its_labels_in_the_viewers_zone():
    axis = chart.time_axis(quarter_hours(4, zone="Asia/Kathmandu"))
    assert axis["range"] == ["2026-11-30 11:00:00", "2026-11-30 12:00:00"]
    assert axis["ticktext"][0] == "16:45<br>30 Nov"
    assert axis["tickvals"][0] == "2026-11-30 11:00:00"
    go.layout.XAxis(axis)


def test_only_an_open_last_bucket_is_marked():
    assert chart.open_bucket(quarter_hours(3)) == []
    (shape,) = chart.open_bucket(quarter_hours(3, open_by=5))
    assert (shape["name"], shape["x0"], shape["x1"]) == (
        "incomplete", "2026-11-30 11:45:00", "2026-11-30 11:55:00"
    )  # fmt: skip


def test_a_cut_bucket_says_so_when_pointed_at():
    labels = chart.labels(quarter_hours(2, open_by=5))
    assert labels == ["30 Nov 2026 11:30 UTC", "30 Nov 2026 11:45 UTC (not whole)"]


def test_modes_keep_their_order_foreign_words_come_late_and_unknown_last():
    assert chart.modes_in({None, "http_full", "rest_x", "ws_incremental"}) == [
        "ws_incremental", "http_full", "rest_x", None
    ]  # fmt: skip
    assert chart.mode_name("rest_x") == "rest_x"
    assert chart.mode_role("rest_x") == chart.mode_role(None) == "unknown"


def test_percent_is_never_rounded_to_all_or_nothing():
    assert chart.percent(None) == "unknown"
    assert chart.percent(0.0) == "0 %"
    assert chart.percent(1.0) == "100 %"
    assert chart.percent(0.99999) == "99.9 %"
    assert chart.percent(0.00001) == "0.1 %"
    assert chart.percent(0.916) == "91.6 %"


def test_counts_have_the_right_number_and_separators():
    assert chart.count(1, "turn") == "1 turn"
    assert chart.count(1290, "turn") == "1,290 turns"


def test_an_instant_keeps_its_milliseconds():
    assert chart.instant(1_796_040_000_250).endswith(":00.250")
