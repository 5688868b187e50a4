"""Whether a ledger holds what is asked of it: the conditions of ``warmline check``. Pure.

A rate that nobody can know is no 0: it decides nothing, and is an error only where it was asked
for by name. Rates of too few turns are not judged at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from xml.etree import ElementTree as ET

from app.charts.chart import count, percent
from app.importers.report import printable
from app.reporting.figures import Figures


class State(StrEnum):
    HOLDS = "holds"
    FALLS_SHORT = "falls_short"
    UNDECIDED = "undecided"
    """It was asked for, and cannot be told."""
    LEFT_OUT = "left_out"
    """It was not asked for, and cannot be told."""


EXIT = {State.HOLDS: 0, State.FALLS_SHORT: 1, State.UNDECIDED: 2}
"""Exit codes by outcome."""


@dataclass(frozen=True, slots=True)
class Asked:
    max_mismatch_rate: float
    max_missed_rate: float
    min_requests: int
    by_name: frozenset[str] = frozenset()
    """Conditions that were given, and not left at their defaults."""


@dataclass(frozen=True, slots=True)
class Condition:
    name: str
    state: State
    value: float | None
    limit: float
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "state": self.state.value,
            "value": self.value,
            "limit": self.limit,
            "sentence": self.sentence,
        }


MIN_REQUESTS, MISMATCH, MISSED = "min-requests", "max-mismatch-rate", "max-missed-rate"


def judge(figures: Figures, asked: Asked) -> list[Condition]:
    turns = figures.summary.continuity.generation
    enough = turns >= asked.min_requests
    requests = Condition(
        MIN_REQUESTS,
        State.HOLDS if enough else State.UNDECIDED,
        turns,
        asked.min_requests,
        f"{count(turns, 'generation turn')}, at least {asked.min_requests:,} are needed",
    )
    return [
        requests,
        _mismatch(figures, asked, enough=enough),
        _missed(figures, asked, enough=enough),
    ]


def outcome(conditions: list[Condition]) -> State:
    """What all come to. Too few requests beat everything: rates of theirs prove nothing."""
    states = {one.name: one.state for one in conditions}
    if states[MIN_REQUESTS] is State.UNDECIDED:
        return State.UNDECIDED
    if State.FALLS_SHORT in states.values():
        return State.FALLS_SHORT
    rates = {states[MISMATCH], states[MISSED]}
    if State.UNDECIDED in rates or rates == {State.LEFT_OUT}:
        return State.UNDECIDED
    return State.HOLDS


def _mismatch(figures: Figures, asked: Asked, *, enough: bool) -> Condition:
    continuity = figures.summary.continuity
    if not continuity.known:
        said = "mismatch rate: not recorded, as no log tells modes"
    elif not continuity.eligible:
        said = "mismatch rate: no turn could have been continued"
    else:
        said = (
            f"mismatch rate: {percent(continuity.mismatch_rate)} "
            f"({continuity.mismatches:,} of {continuity.eligible:,} eligible turns)"
        )
    return _rate(
        MISMATCH, continuity.mismatch_rate, asked.max_mismatch_rate, said, asked, enough=enough
    )


def _missed(figures: Figures, asked: Asked, *, enough: bool) -> Condition:
    if figures.due:
        said = (
            f"missed rate: {percent(figures.missed_rate)} "
            f"({figures.missed:,} of {figures.due:,} tokens to be read again)"
        )
    else:
        said = "missed rate: not known, as no turn is judged that had something to read again"
    return _rate(MISSED, figures.missed_rate, asked.max_missed_rate, said, asked, enough=enough)


def _rate(
    name: str, value: float | None, limit: float, said: str, asked: Asked, *, enough: bool
) -> Condition:
    if value is None:
        state = State.UNDECIDED if name in asked.by_name else State.LEFT_OUT
        return Condition(name, state, None, limit, said)
    said = f"{said}, at most {percent(limit)} is allowed"
    if not enough:
        return Condition(name, State.LEFT_OUT, value, limit, f"{said}; too few turns to judge it")
    return Condition(name, State.HOLDS if value <= limit else State.FALLS_SHORT, value, limit, said)


_SHOWN = {
    State.HOLDS: "ok",
    State.FALLS_SHORT: "FAIL",
    State.UNDECIDED: "?",
    State.LEFT_OUT: "-",
}


def text(conditions: list[Condition]) -> list[str]:
    """A line for each condition."""
    return [f"{_SHOWN[one.state]:<4}  {one.sentence}" for one in conditions]


def as_dict(conditions: list[Condition]) -> dict[str, Any]:
    found = outcome(conditions)
    return {
        "outcome": found.value,
        "exit_code": EXIT[found],
        "conditions": [one.as_dict() for one in conditions],
    }


def junit(conditions: list[Condition], error: str | None = None) -> bytes:
    """JUnit XML, as CI servers read it: a test case for each condition.

    ``error`` is why nothing could be judged.
    """
    cases = [_case(one) for one in conditions]
    if error is not None:
        case = ET.Element("testcase", name="input", classname="warmline.check", time="0")
        ET.SubElement(case, "error", message=printable(error, 500), type="unusable")
        cases.append(case)
    counts: dict[str, str] = {
        what: str(sum(case.find(tag) is not None for case in cases))
        for what, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    suites = ET.Element("testsuites")
    suite = ET.SubElement(
        suites,
        "testsuite",
        {"name": "warmline check", "tests": str(len(cases)), "time": "0"} | counts,
    )
    suite.extend(cases)
    ET.indent(suites)
    return bytes(ET.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _case(one: Condition) -> ET.Element:
    case = ET.Element("testcase", name=one.name, classname="warmline.check", time="0")
    if one.state is State.FALLS_SHORT:
        ET.SubElement(case, "failure", message=one.sentence, type=one.state.value)
    elif one.state is State.UNDECIDED:
        ET.SubElement(case, "error", message=one.sentence, type=one.state.value)
    elif one.state is State.LEFT_OUT:
        ET.SubElement(case, "skipped", message=one.sentence)
    else:
        ET.SubElement(case, "system-out").text = one.sentence
    return case
