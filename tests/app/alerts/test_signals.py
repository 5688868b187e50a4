import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.alerts.signals import CATALOGUE, Confidence, Lack, Measure, Signal, Weight, read, total
from app.alerts.states import crossed
from tests.support.alerts import make_rule

many = settings(suppress_health_check=list(HealthCheck), deadline=None)

counts = st.integers(0, 500)
samples = st.lists(st.floats(0, 1e6), max_size=30).map(lambda values: tuple(sorted(values)))


@st.composite
def measures(draw):
    """Of rates: the part within the whole. Samples beside them, one for each turn."""
    times = draw(samples)
    turns = len(times)
    return Measure(
        rows=turns + draw(counts),
        part=draw(st.integers(0, turns)),
        whole=turns,
        turns=turns,
        unknown=draw(st.integers(0, 5)),
        samples=times,
    )


def rate(part, whole, **more):
    return Measure(**({"rows": whole, "part": part, "whole": whole, "turns": whole} | more))


def judge(measure, *, signal=Signal.MISMATCH_RATE, confidence=Confidence.RAW, minimum=1):
    return read(signal, confidence, minimum, measure)


@pytest.mark.parametrize(
    ("part", "whole", "proven", "fires"), [(3, 10, 0.108, False), (30, 100, 0.219, True)]
)
def test_the_same_rate_of_more_turns_proves_more(part, whole, proven, fires):
    rule = make_rule(threshold=0.2, confidence="wilson")
    reading = judge(rate(part, whole), confidence=Confidence.WILSON)
    assert (reading.value, reading.bound) == (0.3, pytest.approx(proven, abs=0.0005))
    assert crossed(rule, reading) is fires


def test_where_low_is_bad_the_upper_bound_has_to_be_low():
    few = judge(rate(7, 10), signal=Signal.INCREMENTAL_RATE, confidence=Confidence.WILSON)
    many = judge(rate(70, 100), signal=Signal.INCREMENTAL_RATE, confidence=Confidence.WILSON)
    assert few.bound == pytest.approx(1 - 0.108, abs=0.0005)
    assert many.bound == pytest.approx(1 - 0.219, abs=0.0005)
    rule = make_rule(signal="incremental_rate", threshold=0.8, confidence="wilson")
    assert (crossed(rule, few), crossed(rule, many)) == (False, True)


def test_a_raw_bound_is_the_value():
    assert judge(rate(3, 10)).bound == 0.3


def test_no_rows_are_not_a_rate_of_zero():
    reading = judge(Measure())
    assert (reading.value, reading.bound, reading.lack) == (None, None, Lack.NO_ROWS)


def test_rows_that_the_signal_is_not_about_say_nothing():
    reading = judge(Measure(rows=40))
    assert (reading.value, reading.lack) == (None, Lack.NOTHING_COUNTS)


def test_rows_of_unknown_usage_say_that_all_is_unknown():
    reading = judge(Measure(rows=40, unknown=40), signal=Signal.CACHED_RATIO)
    assert (reading.value, reading.lack) == (None, Lack.ALL_UNKNOWN)


def test_one_turn_of_twenty_is_shown_and_not_judged():
    reading = judge(rate(1, 1), minimum=20)
    assert (reading.value, reading.lack) == (1.0, Lack.TOO_FEW)
    assert not crossed(make_rule(), reading)


def test_the_minimum_itself_is_enough():
    assert judge(rate(0, 20), minimum=20).lack is None
    assert judge(rate(0, 19), minimum=20).lack is Lack.TOO_FEW


def test_the_minimum_counts_turns_and_not_tokens():
    assert judge(rate(9_000, 10_000, turns=2), minimum=20).lack is Lack.TOO_FEW


def test_turns_without_any_input_token_have_no_ratio():
    empty = Measure(rows=30, part=0, whole=0, turns=30)
    assert judge(empty, signal=Signal.CACHED_RATIO).value is None


def test_a_reported_zero_is_a_zero():
    reading = judge(rate(0, 40))
    assert (reading.value, reading.lack) == (0.0, None)


def test_the_95th_percentile_is_a_measured_time():
    times = tuple(float(n) for n in range(1, 21))
    reading = judge(Measure(rows=20, turns=20, samples=times), signal=Signal.TTFT_P95)
    assert reading.value == reading.bound == 19.0


def test_missed_tokens_are_a_sum():
    measure = Measure(rows=3, part=12_000, turns=2, unknown=1)
    assert judge(measure, signal=Signal.MISSED_TOKENS).value == 12_000.0


@many
@given(measure=measures(), signal=st.sampled_from(Signal), minimum=st.integers(1, 40))
def test_a_reading_is_a_finite_number_or_says_why_there_is_none(measure, signal, minimum):
    for confidence in CATALOGUE[signal].confidences:
        reading = read(signal, confidence, minimum, measure)
        if reading.value is None:
            assert reading.bound is None
            assert reading.lack is not None
        else:
            assert 0 <= reading.value < float("inf")
            assert 0 <= reading.bound < float("inf")
            assert (reading.lack is None) == (measure.turns >= minimum)


@many
@given(measure=measures(), signal=st.sampled_from([s for s in Signal if s.endswith("rate")]))
def test_a_bound_lies_on_the_good_side_of_the_value(measure, signal):
    reading = read(signal, Confidence.WILSON, 1, measure)
    if reading.value is not None:
        worse = reading.value - reading.bound
        assert worse >= -1e-9 if CATALOGUE[signal].rises else worse <= 1e-9


@many
@given(a=measures(), b=measures(), c=measures())
def test_measures_add_up_in_any_order(a, b, c):
    assert total([a, b, c]) == total([total([a, b]), c]) == total([c, total([b, a])])
    assert total([a]) == total([a, Measure()]) == a
    assert total([]) == Measure()
    both = total([a, b])
    assert both.samples == tuple(sorted([*a.samples, *b.samples]))
    assert (both.rows, both.part, both.whole, both.turns, both.unknown) == (
        a.rows + b.rows,
        a.part + b.part,
        a.whole + b.whole,
        a.turns + b.turns,
        a.unknown + b.unknown,
    )


def test_tokens_are_never_judged_as_independent_trials():
    for info in CATALOGUE.values():
        assert Weight.TURNS in info.weights or Confidence.WILSON not in info.confidences
