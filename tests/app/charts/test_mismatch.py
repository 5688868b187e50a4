from app.analysis.continuity import Share
from app.charts.mismatch import mismatch_rate
from tests.support.charts import ListSource, quarter_hours


def chart(*shares):
    return mismatch_rate(ListSource(quarter_hours(len(shares)), mismatch_shares=shares))


def test_spikes_are_marked_and_nothing_else():
    found = chart(Share(1, 100), Share(0, 0), Share(30, 60), Share(0, 100))
    line, marks = found.data
    assert line["y"] == [0.01, None, 0.5, 0.0]
    assert marks["y"] == [None, None, 0.5, None]
    assert marks["meta"] == {"role": "spike"}
    assert [row[5] for row in found.table.rows] == [False, False, True, False]
    assert found.summary == "31 of 260 eligible turns (11.9 %) did not match; 1 spike."


def test_without_a_spike_there_is_no_second_trace():
    found = chart(Share(1, 100), Share(1, 100))
    assert [trace["meta"]["role"] for trace in found.data] == ["rate"]
    assert found.summary.endswith("no spike.")
    assert found.layout["showlegend"] is False


def test_no_eligible_turn_is_unknown_not_zero():
    found = chart(Share(0, 0))
    assert found.empty
    assert found.summary == "No eligible turns in this view."
