from app.charts.modes import incremental_rate, modes
from tests.support.charts import ListSource, quarter_hours

COUNTS = [{"ws_incremental": 8, "ws_full": 2, None: 5}, {}, {"http_full": 4}]


def source():
    return ListSource(quarter_hours(3), mode_counts=COUNTS)


def test_a_mode_without_turns_beside_others_is_zero_and_an_empty_bucket_is_a_gap():
    chart = modes(source())
    values = {trace["meta"]["role"]: trace["y"] for trace in chart.data}
    assert values == {
        "ws_incremental": [8, None, 0],
        "ws_full": [2, None, 0],
        "http_full": [0, None, 4],
        "unknown": [5, None, 0],
    }


def test_the_table_holds_the_same_numbers():
    rows = modes(source()).table.rows
    assert rows[0] == [
        "2026-11-30T11:15:00.000Z", "2026-11-30T11:30:00.000Z", 8, 2, 0, 5, True
    ]  # fmt: skip
    assert rows[1][2:] == [None, None, None, None, True]


def test_unknown_modes_are_beside_the_rate_not_in_it():
    assert modes(source()).summary == "19 turns: 57.1 % incremental, 5 of unknown mode."
    chart = incremental_rate(source())
    assert chart.data[0]["y"] == [0.8, None, 0.0]
    assert chart.summary == "57.1 % of 14 turns of known mode were incremental."


def test_http_incremental_counts_as_incremental():
    counts = [{"http_incremental": 1, "http_full": 1}]
    chart = incremental_rate(ListSource(quarter_hours(1), mode_counts=counts))
    assert chart.data[0]["y"] == [0.5]


def test_only_unknown_modes_give_no_rate():
    only = ListSource(quarter_hours(1), mode_counts=[{None: 3}])
    assert modes(only).summary == "3 turns, all of unknown mode."
    assert incremental_rate(only).empty


def test_the_lines_are_broken_at_gaps():
    assert incremental_rate(source()).data[0]["connectgaps"] is False


def test_the_average_is_over_the_turns_not_over_the_buckets():
    (shape,) = incremental_rate(source()).layout["shapes"]
    assert shape["y0"] == shape["y1"] == 8 / 14
