import pytest

from app.alerts import words
from app.alerts.signals import CATALOGUE, Confidence, Measure, Signal, read
from app.alerts.states import Cause
from tests.support.alerts import MINUTE, make_rule
from tests.support.rows import START_MS


def sentence(measure, **rule):
    rule = make_rule(**rule)
    reading = read(rule.signal, rule.confidence, rule.min_turns, measure)
    return words.reading_sentence(rule, reading)


@pytest.mark.parametrize(
    ("expected", "measure", "rule"),
    [
        (
            (
                "Mismatch rate 30 % (30 of 100 eligible turns; at least 21.9 % is proven), "
                "threshold 20 %."
            ),
            Measure(120, 30, 100, 100),
            {"confidence": "wilson", "threshold": 0.2},
        ),
        (
            "Mismatch rate 0 % (0 of 14 eligible turns), threshold 20 %.",
            Measure(14, 0, 14, 14),
            {"confidence": "wilson"},
        ),
        (
            "Incremental rate 100 % (9 of 9 generation turns of known mode), threshold 50 %.",
            Measure(9, 9, 9, 9),
            {"signal": "incremental_rate", "confidence": "wilson", "threshold": 0.5},
        ),
        (
            "Mismatch rate 100 % (1 of 1 eligible turn), threshold 20 %.",
            Measure(1, 1, 1, 1),
            {"threshold": 0.2},
        ),
        (
            (
                "Incremental rate 40 % (40 of 100 generation turns of known mode; at most 49.8 % is "
                "proven; 3 more unknown), threshold 50 %."
            ),
            Measure(120, 40, 100, 100, 3),
            {"signal": "incremental_rate", "confidence": "wilson", "threshold": 0.5},
        ),
        (
            "Break rate 25 % (3,000 of 12,000 input tokens, in 7 eligible turns), threshold 20 %.",
            Measure(9, 3_000, 12_000, 7),
            {"signal": "break_rate", "weight": "tokens"},
        ),
        (
            "Cached ratio 25 % (3,000 of 12,000 input tokens, in 1 turn), threshold 30 %.",
            Measure(9, 3_000, 12_000, 1),
            {"signal": "cached_ratio", "threshold": 0.3},
        ),
        (
            (
                "Time to first token, 95th percentile 2,350 ms (1 turn with a first token), "
                "threshold 2,000 ms."
            ),
            Measure(3, 0, 0, 1, samples=(2_350.0,)),
            {"signal": "ttft_p95", "threshold": 2_000},
        ),
        (
            (
                "Missed tokens 120,000 tokens (55 turns whose missed tokens are known), "
                "threshold 100,000 tokens."
            ),
            Measure(60, 120_000, 0, 55),
            {"signal": "missed_tokens", "threshold": 100_000},
        ),
    ],
)
def test_a_reading_says_value_counts_proof_and_threshold(expected, measure, rule):
    assert expected == sentence(measure, **rule)


@pytest.mark.parametrize(
    ("expected", "measure"),
    [
        ("No turn was recorded in the window.", Measure()),
        (
            "Mismatch rate unknown (4 turns recorded, no eligible turns), threshold 20 %.",
            Measure(rows=4),
        ),
        (
            "Mismatch rate unknown (of 3 turns it is not known), threshold 20 %.",
            Measure(rows=4, unknown=3),
        ),
        (
            (
                "Mismatch rate 50 % (1 of 2 eligible turns), threshold 20 %. "
                "Too few to judge by: 20 are needed."
            ),
            Measure(2, 1, 2, 2),
        ),
    ],
)
def test_what_cannot_be_judged_says_why(expected, measure):
    assert expected == sentence(measure, min_turns=20)


@pytest.mark.parametrize("signal", Signal)
def test_every_signal_has_its_sentence(signal):
    measure = Measure(50, 10, 40, 40, samples=(1.0,))
    rule = make_rule(signal=signal, confidence=CATALOGUE[signal].confidences[0])
    reading = read(signal, rule.confidence, 1, measure)
    assert words.reading_sentence(rule, reading).startswith(CATALOGUE[signal].title)


@pytest.mark.parametrize("turns", range(1, 400, 7))
def test_what_is_true_of_every_rate_is_not_called_proven(turns):
    none, all_ = Measure(turns, 0, turns, turns), Measure(turns, turns, turns, turns)
    assert "proven" not in sentence(none, confidence="wilson")
    low = {"signal": "incremental_rate", "confidence": "wilson", "threshold": 0.5}
    assert "proven" not in sentence(all_, **low)


