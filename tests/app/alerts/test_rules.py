import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.alerts import rules
from app.alerts.rules import FIELDS, GROUPINGS, LIVE, BadRuleError, NoData, Rule, Severity
from app.alerts.signals import CATALOGUE, Confidence, Signal, Weight
from app.ledger.filters import UNKNOWN
from tests.support.rows import START_MS

many = settings(suppress_health_check=list(HealthCheck), deadline=None)

SMALLEST = {"name": "Mismatches", "signal": "mismatch_rate", "threshold": 0.2}
HOUR = 3_600_000


def parse(**given) -> Rule:
    return rules.parse(SMALLEST | given, id="rule-1")


def refusal(**given) -> BadRuleError:
    with pytest.raises(BadRuleError) as refused:
        parse(**given)
    return refused.value


def test_what_is_not_given_has_a_default():
    rule = parse()
    assert rule.as_dict() == {
        "name": "Mismatches",
        "description": "",
        "owner": "",
        "enabled": True,
        "severity": "warning",
        "signal": "mismatch_rate",
        "weight": "turns",
        "filter": "",
        "group_by": [],
        "window": "15m",
        "every": "1m",
        "delay": "10s",
        "threshold": 0.2,
        "recover": 0.2,
        "confidence": "wilson",
        "min_turns": 20,
        "pending_for": "0s",
        "keep_firing_for": "0s",
        "no_data": "no_data",
        "renotify_every": "0s",
        "renotify_max": 10,
        "receivers": [],
        "labels": {},
        "runbook_url": "",
    }
    assert list(rule.as_dict()) == list(FIELDS)


@pytest.mark.parametrize("name", ["name", "signal", "threshold"])
def test_what_is_needed_is_asked_for(name):
    given = {key: value for key, value in SMALLEST.items() if key != name}
    with pytest.raises(BadRuleError, match=f"{name} is missing in file.toml") as refused:
        rules.parse(given, id="x", place="file.toml")
    assert (refused.value.field, refused.value.status) == (name, 422)
    assert refused.value.hint


def test_an_unknown_field_is_refused_with_the_one_that_was_meant():
    refused = refusal(treshold=0.3)
    assert (refused.field, refused.hint) == ("treshold", "Did you mean threshold?")
    assert "Fields are name" in (refusal(zzz=1).hint or "")
    assert len(refusal(**{"x" * 9_999: 1}).message) < 200


TEXTS = [None, 1, True, [], "a\nb", "a\x00", "a\x7f", "a\x85b", "a\u2028b", "\ud800"]
DURATIONS = [None, True, 1.5, [], "", "5", "m", "5 m", "-5m", "1.5h", "5y", "99999999w", "1h30m"]
NUMBERS = [None, True, "0.2", [], -0.1, float("nan"), float("inf"), float("-inf"), 10**400, 1e15]
WRONG = {
    "name": [*TEXTS, "", "   ", "x" * 101],
    "description": [*TEXTS, "x" * 1_001],
    "owner": [*TEXTS, "x" * 101],
    "enabled": [None, 0, 1, "true", []],
    "severity": [None, "fatal", "WARNING", 1, [], {}],
    "signal": [None, "mismatch", "MISMATCH_RATE", 0, [], {}],
    "weight": [None, "requests", 1, [], {}],
    "filter": [
        None,
        1,
        [],
        "nonsense",
        "?",
        "colour=red",
        "mode=sideways",
        "\ud800",
        "a\nb",
        "from=now-1h",
        "to=now",
        "tz=UTC",
        "by=started",
        "status=completed&by=recorded",
        "q=a&q=b",
    ],
    "group_by": [None, "model", {}, ["session"], ["model", "model"], [1], [[]], [None]],
    "window": [*DURATIONS, 0, 604_801, "2w"],
    "every": [*DURATIONS, 0, 86_401],
    "delay": [*DURATIONS, -1, 3_601],
    "threshold": [*NUMBERS, 20],
    "recover": [*NUMBERS, 20],
    "confidence": [None, "95", 0.95, [], {}],
    "min_turns": [None, True, 0, -1, 1.5, "20", 1_000_001],
    "pending_for": [*DURATIONS, -1, 604_801],
    "keep_firing_for": [*DURATIONS, -1, 604_801],
    "no_data": [None, "zero", False, [], {}],
    "renotify_every": [*DURATIONS, -1, "5w"],
    "renotify_max": [None, True, 0, 1_001, "3"],
    "receivers": [None, "ops", {}, [1], [""], [" "], ["x"] * 21, ["x" * 101], ["a\nb"], ["\ud800"]],
    "labels": [
        None,
        [],
        "team=a",
        {"a b": "x"},
        {"": "x"},
        {"1a": "x"},
        {"a": 1},
        {"a": "x" * 201},
        {f"l{n}": "" for n in range(21)},
        {"a": "x\ny"},
        {"a": "\ud800"},
        {"a" * 65: "x"},
    ],
    "runbook_url": [
        None,
        1,
        "example.org",
        "ftp://example.org",
        "javascript:alert(1)",
        "https://",
        "https://user:pass@example.org",
        "https://exa mple.org",
        "http://[",
        'https://a"b',
        "https://a<b",
        "https://a\n",
        "https://" + "x" * 1_000,
        "https://a/\ud800",
    ],
}


