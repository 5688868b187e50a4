"""How things are shown that the routes' tests do not reach."""

import json
from dataclasses import replace

import pytest

from app.alerts.service import Watched
from app.alerts.signals import CATALOGUE
from app.alerts.state_store import GroupState
from app.alerts.states import Memory, State
from app.alerts.store import StoredRule, definition_of
from app.web.alerts import shown
from tests.support.alerts import make_rule
from tests.support.rows import START_MS

STORED = StoredRule(
    id="rule-1",
    name="Mismatches",
    origin="page",
    definition=definition_of(make_rule(group_by=["model"])),
    version=1,
    enabled=True,
    evaluated_until=START_MS,
    failure=None,
    created_at=START_MS,
    updated_at=START_MS,
)


def watched(*states: State, **changes) -> Watched:
    groups = {
        json.dumps({"model": str(number)}): GroupState(Memory(state=state))
        for number, state in enumerate(states)
    }
    return Watched(replace(STORED, **changes), groups)


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((), "no_data"),
        ((State.INACTIVE,), "inactive"),
        ((State.INACTIVE, State.NO_DATA), "no_data"),
        ((State.NO_DATA, State.ERROR), "error"),
        ((State.ERROR, State.PENDING), "pending"),
        ((State.PENDING, State.RECOVERING), "recovering"),
        ((State.RECOVERING, State.FIRING, State.INACTIVE), "firing"),
    ],
)
def test_the_state_of_a_rule_is_the_worst_of_its_groups(states, expected):
    assert expected == shown.rule(watched(*states), [], START_MS)["state"]


def test_every_state_has_a_rank():
    assert set(State) == set(shown.WORST)


def test_a_rule_that_is_off_is_paused_whatever_its_groups_say():
    assert "paused" == shown.rule(watched(State.FIRING, enabled=False), [], START_MS)["state"]


def test_a_failure_is_told_without_the_place_of_the_program():
    found = shown.rule(watched(failure="ValueError at /opt/warmline/app/alerts/x.py:3"), [], 0)
    assert "ValueError at x.py:3" == found["failure"]


@pytest.mark.parametrize(
    ("definition", "expected"), [("{", {}), ("[]", {}), ('{"a": 1}', {"a": 1})]
)
def test_what_is_no_rule_is_shown_as_far_as_it_can_be(definition, expected):
    found = shown.rule(watched(definition=definition), [], 0)
    assert (expected, "error") == (found["definition"], found["state"])


def test_before_the_first_evaluation_there_is_no_reading_and_no_link():
    (group,) = shown.rule(watched(State.INACTIVE), [], 0)["groups"]
    assert (None, {"rows": None, "csv": None}) == (group["reading"], group["links"])


def test_the_catalogue_of_signals_is_the_codes():
    assert list(CATALOGUE) == [each["name"] for each in shown.SIGNALS]
