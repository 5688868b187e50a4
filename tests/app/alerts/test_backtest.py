import pytest

from app.alerts import backtest, evaluation
from app.alerts.backtest import Firing
from app.alerts.groups import ALONE, key_of
from app.alerts.signals import Lack
from app.errors import AppError
from tests.support.alerts import MINUTE, write
from tests.support.rows import START_MS
from tests.support.verdicts import MEASURES, path, rule_of

BEGIN = START_MS - START_MS % (60 * MINUTE)
MODEL = key_of({"model": "a"})


def windows(words, key=ALONE):
    """One window each minute."""
    for minute, word in enumerate(words.split()):
        yield minute * MINUTE, {} if word == "absent" else {key: MEASURES[word]}


def times(firing):
    ended = None if firing.ended_at is None else firing.ended_at // MINUTE
    return firing.started_at // MINUTE, ended, firing.peak


def test_it_gives_the_readings_the_transitions_and_the_alerts():
    rule = rule_of(keep_firing_for="1m")
    found = backtest.fold(rule, windows("clear breach worse clear lacking clear breach absent"))
    assert path(t for _, t in found.transitions) == [
        (1, "firing", "crossed"),
        (3, "recovering", "cleared"),
        (5, "inactive", "stayed_clear"),
        (6, "firing", "crossed"),
    ]
    assert [times(firing) for firing in found.firings] == [(1, 5, 0.6), (6, None, 0.3)]
    assert (found.first, found.last, found.evaluations) == (0, 7 * MINUTE, 8)
    points = found.series[ALONE]
    assert [point.value for point in points] == [0.05, 0.3, 0.6, 0.05, 1.0, 0.05, 0.3, None]
    assert [point.lack for point in points] == [
        *[None] * 4,
        Lack.TOO_FEW,
        *[None] * 2,
        Lack.NO_ROWS,
    ]
    assert (points[1].at, points[1].part, points[1].whole, points[1].turns) == (
        MINUTE,
        30,
        100,
        100,
    )


def test_it_is_the_fold_that_runs_live():
    rule = rule_of(group_by=["model"], pending_for="1m")
    words = "breach breach breach absent absent absent breach breach clear"
    memories, live = {}, []
    for at, measured in windows(words, MODEL):
        outcome = evaluation.evaluate(rule, memories, at, measured, lambda labels, at: False)
        memories = outcome.memories
        live += outcome.transitions
    assert backtest.fold(rule, windows(words, MODEL)).transitions == live
    assert live