def test_wrong_values_are_known_of_every_field():
    assert set(WRONG) == set(FIELDS)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_a_wrong_value_is_refused_with_the_field_at_fault(name, value):
    refused = refusal(**{name: value})
    assert refused.field == name
    assert name in refused.message
    assert "the rule" in refused.message
    assert "Traceback" not in str(refused)
    assert refused.as_dict()["error"]["field"] == name


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("weight", {"signal": "cached_ratio", "weight": "turns"}),
        ("weight", {"signal": "error_rate", "weight": "tokens"}),
        ("confidence", {"weight": "tokens", "confidence": "wilson"}),
        ("confidence", {"signal": "ttft_p95", "threshold": 900, "confidence": "wilson"}),
        ("recover", {"threshold": 0.2, "recover": 0.3}),
        ("recover", {"signal": "cached_ratio", "threshold": 0.5, "recover": 0.4}),
        ("threshold", {"threshold": 1}),
        ("threshold", {"signal": "cached_ratio", "threshold": 0}),
        ("window", {"window": "90s", "every": "1m"}),
        ("window", {"window": "30s", "every": "1m"}),
        ("window", {"window": "1441s", "every": "1s"}),
    ],
)
def test_values_that_do_not_go_together_are_refused(name, given):
    assert refusal(**given).field == name


@pytest.mark.parametrize(
    "given",
    [
        {"signal": "ttft_p95", "threshold": 1},
        {"signal": "missed_tokens", "threshold": 1e6, "recover": 0},
        {"signal": "cached_ratio", "threshold": 0.5, "recover": 1},
        {"threshold": 0},
        {"window": "24h", "every": "1m"},
        {"window": "1m", "every": "1m", "delay": 0},
    ],
)
def test_the_edges_of_what_is_allowed_are_allowed(given):
    parse(**given)


def test_tokens_and_times_are_judged_raw_unless_said_otherwise():
    assert parse().confidence is Confidence.WILSON
    assert parse(weight="tokens").confidence is Confidence.RAW
    for signal, info in CATALOGUE.items():
        assert parse(signal=signal, threshold=0.5).confidence is info.confidences[0]
        assert parse(signal=signal, threshold=0.5).weight is info.weights[0]


def test_texts_are_trimmed_and_receivers_named_once():
    rule = parse(name="  Mismatches ", receivers=["ops", " ops ", "dev"])
    assert (rule.name, rule.receivers) == ("Mismatches", ("ops", "dev"))


def test_groupings_have_one_order():
    assert parse(group_by=["tenant", "model"]) == parse(group_by=["model", "tenant"])


def test_a_filter_is_written_the_one_way_the_grammar_writes_it():
    rule = parse(filter="?client=codex&model=b&model=!a&q=x%20y")
    assert rule.filter == "model=b&model=%21a&client=codex&q=x+y"
    assert parse(filter=rule.filter).filter == rule.filter
    assert parse(filter="").filter == parse(filter="  ").filter == ""


def test_a_filter_at_fault_says_what_is_wrong_with_it():
    assert "There is no filter" in refusal(filter="modell=a").message
    assert refusal(filter="modell=a").hint == "Did you mean model?"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("6h", 21_600), ("7d", 604_800), (" 1w ", 604_800), (45, 45)],
)
def test_durations_are_read_with_their_unit(text, seconds):
    assert parse(pending_for=text).pending_for == seconds


