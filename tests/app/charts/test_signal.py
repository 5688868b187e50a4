from dataclasses import replace
from zoneinfo import ZoneInfo

import plotly.graph_objects as go
import pytest

from app.charts.signal import (
    MAX_POINTS,
    MAX_STRETCHES,
    Group,
    Picture,
    Point,
    Stretch,
    amount,
    signal,
    thin,
)
from tests.support.charts import MINUTE, NOW

START = NOW - 60 * MINUTE


def point(minute, value, bound=None, lack=None):
    bound = value if bound is None else bound
    return Point(START + minute * MINUTE, value, bound, 3, 10, 10, lack)


FEW = point(2, 0.9, 0.2, "too few turns")
POINTS = [point(0, 0.1, 0.05), point(1, 0.5, 0.3), FEW, point(3, None, None, "no rows")]
PICTURE = Picture(
    title="Mismatch rate",
    unit="ratio",
    rises=True,
    part="prefix mismatches",
    whole="eligible turns",
    threshold=0.2,
    recover=0.1,
    proven=True,
    start=START,
    end=NOW,
    zone=ZoneInfo("UTC"),
    groups=[Group("", POINTS, [Stretch(START + MINUTE, START + 2 * MINUTE)])],
    sentence="Would have fired once.",
)


def by_role(found):
    return {trace["meta"]["role"]: trace for trace in found.data}


def test_a_window_that_cannot_be_judged_is_a_gap():
    found = by_role(signal(PICTURE))
    assert [0.1, 0.5, None, None] == found["value"]["y"]
    assert [0.05, 0.3, None, None] == found["bound"]["y"]
    assert found["value"]["connectgaps"] is False


def test_both_thresholds_are_lines_over_the_whole_time():
    found = by_role(signal(PICTURE))
    ends = ["2026-11-30 11:00:00", "2026-11-30 12:00:00"]
    assert (ends, [0.2, 0.2]) == (found["threshold"]["x"], found["threshold"]["y"])
    assert (ends, [0.1, 0.1]) == (found["recover"]["x"], found["recover"]["y"])
    assert "recover" not in by_role(signal(replace(PICTURE, recover=0.2)))


def test_a_bound_that_is_the_value_is_not_drawn_twice():
    assert "bound" not in by_role(signal(replace(PICTURE, proven=False)))


def test_what_fired_is_marked_and_lasts_to_the_end_while_it_fires():
    fired = [Stretch(START + MINUTE, START + 2 * MINUTE), Stretch(NOW - MINUTE, None)]
    shapes = signal(replace(PICTURE, groups=[Group("", POINTS, fired)])).layout["shapes"]
    assert [
        ("fired", "2026-11-30 11:01:00", "2026-11-30 11:02:00"),
        ("fired", "2026-11-30 11:59:00", "2026-11-30 12:00:00"),
    ] == [(shape["name"], shape["x0"], shape["x1"]) for shape in shapes]


def test_the_table_says_why_a_window_was_not_judged():
    table = signal(PICTURE).table
    keys = ["at", "value", "bound", "part", "whole", "turns", "lack"]
    assert keys == [column.key for column in table.columns]
    assert ["2026-11-30T11:02:00.000Z", 0.9, 0.2, 3, 10, 10, "too few turns"] == table.rows[2]
    assert {len(keys)} == {len(row) for row in table.rows}


@pytest.mark.parametrize("unit", ["ms", "tokens"])
def test_what_is_no_ratio_has_no_part_and_whole(unit: str):
    found = signal(replace(PICTURE, unit=unit, proven=False))
    assert ["at", "value", "turns", "lack"] == [column.key for column in found.table.columns]
    assert {4} == {len(row) for row in found.table.rows}
    assert ",d" == found.layout["yaxis"]["tickformat"]


def test_groups_are_lines_of_their_own_and_those_that_fired_come_first():
    calm = [Group(f"g{n}", POINTS, []) for n in range(9)]
    found = signal(replace(PICTURE, groups=[*calm, Group("bad", POINTS, [Stretch(START, None)])]))
    values = [trace for trace in found.data if trace["meta"]["role"] == "value"]
    assert ["bad", *(f"g{n}" for n in range(7))] == [trace["name"] for trace in values]
    assert "bound" not in by_role(found)
    assert "Would have fired once. 2 more groups are not drawn." == found.summary
    assert "group" == found.table.columns[1].key
    assert {8} == {len(row) for row in found.table.rows}


def test_a_group_whose_name_is_markup_is_drawn_as_text():
    name = 'model=<a href="https://evil.example">%{y}</a> & more'
    found = signal(replace(PICTURE, groups=[Group(name, POINTS, [])]))
    drawn = by_role(found)["value"]
    written = 'model=&lt;a href="https://evil.example"&gt;%{y}&lt;/a&gt; &amp; more'
    assert written == drawn["name"]
    assert drawn["hovertemplate"].endswith("<extra>%{fullData.name}</extra>")
    assert "evil" not in drawn["hovertemplate"]
    assert name == found.table.rows[0][1]


def test_a_long_name_does_not_push_the_chart_away():
    found = signal(replace(PICTURE, groups=[Group("m" * 500, POINTS, [])]))
    assert "m" * 59 + "…" == by_role(found)["value"]["name"]
    assert "m" * 500 == found.table.rows[0][1]


@pytest.mark.parametrize(("rises", "worst"), [(True, 0.9), (False, 0.1)])
def test_of_many_points_the_worst_that_was_judged_stands_for_its_neighbours(rises, worst):
    points = [point(0, 0.5), point(1, 0.9), point(2, 0.1), point(3, 1.0, 1.0, "too few")]
    assert [worst] == [each.value for each in thin(points, 1, rises=rises)]
    assert points == thin(points, 4, rises=rises)
    assert [point(3, None, None, "x")] == thin([point(3, None, None, "x")] * 2, 1, rises=rises)


def test_no_figure_grows_without_bound():
    points = [point(n, 0.5) for n in range(MAX_POINTS * 3 + 1)]
    fired = [Stretch(START + n, START + n + 1) for n in range(MAX_STRETCHES + 5)]
    found = signal(replace(PICTURE, groups=[Group("", points, fired)]))
    assert MAX_POINTS >= len(by_role(found)["value"]["y"]) > MAX_POINTS / 2
    assert MAX_STRETCHES == len(found.layout["shapes"])


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([], "There are no turns."),
        ([Group("", [FEW], [])], "No window of this time can be judged."),
    ],
)
def test_nothing_to_judge_is_no_flat_line_at_zero(groups, said):
    found = signal(replace(PICTURE, groups=groups))
    assert found.empty
    assert f"Would have fired once. {said}" == found.summary


def test_amounts_carry_their_unit():
    assert ("20 %", "1,200 ms", "5,000 tokens", "unknown") == (
        amount(0.2, "ratio"),
        amount(1_200, "ms"),
        amount(5_000, "tokens"),
        amount(None, "ms"),
    )


@pytest.mark.parametrize("unit", ["ratio", "ms", "tokens"])
def test_plotly_knows_every_property(unit: str):
    found = signal(replace(PICTURE, unit=unit))
    go.Figure(data=found.data, layout=found.layout)
    assert "color" not in repr(found.data) + repr(found.layout)