def test_a_rate_that_crossed_never_looks_like_its_threshold():
    assert words.amount(Signal.ERROR_RATE, 0.2004, 0.2) == "20.04 %"
    assert words.amount(Signal.ERROR_RATE, 0.20004, 0.2) == "20.004 %"
    assert words.amount(Signal.TTFT_P95, 2_000.4, 2_000) == "2,000.4 ms"
    assert words.amount(Signal.MISSED_TOKENS, 12_000, 12_000.5) == "12,000 tokens"
    assert words.amount(Signal.ERROR_RATE, 0.2, 0.2) == "20 %"
    assert words.amount(Signal.ERROR_RATE, 0.12345, 0.12345) == "12.3 %"
    assert words.amount(Signal.ERROR_RATE, 0.25, 0.2) == "25 %"


def test_unknown_is_not_zero():
    assert words.amount(Signal.ERROR_RATE, None) == "unknown"
    assert words.amount(Signal.TTFT_P95, float("nan")) == "unknown"
    assert words.amount(Signal.MISSED_TOKENS, 0.0) == "0 tokens"
    assert words.amount(Signal.MISSED_TOKENS, 1.0) == "1 token"
    assert words.amount(Signal.TTFT_P95, 0.5) == "0.5 ms"


def test_names_are_made_printable_and_keep_their_letters():
    assert words.clean("gpt-6\nsol\x00") == "gpt-6\ufffdsol\ufffd"
    assert words.clean("\u202egpt\ud83d") == "\ufffdgpt\ufffd"
    assert words.clean("a\u061cb\u180e\ufff9\U000e0041") == "a\ufffdb" + 3 * "\ufffd"
    assert words.clean("Ä 模型 😀 \"'<&>") == "Ä 模型 😀 \"'<&>"


@pytest.mark.parametrize("most", [5, 20, 31, 100])
def test_a_cut_is_visible_and_within_the_limit(most):
    assert words.cut("x" * most, most) == "x" * most
    shown = words.cut("x" * (most + 1), most)
    assert len(shown) == most
    assert shown.endswith(("…", "… (cut)"))


def test_the_day_is_said_once_where_it_is_the_same():
    assert words.window(START_MS, START_MS + MINUTE) == "2027-01-15 08:00:00 to 08:01:00 UTC"
    assert (
        words.window(START_MS, START_MS + 24 * 60 * MINUTE)
        == "2027-01-15 08:00:00 to 2027-01-16 08:00:00 UTC"
    )
    assert words.moment(START_MS) == "2027-01-15 08:00:00 UTC"


@pytest.mark.parametrize(
    ("expected", "ms"),
    [
        ("less than 1 s", 999),
        ("45 s", 45_999),
        ("12 min", 12 * MINUTE),
        ("3 h 5 min", 185 * MINUTE + 7_000),
        ("1 h", 60 * MINUTE + 7_000),
        ("2 d 4 h", 52 * 60 * MINUTE),
    ],
)
def test_a_span_has_at_most_two_units(expected, ms):
    assert expected == words.span(ms)


@pytest.mark.parametrize("cause", [None, *Cause])
def test_every_cause_can_be_said_as_an_ending(cause):
    assert words.ending(make_rule(), cause).endswith(".")


def test_an_ending_says_whether_it_recovered():
    rule = make_rule(recover=0.1, keep_firing_for="10m")
    assert words.ending(rule, Cause.CLEARED) == "It recovered: the value is at 10 % or below."
    assert (
        words.ending(rule, Cause.STAYED_CLEAR)
        == "It recovered: the value has been at 10 % or below for 10m."
    )
    for cause in (Cause.GONE, Cause.PAUSED, Cause.DELETED):
        assert "Whether it recovered is not known." in words.ending(rule, cause)
    assert words.ending(rule, Cause.CLEARED, absence=True) == "Turns are recorded again."
    low = make_rule(signal="incremental_rate", threshold=0.5, recover=0.7)
    assert words.ending(low, Cause.CLEARED) == "It recovered: the value is at 70 % or above."


def test_confidence_raw_claims_no_proof():
    assert "proven" not in sentence(Measure(120, 30, 100, 100), confidence=Confidence.RAW)