@many
@given(seconds=st.integers(0, 4 * 604_800))
def test_a_duration_that_was_written_reads_back(seconds):
    assert parse(renotify_every=rules.duration(seconds)).renotify_every == seconds
    assert rules.read_duration(rules.duration(seconds)) == seconds


words = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), max_size=20)
filters = st.sampled_from(["", "model=a&model=!b", "q=50%25+%26", "source=import:x", "cache=hit"])


@st.composite
def definitions(draw):
    signal = draw(st.sampled_from(Signal))
    info = CATALOGUE[signal]
    low, high = sorted(draw(st.tuples(*[st.floats(0.001, 0.999)] * 2)))
    every = draw(st.integers(1, 3_600))
    given = {
        "name": "x" + draw(words),
        "signal": signal.value,
        "threshold": high if info.rises else low,
        "recover": low if info.rises else high,
        "every": every,
        "window": every * draw(st.integers(1, 100)),
        "weight": draw(st.sampled_from(info.weights)).value,
        "confidence": "raw",
        "severity": draw(st.sampled_from(Severity)).value,
        "no_data": draw(st.sampled_from(NoData)).value,
        "enabled": draw(st.booleans()),
        "filter": draw(filters),
        "group_by": draw(st.lists(st.sampled_from(GROUPINGS), unique=True)),
        "delay": draw(st.integers(0, 3_600)),
        "min_turns": draw(st.integers(1, 1_000_000)),
        "pending_for": draw(st.integers(0, 604_800)),
        "keep_firing_for": draw(st.integers(0, 604_800)),
        "renotify_every": draw(st.integers(0, 604_800)),
        "renotify_max": draw(st.integers(1, 1_000)),
        "receivers": draw(st.lists(words.filter(str.strip), max_size=20)),
        "labels": draw(st.dictionaries(st.from_regex(r"[a-z_]{1,5}", fullmatch=True), words)),
        "description": draw(words),
        "owner": draw(words),
        "runbook_url": draw(st.sampled_from(["", "https://example.org/a?b=c#d"])),
    }
    needed = {*SMALLEST, "every", "window"}
    given = {name: value for name, value in given.items() if name in needed or draw(_kept)}
    if given.get("weight") == "turns" and Confidence.WILSON in info.confidences:
        given["confidence"] = draw(st.sampled_from(Confidence)).value
    if len(given.get("labels", {})) > 20:
        del given["labels"]
    return given


_kept = st.sampled_from([True, True, True, False])


@many
@given(given=definitions())
def test_a_rule_that_was_written_reads_back_as_it_was(given):
    rule = rules.parse(given, id="rule-1")
    text = json.dumps(rule.as_dict(), allow_nan=False)
    assert rules.parse(json.loads(text), id="rule-1") == rule


# The rows of a window


def test_a_window_goes_by_the_time_of_recording():
    view = parse(filter="model=a").view(START_MS, START_MS + HOUR)
    assert (view.start, view.end, view.by) == (START_MS, START_MS + HOUR, "recorded")
    assert view.include["model"] == ("a",)


def test_a_window_keeps_its_milliseconds():
    view = parse().view(START_MS + 1, START_MS + 999)
    assert (view.start, view.end) == (START_MS + 1, START_MS + 999)


def test_imports_and_samples_are_left_out():
    assert parse().view(0, HOUR).include == {"source": LIVE}
    assert not any(name.startswith(("import", "demo", "sample")) for name in LIVE)


@pytest.mark.parametrize(
    ("text", "include", "exclude"),
    [
        ("source=import:x", {"source": ("import:x",)}, {}),
        ("source=!gateway", {}, {"source": ("gateway",)}),
        (f"source={UNKNOWN}", {"source": (UNKNOWN,)}, {}),
    ],
)
def test_sources_that_a_filter_names_are_the_ones_that_count(text, include, exclude):
    view = parse(filter=text).view(0, HOUR)
    assert (view.include, view.exclude) == (include, exclude)


def test_a_text_of_the_filter_reaches_the_window():
    assert parse(filter="q=50%25+%26").view(0, HOUR).q == "50% &"


def test_weights_and_signals_of_a_rule_are_those_of_the_catalogue():
    assert set(CATALOGUE) == set(Signal)
    assert {weight for info in CATALOGUE.values() for weight in info.weights} == set(Weight)
