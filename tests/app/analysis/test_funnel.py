from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.funnel import LOST_AT, STEPS, Step, funnel
from app.ledger.cells import Cell
from app.ledger.filters import CACHE_CLASSES, UNKNOWN
from engine.model import NOT_ELIGIBLE, Kind, Mode, Reason, Status


def cell(
    turns=1, kind="generation", status="completed", mode="ws_incremental", reason="ok", cache="hit"
):
    return Cell(kind, status, mode, reason, False, cache, turns, *[0] * 10)


cells = st.lists(
    st.builds(
        cell,
        turns=st.integers(1, 9),
        kind=st.sampled_from(Kind),
        status=st.sampled_from(Status),
        mode=st.sampled_from([*Mode, None]),
        reason=st.sampled_from([*Reason, None, "a_word_of_an_import"]),
        cache=st.sampled_from(CACHE_CLASSES),
    ),
    unique_by=lambda one: (one.kind, one.status, one.mode, one.reason, one.cache),
)


def selected(filters, found):
    """As a filter selects rows."""
    return sum(
        one.turns
        for one in found
        if all((getattr(one, name) or UNKNOWN) in values for name, values in filters.items())
    )


@given(cells)
def test_each_turn_is_lost_at_one_step_or_reaches_the_last(found):
    steps = funnel(found)
    assert list(STEPS) == [reached.step for reached in steps]
    for before, after in pairwise(steps):
        assert before.turns == after.turns + sum(drop.turns for drop in after.lost)
    lost = sum(drop.turns for reached in steps for drop in reached.lost)
    assert sum(one.turns for one in found) == steps[0].turns == lost + steps[-1].turns


@given(cells)
def test_the_filters_of_a_step_and_of_a_drop_select_exactly_its_turns(found):
    for part in (part for reached in funnel(found) for part in (reached, *reached.lost)):
        if part.turns:
            assert part.turns == selected(part.filters, found)


def test_every_reason_but_ok_has_its_step_and_those_before_a_baseline_are_not_eligible():
    assert {None, *Reason} - {Reason.OK} == set(LOST_AT)
    early = {reason for reason, at in LOST_AT.items() if at in (Step.DECIDED, Step.BASELINE)}
    assert {None, *NOT_ELIGIBLE} == early
    order = [STEPS.index(LOST_AT[reason]) for reason in Reason if reason is not Reason.OK]
    assert sorted(order) == order, "the steps are in the order in which reasons are tested"


@pytest.mark.parametrize(
    ("one", "step", "what"),
    [
        ({"kind": "warmup"}, "generation", "warmup"),
        ({"status": "failed"}, "generation", "failed"),
        ({"reason": None, "mode": None}, "decided", "unknown"),
        ({"reason": "client_anchored"}, "decided", "client_anchored"),
        ({"reason": "ws_rejected", "mode": "http_full"}, "decided", "ws_rejected"),
        ({"reason": "no_baseline", "mode": "ws_full"}, "baseline", "no_baseline"),
        (
            {"reason": "non_input_fields_changed", "mode": "ws_full"},
            "fields",
            "non_input_fields_changed",
        ),
        ({"reason": "prefix_mismatch", "mode": "ws_full"}, "prefix", "prefix_mismatch"),
        ({"reason": "connection_lost", "mode": "ws_full"}, "continued", "connection_lost"),
        ({"mode": "http_full"}, "continued", "ok"),
        ({"cache": "miss"}, "reused", "miss"),
        ({"cache": "unknown"}, "reused", "unknown"),
    ],
)
def test_a_turn_is_lost_where_its_reason_says(one, step, what):
    lost = [(reached.step, drop.what) for reached in funnel([cell(**one)]) for drop in reached.lost]
    assert [(step, what)] == lost


def test_a_partial_hit_is_reuse_and_the_largest_drop_comes_first():
    steps = funnel(
        [cell(3, cache="partial"), cell(2, reason="chain_busy"), cell(5, reason="connection_lost")]
    )
    assert 3 == steps[-1].turns
    assert ["connection_lost", "chain_busy"] == [drop.what for drop in steps[-2].lost]
