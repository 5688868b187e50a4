import itertools
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from app.ledger.cells import Continuity
from app.ledger.verdict_sums import VerdictSum
from app.reporting import gate
from app.reporting.figures import Figures
from app.reporting.gate import EXIT, MISMATCH, MISSED, Asked, State
from tests.support.reported import some_turns

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.fixture
def plain(figures_of) -> Figures:
    return figures_of(*some_turns())


def of(
    figures: Figures, *, turns=100, mismatches=0, eligible=0, known=0, missed=0, due=0
) -> Figures:
    continuity = Continuity(
        generation=turns, known=known, incremental=0, eligible=eligible, breaks=0,
        mismatches=mismatches,
    )  # fmt: skip
    return replace(
        figures,
        summary=replace(figures.summary, continuity=continuity),
        verdicts=(VerdictSum("idle", "likely", 1, due - missed, missed),),
    )


def asked(*by_name: str, mismatch=0.05, missed=0.1, least=50) -> Asked:
    return Asked(mismatch, missed, least, frozenset(by_name))


def test_all_hold_up_to_their_limits(plain):
    found = gate.judge(
        of(plain, turns=50, mismatches=5, eligible=100, known=100, missed=10, due=100), asked()
    )
    assert [
        "ok    50 generation turns, at least 50 are needed",
        "ok    mismatch rate: 5 % (5 of 100 eligible turns), at most 5 % is allowed",
        "ok    missed rate: 10 % (10 of 100 tokens to be read again), at most 10 % is allowed",
    ] == gate.text(found)
    assert 0 == EXIT[gate.outcome(found)]


@pytest.mark.parametrize(
    ("figures", "line"),
    [
        ({"mismatches": 6}, "FAIL  mismatch rate: 6 % (6 of 100 eligible turns), at most 5 %"),
        ({"missed": 11}, "FAIL  missed rate: 11 % (11 of 100 tokens to be read again), at most"),
    ],
)
def test_a_rate_beyond_its_limit_falls_short(plain, figures, line):
    values = {"eligible": 100, "known": 100, "due": 100} | figures
    found = gate.judge(of(plain, **values), asked())
    assert [True] == [one.startswith(line) for one in gate.text(found) if one.startswith("FAIL")]
    assert 1 == EXIT[gate.outcome(found)]


def test_rates_of_too_few_turns_prove_nothing(plain):
    found = gate.judge(
        of(plain, turns=49, mismatches=99, eligible=100, known=100, missed=99, due=100), asked()
    )
    assert ["?", "-", "-"] == [one.split()[0] for one in gate.text(found)]
    assert gate.text(found)[1].endswith("; too few turns to judge it")
    assert 2 == EXIT[gate.outcome(found)]


def test_a_mismatch_rate_that_no_log_tells_is_not_recorded(plain):
    found = gate.judge(of(plain, due=100), asked())
    assert "-     mismatch rate: not recorded, as no log tells modes" == gate.text(found)[1]
    assert 0 == EXIT[gate.outcome(found)]
    found = gate.judge(of(plain, due=100), asked(MISMATCH))
    assert "?     mismatch rate: not recorded, as no log tells modes" == gate.text(found)[1]
    assert 2 == EXIT[gate.outcome(found)]


def test_a_rate_of_no_eligible_turn_is_unknown(plain):
    found = gate.judge(of(plain, known=100, due=100), asked(MISMATCH))
    assert "?     mismatch rate: no turn could have been continued" == gate.text(found)[1]


def naive(turns: bool, mismatch: bool | None, missed: bool | None, by_name: set[str]) -> int:
    """The exit code as docs/report.md has it; whether a rate is good, or None."""
    if not turns:
        return 2
    rates = {MISMATCH: mismatch, MISSED: missed}
    if False in rates.values():
        return 1
    if any(rates[name] is None for name in by_name):
        return 2
    return 2 if mismatch is None and missed is None else 0


def test_the_exit_code_is_that_of_the_rule(plain):
    names = [(), (MISMATCH,), (MISSED,), (MISMATCH, MISSED)]
    truths = (True, False, None)
    seen = set()
    for turns, mismatch, missed, by_name in itertools.product((True, False), truths, truths, names):
        figures = of(
            plain,
            turns=50 if turns else 49,
            known=0 if mismatch is None else 9,
            eligible=0 if mismatch is None else 9,
            mismatches=9 if mismatch is False else 0,
            due=0 if missed is None else 9,
            missed=9 if missed is False else 0,
        )
        found = EXIT[gate.outcome(gate.judge(figures, asked(*by_name)))]
        assert naive(turns, mismatch, missed, set(by_name)) == found
        seen.add(found)
    assert {0, 1, 2} == seen


def test_the_values_are_those_of_the_conditions(plain):
    found = gate.as_dict(gate.judge(of(plain, missed=11, due=100), asked()))
    assert ("falls_short", 1) == (found["outcome"], found["exit_code"])
    assert [
        ("min-requests", "holds", 100, 50),
        ("max-mismatch-rate", "left_out", None, 0.05),
        ("max-missed-rate", "falls_short", 0.11, 0.1),
    ] == [
        tuple(one[key] for key in ("name", "state", "value", "limit"))
        for one in found["conditions"]
    ]


def test_junit_has_a_case_for_each_condition_and_counts_them(plain):
    found = gate.judge(of(plain, turns=9, missed=11, due=100, known=9), asked(MISMATCH))
    found.append(replace(found[0], name="x", state=State.FALLS_SHORT))
    (suite,) = ET.fromstring(gate.junit(found))
    assert "testsuite" == suite.tag
    assert {"tests": "4", "failures": "1", "errors": "2", "skipped": "1"} == {
        name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")
    }
    assert ["error", "error", "skipped", "failure"] == [case[0].tag for case in suite]
    assert found[0].sentence == suite[0][0].get("message")


def test_junit_of_what_cannot_be_read_is_an_error_that_any_parser_takes(backend):
    (suite,) = ET.fromstring(gate.junit([], "There is no file a\x00\x1b[2J<&\u202e."))
    assert ("1", "1", "0") == tuple(suite.get(name) for name in ("tests", "errors", "failures"))
    assert "There is no file a\ufffd\ufffd[2J<&\ufffd." == suite[0][0].get("message")