def test_an_alert_of_a_group_that_is_gone_has_ended():
    rule = rule_of(group_by=["model"])
    found = backtest.fold(rule, windows("breach absent absent absent absent breach", MODEL))
    assert found.firings == [
        Firing(MODEL, 0, 3 * MINUTE, 0.3),
        Firing(MODEL, 5 * MINUTE, None, 0.3),
    ]
    assert [point.at // MINUTE for point in found.series[MODEL]] == [0, 1, 2, 3, 5]


def test_an_alert_for_want_of_rows_has_no_worst_value():
    found = backtest.fold(rule_of(no_data="alerting"), windows("absent absent clear"))
    assert [times(firing) for firing in found.firings] == [(0, 2, None)]


def test_a_rule_that_is_off_is_tested_as_if_it_were_on():
    words = "breach clear breach"
    off = backtest.fold(rule_of(enabled=False), windows(words))
    assert off == backtest.fold(rule_of(), windows(words))
    assert len(off.firings) == 2


def test_too_many_readings_are_refused_before_they_fill_the_memory(monkeypatch):
    monkeypatch.setattr(backtest, "MAX_POINTS", 3)
    backtest.fold(rule_of(), windows("clear clear clear"))
    with pytest.raises(AppError, match="shorter time") as refused:
        backtest.fold(rule_of(), windows("clear clear clear clear"))
    assert refused.value.status == 422


def test_an_answer_of_endless_changes_is_refused(monkeypatch):
    """As JSON they would be hundreds of megabytes, and nobody reads them."""
    assert backtest.MAX_TRANSITIONS == 20_000
    monkeypatch.setattr(backtest, "MAX_TRANSITIONS", 2)
    backtest.fold(rule_of(), windows("clear breach clear clear"))
    with pytest.raises(AppError, match="more than 2 changes") as refused:
        backtest.fold(rule_of(), windows("clear breach clear breach"))
    assert ("backtest_too_large", 422) == (refused.value.code, refused.value.status)


# Over a ledger


def test_stored_rows_are_found_at_their_instants(engine):
    """The window of an instant ends before it; the bounds of the time are instants themselves."""
    write(engine, BEGIN, good=30)
    write(engine, BEGIN + MINUTE, bad=30)
    write(engine, BEGIN + 2 * MINUTE, good=30)
    found = backtest.run(engine, rule_of(), BEGIN, BEGIN + 3 * MINUTE)
    assert [(p.at - BEGIN) // MINUTE for p in found.series[ALONE]] == [0, 1, 2, 3]
    assert [p.value for p in found.series[ALONE]] == [None, 0.0, 1.0, 0.0]
    assert found.firings == [Firing(ALONE, BEGIN + 2 * MINUTE, BEGIN + 3 * MINUTE, 1.0)]


def test_the_first_instant_is_not_before_the_start_and_the_last_not_after_the_end(engine):
    found = backtest.run(engine, rule_of(), BEGIN + 1, BEGIN + 3 * MINUTE - 1)
    assert (found.first, found.last) == (BEGIN + MINUTE, BEGIN + 2 * MINUTE)
    assert found.evaluations == 2


def test_the_first_window_reaches_back_before_the_start(engine):
    write(engine, BEGIN - MINUTE, bad=30)
    found = backtest.run(engine, rule_of(), BEGIN, BEGIN)
    assert [firing.started_at for firing in found.firings] == [BEGIN]


def test_groups_are_tested_apart(engine):
    write(engine, BEGIN, bad=30, model="a")
    write(engine, BEGIN, good=300, model="b")
    found = backtest.run(engine, rule_of(group_by=["model"]), BEGIN, BEGIN + MINUTE)
    assert [firing.group for firing in found.firings] == [MODEL]
    assert set(found.series) == {MODEL, key_of({"model": "b"})}


@pytest.mark.parametrize(("start", "end"), [(1, 0), (1, MINUTE - 1), (2 * MINUTE, MINUTE)])
def test_a_time_without_an_evaluation_is_refused(engine, start, end):
    with pytest.raises(AppError, match="every 1m") as refused:
        backtest.run(engine, rule_of(), BEGIN + start, BEGIN + end)
    assert (refused.value.code, refused.value.status) == ("nothing_to_test", 422)


def test_a_test_that_is_too_long_is_refused_with_what_to_change(engine):
    rule = rule_of(every="1s", window="1m")
    longest = (backtest.MAX_INSTANTS - 1) * 1_000
    assert backtest.run(engine, rule, BEGIN, BEGIN + longest).evaluations == 50_000
    with pytest.raises(AppError) as refused:
        backtest.run(engine, rule, BEGIN, BEGIN + longest + 1_000)
    assert (refused.value.code, refused.value.status) == ("backtest_too_long", 422)
    assert "50,001 evaluations" in refused.value.message
    assert "at most 13h" in refused.value.hint
    with pytest.raises(AppError, match="at most 34d"):
        backtest.run(engine, rule_of(), BEGIN, BEGIN + 50_000 * MINUTE)


def test_it_says_how_far_it_is(engine):
    told = []
    backtest.run(
        engine,
        rule_of(),
        BEGIN,
        BEGIN + 2 * MINUTE,
        progress=lambda done, of: told.append((done, of)),
    )
    assert [(1, 3), (2, 3), (3, 3)] == told
