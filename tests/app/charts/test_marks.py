import plotly.graph_objects as go
import pytest

from app.analysis.continuity import Share
from app.charts.marks import MOST, Mark, marked
from app.charts.modes import modes
from app.charts.residency import sessions_by_residency
from tests.support.charts import MINUTE, NOW, ListSource, quarter_hours


@pytest.fixture
def source():
    return ListSource(
        quarter_hours(8), mode_counts=[{"ws_full": 1}] * 8, session_shares=[Share(1, 2)]
    )


def at(minutes, word="fired", rule="Mismatches"):
    return Mark(NOW - 120 * MINUTE + minutes * MINUTE, word, rule)


def test_a_mark_is_a_line_a_word_and_a_cell_of_the_table(source):
    chart = marked(modes(source), source.buckets, [at(61, "resolved"), at(20)])
    lines = [shape for shape in chart.layout["shapes"] if shape["name"].startswith("alert_")]
    assert ["alert_fired", "alert_resolved"] == [line["name"] for line in lines]
    assert lines[0]["x0"] == lines[0]["x1"] == "2026-11-30 10:20:00"
    assert ["fired", "resolved"] == [word["text"] for word in chart.layout["annotations"]]
    cells = [row[-1] for row in chart.table.rows]
    assert [None, "fired: Mismatches", *[None] * 2, "resolved: Mismatches", *[None] * 3] == cells
    go.Figure(data=chart.data, layout=chart.layout)


def test_marks_of_one_bucket_are_one_and_words_never_cover_each_other(source):
    chart = marked(modes(source), source.buckets, [at(16), at(17, rule="<b>Cost"), at(18), at(31)])
    assert 2 == sum(shape["name"] == "alert_fired" for shape in chart.layout["shapes"])
    assert ["fired ×3", "fired"] == [word["text"] for word in chart.layout["annotations"]]
    assert "fired: Mismatches, &lt;b&gt;Cost" == chart.layout["annotations"][0]["hovertext"]
    near = marked(modes(source), source.buckets, [at(29), at(31)])
    assert ["fired"] == [word["text"] for word in near.layout["annotations"]]


def test_a_chart_without_marks_or_without_time_stays_as_it_is(source):
    drawn, sessions = modes(source), sessions_by_residency(source)
    assert drawn is marked(drawn, source.buckets, [])
    assert drawn is marked(drawn, source.buckets, [at(-1), at(120)])
    assert sessions is marked(sessions, source.buckets, [at(20)])


def test_too_many_marks_are_only_in_the_table():
    source = ListSource(quarter_hours(40), mode_counts=[{"ws_full": 1}] * 40)
    marks = [Mark(bucket.start, "fired", "r") for bucket in source.buckets.items]
    chart = marked(modes(source), source.buckets, marks)
    drawn = sum(shape["name"] == "alert_fired" for shape in chart.layout["shapes"])
    assert MOST == drawn
    assert chart.summary.endswith("The oldest 16 marks of alerts are only in the table.")
    assert all(row[-1] == "fired: r" for row in chart.table.rows)
