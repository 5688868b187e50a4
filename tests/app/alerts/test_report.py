from zoneinfo import ZoneInfo

import pytest

from app.alerts import report
from app.alerts.backtest import fold
from app.alerts.groups import key_of
from app.alerts.signals import Lack, Measure
from app.charts.signal import Stretch, signal
from tests.support.alerts import MINUTE, make_rule
from tests.support.rows import START_MS

FINE, FAULT = Measure(10, 0, 10, 10), Measure(10, 9, 10, 10)
ZONE = ZoneInfo("UTC")


def backtest(*measures, rule=None, key="{}"):
    rule = rule or make_rule()
    windows = [
        (START_MS + n * MINUTE, {} if measure is None else {key: measure})
        for n, measure in enumerate(measures)
    ]
    return rule, fold(rule, windows)


@pytest.mark.parametrize(
    ("measures", "said"),
    [
        ([FINE], "Would not have fired in 1 min (1 evaluation)."),
        ([FAULT, FINE], "Would have fired once in 2 min (2 evaluations)."),
        ([FAULT, FINE] * 2, "Would have fired twice in 4 min (4 evaluations)."),
        ([FAULT, FINE] * 3, "Would have fired 3 times in 6 min (6 evaluations)."),
        ([FINE, FAULT], "Would have fired once in 2 min (2 evaluations); 1 alert still fires."),
        (
            [FINE, None],
            (
                "Would not have fired in 2 min (2 evaluations). "
                "1 window could not be judged, mostly because no turn was recorded."
            ),
        ),
        (
            [Measure(3, 0, 0, 0)] * 2,
            (
                "Would not have fired in 2 min (2 evaluations). "
                "No window could be judged, mostly because there were no eligible turns."
            ),
        ),
    ],
)
def test_the_sentence_says_how_often_it_would_have_fired_or_why_it_could_not(measures, said):
    assert said == report.sentence(*backtest(*measures))


def test_a_rule_that_groups_may_have_nothing_to_watch():
    said = report.sentence(*backtest(None, rule=make_rule(group_by=["model"])))
    assert "Would not have fired in 1 min (1 evaluation). There was no group to watch." == said


def test_every_lack_has_its_words():
    rule = make_rule(min_turns=1_000)
    assert "there were fewer than 1,000 eligible turns" == report.lack(rule, Lack.TOO_FEW)
    assert all("{" not in report.lack(rule, why) for why in Lack)


def test_transitions_and_firings_are_plain_values():
    _, found = backtest(FAULT, FINE)
    start, end = "2027-01-15T08:00:00.000Z", "2027-01-15T08:01:00.000Z"
    assert [
        {"at": start, "group": {}, "before": "inactive", "after": "firing", "cause": "crossed"},
        {"at": end, "group": {}, "before": "firing", "after": "inactive", "cause": "cleared"},
    ] == report.transitions(found)
    assert [{"group": {}, "started_at": start, "ended_at": end, "peak": 0.9}] == report.firings(
        found
    )
    assert [None] == [each["ended_at"] for each in report.firings(backtest(FAULT)[1])]


def test_the_picture_holds_each_group_with_its_own_firings():
    rule = make_rule(group_by=["model"], min_turns=20)
    key = key_of({"model": "a"})
    few = Measure(10, 9, 10, 10)
    picture = report.picture(*backtest(Measure(20, 9, 20, 20), few, rule=rule, key=key), ZONE)
    (group,) = picture.groups
    assert ("model=a", [Stretch(START_MS, None)]) == (group.name, group.fired)
    assert [None, "there were fewer than 20 eligible turns"] == [p.lack for p in group.points]
    assert (START_MS, START_MS + MINUTE) == (picture.start, picture.end)


def test_the_bound_is_drawn_where_something_is_to_be_proven():
    assert not report.picture(*backtest(FINE), ZONE).proven
    assert report.picture(*backtest(FINE, rule=make_rule(confidence="wilson")), ZONE).proven


def test_one_evaluation_can_be_drawn_too():
    found = signal(report.picture(*backtest(FAULT), ZONE))
    assert [0.9] == found.data[0]["y"]


def test_the_lines_for_a_terminal_list_each_firing():
    rule = make_rule(group_by=["model"], confidence="wilson", min_turns=20, window="15m")
    key = key_of({"model": "a"})
    rule, found = backtest(Measure(20, 18, 20, 20), Measure(20, 0, 20, 20), rule=rule, key=key)
    assert [
        "Mismatches: mismatch rate above 20 %, proven, over 15m every 1m, from 20 turns on",
        "2027-01-15 08:00:00 to 08:01:00 UTC",
        "",
        "Would have fired once in 2 min (2 evaluations).",
        "",
        "  started                  ended                    lasted  worst  group",
        "  2027-01-15 08:00:00 UTC  2027-01-15 08:01:00 UTC  1 min   90 %   model=a",
    ] == list(report.text(rule, found))


def test_what_still_fires_and_what_fires_for_want_of_rows_is_told_as_such():
    lines = list(report.text(*backtest(None, None, rule=make_rule(no_data="alerting"))))
    assert "  2027-01-15 08:00:00 UTC  still fires  1 min   –" == lines[-1]


def test_without_a_firing_there_is_no_table():
    assert 4 == len(list(report.text(*backtest(FINE))))


def test_as_plain_values_a_backtest_names_its_rule():
    rule, found = backtest(FAULT)
    told = report.as_dict(rule, found)
    assert (rule.as_dict(), 1) == (told["rule"]["definition"], told["evaluations"])
    assert (1, 1) == (len(told["firings"]), len(told["transitions"]))
