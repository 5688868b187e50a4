import json
from dataclasses import replace
from decimal import Decimal

import pytest

from app.ledger.verdict_sums import VerdictSum
from app.reporting.figures import Figures, Read, as_dict, dollars
from tests.support.reported import SILENT, judged, some_turns
from tests.support.rows import unknown_usage

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.fixture
def figures(figures_of) -> Figures:
    return figures_of(*some_turns())


def test_the_missed_rate_is_what_was_missed_of_what_was_to_be_read_again(figures: Figures):
    """Read: 16,000 + 6,000 + 4,000 + 0 + 4,000; a start and a rewritten history had nothing to."""
    assert (10_000, 40_000, 0.25) == (figures.missed, figures.due, figures.missed_rate)


def test_without_anything_to_be_read_again_the_missed_rate_is_unknown(figures_of):
    found = figures_of(judged("cold_start", "proven", 0, 0))
    assert (0, None) == (found.due, found.missed_rate)


def test_verdicts_without_a_loss_stand_apart_by_their_frequency(figures: Figures):
    found = replace(figures, verdicts=(*figures.verdicts, VerdictSum("hit", "likely", 3, 0, 0)))
    assert ("hit", 4) == found.benign()[0]
    assert {"cold_start", "shortfall", "history_rewrite", "unusable"} == {
        verdict for verdict, _ in found.benign()[1:]
    }


def test_turns_that_nobody_judged_are_counted(figures_of):
    found = figures_of(judged("hit", "proven", 0, 9), judged(None, None, None, 9))
    assert 1 == found.unjudged


def test_the_first_thing_to_do_is_about_the_greatest_cause(figures: Figures):
    assert "prompt_cache_key" in figures.advice()


def test_a_remedy_of_the_catalogue_comes_with_its_cause(figures_of):
    said = figures_of(some_turns()[5]).advice()
    assert said.startswith("Metadata moves to the newest result")
    assert "`freeze`" in said


def test_where_little_is_lost_that_is_said_first(figures_of):
    rows = [judged("hit", "proven", 0, 20_000) for _ in range(9)]
    said = figures_of(*rows, judged("idle", "likely", 1_500, 0)).advice()
    assert said.startswith("Little is lost. Go on before the cache runs out")


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("hit", "Nothing: all that could be read again was read."),
        ("cold_start", "Nothing can be said of the cache: no turn had something to read again."),
        (None, "Nothing can be said of the cache: no turn here is judged."),
    ],
)
def test_where_nothing_is_missed_nothing_is_to_be_done(figures_of, verdict, said):
    assert said == figures_of(judged(verdict, None, 0, 9)).advice()


def test_the_values_are_those_of_the_figures(figures: Figures):
    read = Read(2, ("csv",), 1, {"x is missing": 3}, (("a.csv", "It is empty."),))
    told = json.loads(json.dumps(as_dict(replace(figures, read=read))))
    assert {
        "files": 2, "formats": ["csv"], "ignored": 1, "skipped": {"x is missing": 3},
        "failures": [{"file": "a.csv", "why": "It is empty."}],
    } == told["read"]  # fmt: skip
    assert (8, 7, 2) == (
        told["turns"]["total"], told["turns"]["generation"], told["turns"]["sessions"],
    )  # fmt: skip
    assert (140_000, 35_000, 0.25) == tuple(
        told["tokens"][name] for name in ("input", "cached", "cached_ratio")
    )
    assert (40_000, 10_000, 0.25, 0) == tuple(
        told["cache"][name]
        for name in ("due_tokens", "missed_tokens", "missed_rate", "turns_not_judged")
    )
    assert [0.7, 0.2, 0.1] == [one["share"] for one in told["cache"]["causes"]]
    assert [8_000, 2_000] == [one["missed_tokens"] for one in told["worst_sessions"]]
    assert figures.advice() == told["first"]


def test_the_values_of_money_and_time_are_those_of_the_figures(figures: Figures):
    told = as_dict(figures)
    assert ("0.036", 0) == tuple(
        told["cache"]["total"][name] for name in ("cost_usd", "turns_without_price")
    )
    assert ["freeze", "go_on_sooner"] == [one["policy"] for one in told["cache"]["remedies"]]
    assert 1 == told["resets"]["resets"]


@pytest.mark.parametrize(
    ("shown", "value"),
    [("$12.35", "12.345001"), ("$1,200.00", "1200"), ("$0.01", "0.01"), ("$0.0036", "0.0036"),
     ("-$0.00099", "-0.000987"), ("$0.00", "0")],
)  # fmt: skip
def test_money_has_cents_or_the_digits_that_tell_something(backend, shown, value):
    assert shown == dollars(Decimal(value))


def test_what_no_log_tells_is_null_and_not_zero(figures_of):
    told = as_dict(figures_of(unknown_usage(**SILENT)))
    assert (None, None, None) == tuple(
        told["tokens"][name] for name in ("input", "cached", "cached_ratio")
    )
    assert {None} == {
        told["continuation"][name]
        for name in ("incremental", "incremental_rate", "eligible", "mismatches", "mismatch_rate")
    }
    assert None is told["ttft"]
    assert (None, 1) == (told["cache"]["missed_rate"], told["cache"]["turns_not_judged"])
