import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from app.alerts.measures import instants, windows
from app.alerts.signals import Measure, Signal
from app.errors import AppError
from app.ledger.summary import summarize
from app.ledger.writer import write_rows
from tests.support.alerts import MINUTE, bad_row, good_row, make_rule, write
from tests.support.measuring import BEGIN, LENGTH, counted, rows, some_rules
from tests.support.rows import unknown_usage

many = settings(max_examples=80, suppress_health_check=list(HealthCheck), deadline=None)
STEP = 10_000


@many
@given(
    some_rules(),
    st.lists(rows, max_size=25),
    st.integers(-3, LENGTH // STEP),
    st.integers(0, 14),
)
def test_measures_are_those_of_counting_row_by_row(holding, rule, found, first, more):
    """At every instant, also where windows are longer than the stretch or begin before the rows."""
    engine = holding(found)
    times = range(BEGIN + first * STEP, BEGIN + (first + more) * STEP + 1, STEP)
    expected = [(instant, counted(rule, found, instant)) for instant in times]
    assert expected == list(windows(engine, rule, times[0], times[-1]))


@many
@given(some_rules(), st.lists(rows, max_size=25))
def test_a_stretch_gives_what_its_instants_give_one_by_one(holding, rule, found):
    """So a backtest sees what the live evaluation saw."""
    engine = holding(found)
    times = range(BEGIN, BEGIN + LENGTH, STEP)
    expected = [next(windows(engine, rule, instant, instant)) for instant in times]
    assert expected == list(windows(engine, rule, times[0], times[-1]))


@many
@given(some_rules(), st.lists(rows, max_size=25))
def test_a_rate_means_what_it_means_on_the_pages(holding, rule, found):
    engine = holding(found)
    end = BEGIN + 60_000
    measure = next(windows(engine, rule, end, end))[1].get("{}")
    if measure is None or rule.group_by:
        return
    start = end - (rule.delay + rule.window) * 1_000
    summary = summarize(engine, rule.view(start, end - rule.delay * 1_000))
    shown = {
        ("mismatch_rate", "turns"): summary.continuity.mismatch_rate,
        ("break_rate", "turns"): summary.continuity.break_rate,
        ("incremental_rate", "turns"): summary.continuity.incremental_rate,
        ("error_rate", "turns"): summary.error_rate,
        ("cached_ratio", "tokens"): summary.tokens.cached_ratio,
    }
    if (rule.signal, rule.weight) in shown:
        rate = measure.part / measure.whole if measure.whole else None
        assert shown[rule.signal, rule.weight] == rate


def test_a_window_holds_its_start_and_not_its_end(engine: Engine):
    rule = make_rule(window="2m", delay=10)
    start = BEGIN - 10_000
    end = start + 2 * MINUTE
    write_rows(engine, [bad_row(at) for at in (start - 1, start, start, end - 1, end)])
    expected = {"{}": Measure(rows=3, part=3, whole=3, turns=3)}
    found = dict(windows(engine, rule, BEGIN, BEGIN + 4 * MINUTE))
    assert expected == found[BEGIN + 2 * MINUTE]
    assert [1, 3, 3, 2, 1] == [measures["{}"].rows for measures in found.values()]


def test_a_row_leaves_the_window_as_it_entered(engine: Engine):
    rule = make_rule(window="3m")
    write(engine, BEGIN, bad=1)
    found = windows(engine, rule, BEGIN, BEGIN + 5 * MINUTE)
    assert [0, 1, 1, 1, 0, 0] == [len(measures) for _, measures in found]


def test_the_sample_that_leaves_is_that_of_the_row_that_leaves(engine: Engine):
    rule = make_rule(signal="ttft_p95", window="2m")
    samples = (30.0, 10.0, 20.0, 10.0)
    for minute, sample in enumerate(samples):
        write(engine, BEGIN + minute * MINUTE, good=1, ttft_ms=sample)
    found = windows(engine, rule, BEGIN + MINUTE, BEGIN + 5 * MINUTE)
    expected = [(30.0,), (10.0, 30.0), (10.0, 20.0), (10.0, 20.0), (10.0,)]
    assert expected == [measures["{}"].samples for _, measures in found]


def test_more_samples_than_memory_is_for_are_refused(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    rule = make_rule(signal="ttft_p95", threshold=100, confidence="raw")
    monkeypatch.setattr("app.alerts.measures.MAX_SAMPLES", 2)
    write(engine, BEGIN, good=2, ttft_ms=10.0)
    assert 2 == next(windows(engine, rule, BEGIN + MINUTE, BEGIN + MINUTE))[1]["{}"].turns
    write(engine, BEGIN + 10, good=1, ttft_ms=10.0)
    with pytest.raises(AppError, match="more than 2 times to the first token") as refused:
        windows(engine, rule, BEGIN + MINUTE, BEGIN + MINUTE)
    assert ("backtest_too_large", 422) == (refused.value.code, refused.value.status)


def test_samples_and_imports_count_only_where_a_rule_names_them(engine: Engine):
    write(engine, BEGIN, bad=1)
    write(engine, BEGIN, bad=2, source="sample")
    write(engine, BEGIN, bad=4, source="import:a")

    def rows_of(text: str) -> int:
        rule = make_rule(filter=text)
        return next(windows(engine, rule, BEGIN + MINUTE, BEGIN + MINUTE))[1]["{}"].rows

    assert [1, 2, 5, 6] == [
        rows_of(text)
        for text in ("", "source=sample", "source=gateway&source=import:a", "source=!gateway")
    ]


def test_a_value_that_is_missing_is_the_group_unknown(engine: Engine):
    """As in the grammar of filters, where ``unknown`` also finds what is called so."""
    rule = make_rule(group_by=["model", "client"])
    write(engine, BEGIN, bad=1, model=None, client="codex")
    write(engine, BEGIN, bad=2, model="unknown", client="codex")
    write(engine, BEGIN, good=4, model="gpt", client=None)
    assert {
        '{"client":"codex","model":"unknown"}': Measure(rows=3, part=3, whole=3, turns=3),
        '{"client":"unknown","model":"gpt"}': Measure(rows=4, part=0, whole=4, turns=4),
    } == next(windows(engine, rule, BEGIN + MINUTE, BEGIN + MINUTE))[1]


def test_unknown_usage_is_counted_as_unknown_and_not_as_no_tokens(engine: Engine):
    rule = make_rule(weight="tokens")
    write_rows(
        engine,
        [
            bad_row(BEGIN, input_tokens=300, cached_tokens=0),
            good_row(BEGIN, input_tokens=700, cached_tokens=500),
            good_row(BEGIN, input_tokens=700, cached_tokens=None),
            unknown_usage(recorded_at=BEGIN),
            unknown_usage(recorded_at=BEGIN, mode=None),
        ],
    )
    expected = Measure(rows=5, part=300, whole=1_000, turns=2, unknown=3)
    assert expected == next(windows(engine, rule, BEGIN + MINUTE, BEGIN + MINUTE))[1]["{}"]


@pytest.mark.parametrize("signal", list(Signal))
def test_no_rows_are_no_measure(engine: Engine, signal: Signal):
    rule = make_rule(signal=signal.value)
    expected = [(BEGIN, {}), (BEGIN + MINUTE, {})]
    assert expected == list(windows(engine, rule, BEGIN, BEGIN + MINUTE))


def test_the_first_minutes_of_1970_are_no_error(engine: Engine):
    rule = make_rule(window="10m", delay=10)
    write(engine, 0, bad=1)
    assert [0, 1, 1] == [len(measures) for _, measures in windows(engine, rule, 0, 2 * MINUTE)]
    assert [(0, {})] == list(windows(engine, rule, 0, 0))


def test_bounds_that_are_no_instants_of_the_rule_are_a_mistake(engine: Engine):
    with pytest.raises(ValueError, match="multiples"):
        windows(engine, make_rule(), BEGIN, BEGIN + 1)
    with pytest.raises(ValueError, match="multiples"):
        windows(engine, make_rule(), BEGIN - 1, BEGIN)


def test_no_instants_are_no_windows(engine: Engine):
    assert [] == list(windows(engine, make_rule(), BEGIN, BEGIN - MINUTE))


@pytest.mark.parametrize(("signal", "queries"), [("mismatch_rate", 1), ("ttft_p95", 2)])
def test_a_stretch_is_one_query_however_long_it_is(engine: Engine, signal: str, queries: int):
    """And for times to first token one more; all before the first window is asked for."""
    write(engine, BEGIN, bad=3)
    asked: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: asked.append(args[2]))
    windows(engine, make_rule(signal=signal, threshold=0.2), BEGIN, BEGIN + 500 * MINUTE)
    assert queries == len([text for text in asked if text.startswith("SELECT")])


@pytest.mark.parametrize(
    ("after", "until", "expected"),
    [
        (0, 0, []),
        (0, 59_999, []),
        (0, 60_000, [60_000]),
        (59_999, 60_000, [60_000]),
        (60_000, 180_001, [120_000, 180_000]),
        (90_000, 60_000, []),
    ],
)
def test_instants_lie_after_the_last_and_up_to_now(after: int, until: int, expected: list[int]):
    assert expected == list(instants(make_rule(), after, until))
